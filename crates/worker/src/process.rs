//! One child.

use std::io;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::frame;
use crate::kind::Kind;

/// A started worker. Dropping it kills it, and everything it has started.
pub(crate) struct Process {
    /// Killed and reaped when dropped, after the group.
    _child: Child,
    group: Option<Pid>,
    to: ChildStdin,
    from: ChildStdout,
    /// Requests that it may still be given.
    pub uses_left: u32,
}

impl Process {
    /// Starts `program` as a worker. Does not wait for it.
    pub fn start(program: &Path, kind: &Kind) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg(kind.argument)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What a parser says when it panics is for its authors.
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let to = child.stdin.take().expect("it is piped");
        let from = child.stdout.take().expect("it is piped");
        Ok(Self {
            _child: child,
            group,
            to,
            from,
            uses_left: kind.uses,
        })
    }

    /// Whether it still waits for a request. One that was killed while idle does not.
    pub fn is_alive(&self) -> bool {
        // Not reaped by looking: its id has to stay its own until the group is killed.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = |group| waitid(WaitId::Pid(group), options);
        self.group.is_some_and(|group| matches!(ended(group), Ok(None)))
    }

    /// Hands over a request and waits for the response. `sent` is called when the request has been handed over.
    pub async fn exchange(
        &mut self,
        request: &[u8],
        response_bytes_max: usize,
        sent: impl FnOnce(),
    ) -> io::Result<Vec<u8>> {
        self.uses_left = self.uses_left.saturating_sub(1);
        let handed_over = self.send(request).await;
        sent();
        let mut head = [0; 4];
        let begun = self.from.read_exact(&mut head).await;
        // One that ended early may have closed its input first; that it gave no response is what counts.
        begun.map(drop).and(handed_over)?;
        let mut response = vec![0; frame::length(head, response_bytes_max)?];
        self.from.read_exact(&mut response).await?;
        Ok(response)
    }

    async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.to.write_all(&frame::head(request)?).await?;
        self.to.write_all(request).await?;
        self.to.flush().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The child is not reaped yet, so the id is still its own, also when it has ended. All of them may have ended.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
