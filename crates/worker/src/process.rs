//! One child.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bytes::BytesMut;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, setpriority_process, waitid};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::frame;
use crate::kind::Kind;

/// Priority of a worker that has used much CPU time: it gets about a thirtieth of what others get.
const DEMOTED: i32 = 15;
/// What Linux counts CPU time in where it tells programs of it, on every machine.
const TICK: Duration = Duration::from_millis(10);
/// Where the user's and the system's time stand in `/proc/PID/stat`, counted from the state.
const USER_TIME_FIELD: usize = 11;

/// A started worker. Dropping it kills it, and everything it has started.
pub(crate) struct Process {
    /// Killed and reaped when dropped, after the group.
    child: Child,
    group: Option<Pid>,
    to: ChildStdin,
    from: ChildStdout,
    /// Bytes of the next frame that have arrived.
    incoming: BytesMut,
    /// Bytes that wait to be handed over.
    outgoing: BytesMut,
    /// Requests that it may still be given.
    pub uses_left: u32,
}

impl Process {
    /// Starts `program` as a worker, with further arguments. Does not wait for it.
    pub fn start(program: &Path, kind: &Kind, arguments: &[String]) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg(kind.argument)
            .args(arguments)
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
            child,
            group,
            to,
            from,
            incoming: BytesMut::new(),
            outgoing: BytesMut::new(),
            uses_left: kind.uses,
        })
    }

    /// Whether it still waits for a request. One that was killed while idle does not, nor does one that has said
    /// something that nobody asked for.
    pub fn is_alive(&self) -> bool {
        // Not reaped by looking: its id has to stay its own until the group is killed.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = |group| waitid(WaitId::Pid(group), options);
        self.incoming.is_empty() && self.group.is_some_and(|group| matches!(ended(group), Ok(None)))
    }

    /// CPU time that it has used, in steps of the system's clock tick.
    pub fn cpu_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.group?.as_raw_nonzero())).ok()?;
        // The name of the program, in brackets, may hold anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut times = fields.split_whitespace().skip(USER_TIME_FIELD).take(2);
        let mut ticks = || times.next()?.parse::<u64>().ok();
        let ticks = ticks()? + ticks()?;
        Some(TICK * u32::try_from(ticks).ok()?)
    }

    /// Lowers its priority, which nobody can raise again, so it is of no further use.
    pub fn demote(&mut self) {
        self.uses_left = 0;
        // One that has ended needs no priority.
        let _ = self.group.map(|group| setpriority_process(Some(group), DEMOTED));
    }

    /// Kills it, unless it has ended already, and says by which signal it did.
    pub async fn ended_by(mut self) -> Option<i32> {
        // Its id is its own until it is waited for, so the group is killed before.
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.child.wait().await.ok()?.signal()
    }

    /// Hands over a request. Cancelling it leaves a process of no use.
    pub async fn request(&mut self, request: &[u8]) -> io::Result<()> {
        self.uses_left = self.uses_left.saturating_sub(1);
        self.push(request)?;
        while !self.outgoing.is_empty() {
            self.to.write_buf(&mut self.outgoing).await?;
        }
        Ok(())
    }

    /// Sends a frame while the next one is waited for.
    pub fn push(&mut self, frame: &[u8]) -> io::Result<()> {
        self.outgoing.extend_from_slice(&frame::head(frame)?);
        self.outgoing.extend_from_slice(frame);
        Ok(())
    }

    /// Bytes of frames that were not handed over yet.
    pub fn waiting_bytes(&self) -> usize {
        self.outgoing.len()
    }

    /// The next frame that it sends. May be cancelled and called again. What waits to be sent goes out meanwhile, so that
    /// two sides that both send never wait for each other.
    pub async fn next(&mut self, bytes_max: usize) -> io::Result<BytesMut> {
        loop {
            if let Some(frame) = self.next_or_room(bytes_max, usize::MAX).await? {
                return Ok(frame);
            }
        }
    }

    /// The next frame like [`Process::next`]; none as soon as fewer than `waiting_max` bytes wait to be sent, if there were
    /// as many.
    pub async fn next_or_room(
        &mut self,
        bytes_max: usize,
        waiting_max: usize,
    ) -> io::Result<Option<BytesMut>> {
        let was_full = self.outgoing.len() >= waiting_max;
        loop {
            if let Some(frame) = self.complete_frame(bytes_max)? {
                return Ok(Some(frame));
            }
            if was_full && self.outgoing.len() < waiting_max {
                return Ok(None);
            }
            tokio::select! {
                read = self.from.read_buf(&mut self.incoming) => if read? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                },
                sent = self.to.write_buf(&mut self.outgoing), if !self.outgoing.is_empty() => if sent.is_err() {
                    // It may have closed its input and said something before; what it says counts.
                    self.outgoing.clear();
                },
            }
        }
    }

    /// A frame that has arrived whole. One that is too long is refused before it is read.
    fn complete_frame(&mut self, bytes_max: usize) -> io::Result<Option<BytesMut>> {
        let Some((head, _)) = self.incoming.split_first_chunk() else {
            return Ok(None);
        };
        let length = frame::length(*head, bytes_max)?;
        if self.incoming.len() < head.len() + length {
            return Ok(None);
        }
        let mut frame = self.incoming.split_to(frame::HEAD_BYTES + length);
        Ok(Some(frame.split_off(frame::HEAD_BYTES)))
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
