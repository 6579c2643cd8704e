//! The example as its page says, against the real gateway.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const KEY: &str = "sk_test_0123456789abcdef";

/// A process that ends with this value.
struct Process {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        let command = command.env("TOOLGATE_SECRET_KEY", KEY).stdin(Stdio::piped());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    /// The first word that begins like this in what it prints.
    fn word(&mut self, begins: &str) -> String {
        for line in &mut self.lines {
            let line = line.expect("text");
            if let Some(word) = line.split([' ', ';', ',']).find(|word| word.starts_with(begins)) {
                return word.to_owned();
            }
        }
        panic!("it printed no {begins}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_worker_answers_a_call_of_a_run_that_somebody_else_started() {
    let worker = Path::new(env!("CARGO_BIN_EXE_rust-worker"));
    let toolgate = worker.with_file_name("toolgate");
    assert!(
        toolgate.exists(),
        "the gateway is not built: `cargo test --workspace` builds it"
    );
    let data = tempfile::tempdir().unwrap();
    let mut gateway = Process::start(
        Command::new(&toolgate)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path().join("data")),
    );
    let url = gateway.word("http://");
    let mut worker = Process::start(Command::new(worker).env("TOOLGATE_URL", &url));
    let space = worker.word("space_");
    let mut chat = Process::start(Command::new(&toolgate).args([
        "chat",
        "warehouse",
        "--wait",
        "--url",
        &url,
        "--space",
        &space,
    ]));
    let mut stdin = chat.child.stdin.take().expect("a pipe");
    stdin.write_all(b"check_stock for a \"teapot\"").unwrap();
    drop(stdin);
    let answer = chat.lines.next().expect("an answer").unwrap();
    assert!(answer.contains("\"count\":12"), "{answer}");
    assert!(chat.child.wait().unwrap().success());
    kill_process(Pid::from_child(&worker.child), Signal::INT).unwrap();
    assert!(worker.child.wait().unwrap().success(), "it ends in order");
}
