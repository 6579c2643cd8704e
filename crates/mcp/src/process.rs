//! A server that runs as a child process, and everything it started.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::bounded_lines::BoundedLines;

/// How long a server may take to end by itself once its input is closed.
const END_GRACE: Duration = Duration::from_secs(2);
/// How long a keeper may take to end everything that its server has started.
const KEEPER_GRACE: Duration = Duration::from_secs(5);
/// How long the last words of a server that cannot be used are waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Most bytes of one message. A longer one is dropped, and the request that it answers gets none.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Most bytes of a line of a child's standard error that are kept. Of a longer one the beginning is.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// Most bytes of a line that are read to hide secrets in them. The rest of the line is dropped.
const LINE_READ_MAX: usize = 16 * 1024;
/// Bytes at the end of what was read of a longer line that are not kept: the limit may have cut a secret in two, and half
/// of one is not found.
const CUT_BYTES: usize = 4 * 1024;

/// What speaks with a child.
pub(crate) type ChildTransport = AsyncRwTransport<RoleClient, BoundedLines<ChildStdout>, ChildStdin>;

/// A program that runs a server for us and ends all that the server has started, whatever it did to get away. It is
/// given its own arguments, `--`, and the server's command.
#[derive(Debug, Clone)]
pub struct Keeper {
    /// The program.
    pub program: PathBuf,
    /// Its own arguments.
    pub arguments: Vec<OsString>,
}

/// How to start a child.
#[derive(Clone)]
pub(crate) struct Launch {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub directory: Option<PathBuf>,
    pub keeper: Option<Keeper>,
    /// Hides secrets in what the child writes to its standard error.
    pub hide: Option<Hide>,
    /// Is given each line of the child's standard error, secrets hidden.
    pub log: Option<Log>,
    /// Changes when the server is restarted, and is closed when it is removed.
    pub restarts: Option<watch::Receiver<u64>>,
}

/// Hides secrets in words.
pub type Hide = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Takes a line that a server wrote to its standard error. Must not block.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// A child and everything it started. Ended when dropped.
pub(crate) struct ServerProcess {
    child: Child,
    pid: Option<Pid>,
    is_kept: bool,
    last_line: Arc<Mutex<String>>,
    /// Reads the child's standard error.
    stderr: Option<Drain>,
}

/// The task that reads a child's standard error. It outlives this by [`LAST_WORDS`] at most, so that what a server says
/// before its end is heard.
struct Drain {
    task: JoinHandle<()>,
    _over: DropGuard,
}

impl Launch {
    /// Starts the child, to speak with the SDK.
    pub fn start(&self) -> io::Result<(ServerProcess, ChildTransport)> {
        let (process, stdout, stdin) = self.spawn()?;
        let transport = AsyncRwTransport::new_client(BoundedLines::new(stdout), stdin)
            .with_max_line_length(MESSAGE_BYTES_MAX);
        Ok((process, transport))
    }

    /// Starts the child.
    pub fn spawn(&self) -> io::Result<(ServerProcess, ChildStdout, ChildStdin)> {
        let mut command = match &self.keeper {
            None => Command::new(&self.program),
            Some(keeper) => {
                let mut command = Command::new(&keeper.program);
                command.args(&keeper.arguments).arg("--").arg(&self.program);
                command
            }
        };
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: what the server starts ends with it, and Ctrl-C at the terminal is not for it.
            .process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn()?;
        let (stdout, stdin) = (child.stdout.take(), child.stdin.take());
        let (Some(stdout), Some(stdin)) = (stdout, stdin) else {
            return Err(io::Error::other("it has no standard streams"));
        };
        let last_line = Arc::new(Mutex::new(String::new()));
        let stderr = child.stderr.take();
        let process = ServerProcess {
            pid: child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)),
            is_kept: self.keeper.is_some(),
            stderr: stderr.map(|stderr| {
                let heard = Heard {
                    last_line: last_line.clone(),
                    hide: self.hide.clone(),
                    log: self.log.clone(),
                };
                heard.drain(stderr)
            }),
            last_line,
            child,
        };
        Ok((process, stdout, stdin))
    }

    /// Waits for the next restart, counted from this call, or until nobody is left who could restart it: the server was removed
    /// or is configured otherwise.
    pub fn restarted(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut restarts = self.restarts.clone();
        if let Some(restarts) = &mut restarts {
            restarts.mark_unchanged();
        }
        async move {
            match restarts {
                // A sender that is gone is an end, too.
                Some(mut restarts) => drop(restarts.changed().await),
                None => std::future::pending().await,
            }
        }
    }

    /// The name of the program.
    pub fn name(&self) -> impl std::fmt::Display + '_ {
        OsStr::display(&self.program)
    }
}

impl ServerProcess {
    /// The last thing it said on its standard error; of one that ends, the last before its end.
    pub async fn last_line(&mut self) -> String {
        if let Some(stderr) = &mut self.stderr {
            // One that goes on without a word is not waited for.
            let _ = tokio::time::timeout(LAST_WORDS, &mut stderr.task).await;
            self.stderr = None;
        }
        let line = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        line.clone()
    }

