//! A worker that does as it is told, also what a worker must not.

mod kinds;

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;

fn main() -> std::io::Result<()> {
    let kind = match std::env::args().nth(1).as_deref() {
        Some("once") => kinds::ONCE,
        Some("thrice") => kinds::THRICE,
        other => panic!("{other:?} is no kind"),
    };
    toolgate_worker::serve(&kind, |request| {
        let request = String::from_utf8(request).expect("text");
        let (word, rest) = request.split_once(' ').unwrap_or((&request, ""));
        obey(word, rest).into_bytes()
    })
}

fn obey(word: &str, rest: &str) -> String {
    match word {
        "echo" => rest.to_owned(),
        "pid" => std::process::id().to_string(),
        "env" => std::env::vars_os().count().to_string(),
        "long" => "x".repeat(rest.parse().expect("a number")),
        "die" => std::process::exit(3),
        "spin" => loop {
            std::hint::spin_loop();
        },
        "eat" => {
            let mut eaten: Vec<Vec<u8>> = Vec::new();
            loop {
                eaten.push(vec![1; 1 << 20]);
            }
        }
        // Starts a process of its own, tells the address `rest` of both, and never ends.
        "hang" => {
            let child = Command::new("/bin/sleep").arg("1000").spawn();
            let mut to = TcpStream::connect(rest).expect("somebody listens");
            let pids = (std::process::id(), child.expect("it starts").id());
            writeln!(to, "{} {}", pids.0, pids.1).expect("it is read");
            loop {
                std::thread::park();
            }
        }
        other => panic!("{other:?} is no request"),
    }
}
