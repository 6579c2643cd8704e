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
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio_util::task::AbortOnDropHandle;

/// How long a server may take to end by itself once its input is closed.
const END_GRACE: Duration = Duration::from_secs(2);
/// How long a keeper may take to end everything that its server has started.
const KEEPER_GRACE: Duration = Duration::from_secs(5);
/// How long the last words of a server that cannot be used are waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Most bytes of one message. A longer one is dropped, and the request that it answers gets none.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Most bytes of a line of a child's standard error. A longer one counts as several.
const LINE_BYTES_MAX: u64 = 4 * 1024;

/// What speaks with a child.
pub(crate) type ChildTransport = AsyncRwTransport<RoleClient, ChildStdout, ChildStdin>;

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
}

/// A child and everything it started. Ended when dropped.
pub(crate) struct ServerProcess {
    child: Child,
    pid: Option<Pid>,
    is_kept: bool,
    last_line: Arc<Mutex<String>>,
    /// Reads the child's standard error.
    stderr: Option<AbortOnDropHandle<()>>,
}

impl Launch {
    /// Starts the child, to speak with the SDK.
    pub fn start(&self) -> io::Result<(ServerProcess, ChildTransport)> {
        let (process, stdout, stdin) = self.spawn()?;
        let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(MESSAGE_BYTES_MAX);
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
            stderr: stderr.map(|stderr| drain(stderr, last_line.clone())),
            last_line,
            child,
        };
        Ok((process, stdout, stdin))
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
            let _ = tokio::time::timeout(LAST_WORDS, stderr).await;
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

/// Logs the standard error of a child and keeps its last line: a pipe that nobody reads would block the child.
fn drain(stderr: ChildStderr, last_line: Arc<Mutex<String>>) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut stderr = BufReader::new(stderr);
        let mut line = Vec::new();
        while let Ok(1..) = (&mut stderr)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .await
        {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            tracing::debug!(line = text, "MCP server");
            if !text.is_empty() {
                *last_line.lock().unwrap_or_else(PoisonError::into_inner) = text;
            }
            line.clear();
        }
    }))
}