    /// Waits for its end, its input being closed, and makes it end if it does not.
    pub async fn end(mut self) {
        let ended = tokio::time::timeout(END_GRACE, self.child.wait()).await;
        if ended.is_ok() || !self.is_kept {
            return;
        }
        self.signal();
        // A keeper that hangs is killed with its group; those that got away from it are lost then.
        if tokio::time::timeout(KEEPER_GRACE, self.child.wait())
            .await
            .is_err()
            && let Some(pid) = self.pid
        {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// All of them may have ended already, so that it fails does not matter.
    fn signal(&mut self) {
        let Some(pid) = self.pid else { return };
        match self.is_kept {
            // The keeper kills the others. Once it is reaped its id may be another's.
            true => {
                if let Ok(None) = self.child.try_wait() {
                    let _ = kill_process(pid, Signal::TERM);
                }
            }
            false => {
                let _ = kill_process_group(pid, Signal::KILL);
            }
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.signal();
    }
}

/// What becomes of the lines of a child's standard error.
struct Heard {
    last_line: Arc<Mutex<String>>,
    hide: Option<Hide>,
    log: Option<Log>,
}

impl Heard {
    /// Logs the standard error of a child and keeps its last line: a pipe that nobody reads would block the child.
    fn drain(self, stderr: ChildStderr) -> Drain {
        let over = CancellationToken::new();
        let is_over = over.clone();
        let task = tokio::spawn(async move {
            let too_late = async {
                is_over.cancelled().await;
                tokio::time::sleep(LAST_WORDS).await;
            };
            tokio::select! {
                () = self.lines(BufReader::new(stderr)) => {}
                // What a server has started may hold its standard error open.
                () = too_late => {}
            }
        });
        Drain {
            task,
            _over: over.drop_guard(),
        }
    }

    async fn lines(&self, mut stderr: impl AsyncBufRead + Unpin) {
        let mut line = Vec::new();
        while let Ok(1..) = (&mut stderr)
            .take(LINE_READ_MAX as u64)
            .read_until(b'\n', &mut line)
            .await
        {
            let is_cut = line.len() == LINE_READ_MAX && line.last() != Some(&b'\n');
            self.line(&line, is_cut);
            line.clear();
            if is_cut && !skip_line(&mut stderr).await {
                return;
            }
        }
    }

    fn line(&self, line: &[u8], is_cut: bool) {
        let text = String::from_utf8_lossy(line);
        let mut text = match &self.hide {
            Some(hide) => hide(text.trim_end()),
            None => text.trim_end().to_owned(),
        };
        let sound = text.len().saturating_sub(if is_cut { CUT_BYTES } else { 0 });
        if sound.min(LINE_BYTES_MAX) < text.len() {
            text.truncate(text.floor_char_boundary(sound.min(LINE_BYTES_MAX)));
            text.push('…');
        }
        tracing::debug!(line = text, "MCP server");
        if text.is_empty() {
            return;
        }
        if let Some(log) = &self.log {
            log(&text);
        }
        *self.last_line.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

/// Reads to the end of a line and keeps nothing of it. False when there is no more to read.
pub(crate) async fn skip_line(from: &mut (impl AsyncBufRead + Unpin)) -> bool {
    loop {
        let (used, is_end) = match from.fill_buf().await {
            Ok([]) | Err(_) => return false,
            Ok(read) => match read.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (read.len(), false),
            },
        };
        from.consume(used);
        if is_end {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept of a standard error in which `hush-hush` is a secret.
    async fn check(written: &str, expected: &[&str]) {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let log = kept.clone();
        let heard = Heard {
            last_line: Arc::default(),
            hide: Some(Arc::new(|words| words.replace("hush-hush", "[secret]"))),
            log: Some(Arc::new(move |line| log.lock().unwrap().push(line.to_owned()))),
        };
        heard.lines(written.as_bytes()).await;
        assert_eq!(*kept.lock().unwrap(), expected);
    }

    #[tokio::test]
    async fn lines_are_kept_without_secrets_and_without_empty_ones() {
        check("key hush-hush\n\n  \nlast", &["key [secret]", "last"]).await;
    }

    #[tokio::test]
    async fn the_beginning_of_a_long_line_is_kept_and_the_next_line_is_whole() {
        let beginning = format!("{}…", "x".repeat(LINE_BYTES_MAX));
        for length in [LINE_BYTES_MAX + 1, LINE_READ_MAX, 5 * LINE_READ_MAX] {
            check(&format!("{}\nnext\n", "x".repeat(length)), &[&beginning, "next"]).await;
        }
        check(&"x".repeat(5 * LINE_READ_MAX), &[&beginning]).await;
    }

    #[tokio::test]
    async fn a_secret_that_the_limit_cuts_in_two_is_not_kept() {
        // Marks are shorter than secrets, so that all that was read is within the bytes that are kept.
        let secrets = "hush-hush".repeat(2 * LINE_READ_MAX / "hush-hush".len());
        let kept = Arc::new(Mutex::new(String::new()));
        let heard = Heard {
            last_line: kept.clone(),
            hide: Some(Arc::new(|words| words.replace("hush-hush", "**"))),
            log: None,
        };
        heard.lines(secrets.as_bytes()).await;
        let kept = kept.lock().unwrap();
        assert!(!kept.contains("hush"), "{kept}");
    }
}
