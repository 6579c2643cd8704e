//! A program at a terminal of its own, and the hands and eyes of whoever sits there.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::harness::{LOOK, SOON};

/// Ctrl-C, as a keyboard sends it.
pub const CTRL_C: &str = "\x03";

/// A program at a terminal. Ends with this value.
pub struct Pty {
    child: Child,
    keyboard: File,
    screen: Arc<Screen>,
    /// What was seen already.
    seen: usize,
}

#[derive(Default)]
struct Screen {
    text: Mutex<String>,
    more: Condvar,
}

impl Pty {
    /// Starts it. The terminal is its controlling one, so that Ctrl-C is a signal where the program lets it be.
    pub fn start(program: &Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("a terminal of ours");
        unlockpt(&master).expect("a terminal that is open");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let side = || {
            let path = name.to_str().expect("a path");
            File::options()
                .read(true)
                .write(true)
                .open(path)
                .expect("the other side")
        };
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", "--wait"])
            .arg(program.get_program())
            .args(program.get_args())
            .env_clear();
        command.envs(
            program
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let child = command
            .env("TERM", "xterm")
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .expect("the program starts");
        let keyboard = File::from(master);
        let screen = Arc::new(Screen::default());
        watch(keyboard.try_clone().expect("a terminal"), screen.clone());
        Self {
            child,
            keyboard,
            screen,
            seen: 0,
        }
    }

    /// Types this.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a keyboard");
    }

    /// Types a line.
    pub fn enter(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Waits until this is to be read behind what was seen already; gives what stood between.
    pub fn see(&mut self, words: &str) -> String {
        let began = Instant::now();
        let mut text = self.screen.text.lock().expect("no panic while locked");
        loop {
            if let Some(at) = text[self.seen..].find(words) {
                let before = text[self.seen..self.seen + at].to_owned();
                self.seen += at + words.len();
                return before;
            }
            assert!(
                began.elapsed() < SOON,
                "{words:?} is not on the screen:\n{}",
                &text[self.seen..]
            );
            (text, _) = self
                .screen
                .more
                .wait_timeout(text, SOON)
                .expect("no panic while locked");
        }
    }

    /// Waits until the program has ended.
    pub fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                return status;
            }
            assert!(
                began.elapsed() < SOON,
                "it did not end: {}",
                self.screen.text.lock().unwrap()
            );
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the screen until the terminal is gone.
fn watch(mut terminal: File, screen: Arc<Screen>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = terminal.read(&mut bytes) {
            let mut text = screen.text.lock().expect("no panic while locked");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
            screen.more.notify_all();
        }
    });
}
