//! The side of the child.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::stdio::{stdin, stdout};
use rustix::time::{ClockId, clock_gettime};

use crate::frame;
use crate::kind::{Kind, Limits};
use crate::seal::{self, Protection};

/// Handles the requests on the standard input, one after the other, until it ends or the process is used up. What the
/// hidden subcommand of a kind calls, before anything else.
pub fn serve(kind: &Kind, mut handle: impl FnMut(Vec<u8>) -> Vec<u8>) -> io::Result<()> {
    serve_with(kind, |_| (), |(), request, _| Ok((handle(request), ())))
}

/// Handles requests as [`serve`] does, with what is prepared before each of them, told what protects the process. A
/// handler may talk with the gateway before it responds. What it gives besides the response is dropped after that was
/// sent.
pub fn serve_with<P, L>(
    kind: &Kind,
    mut prepare: impl FnMut(&Protection) -> P,
    mut handle: impl FnMut(P, Vec<u8>, &mut Talk) -> io::Result<(Vec<u8>, L)>,
) -> io::Result<()> {
    let limits = &kind.limits;
    let protection = seal::confine(kind, confined_limits(limits, kind.uses))?;
    let mut talk = Talk {
        limits: *limits,
        uses: kind.uses,
    };
    for _ in 0..kind.uses {
        // While nobody waits for it.
        let prepared = prepare(&protection);
        let request = match talk.receive(None) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            // The gateway has no more, or is gone.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        allow_cpu(limits, cpu_seconds_max(limits, kind.uses))?;
        let (response, left) = handle(prepared, request, &mut talk)?;
        talk.send(&response)?;
        // Freeing it takes a while, and whoever waits has its response.
        drop(left);
    }
    Ok(())
}

/// The frames between a worker and its gateway.
pub struct Talk {
    limits: Limits,
    uses: u32,
}

impl Talk {
    /// Ends the process once the request has used so many seconds of CPU time; less than its kind permits.
    pub fn limit_cpu(&mut self, seconds: u64) -> io::Result<()> {
        let limits = Limits {
            cpu_seconds: seconds.min(self.limits.cpu_seconds),
            ..self.limits
        };
        allow_cpu(&limits, cpu_seconds_max(&self.limits, self.uses))
    }

    /// Sends a frame.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(frame::HEAD_BYTES + frame.len());
        bytes.extend_from_slice(&frame::head(frame)?);
        bytes.extend_from_slice(frame);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match rustix::io::write(stdout(), rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits for a frame, at most so long.
    pub fn receive(&mut self, wait: Option<Duration>) -> io::Result<Option<Vec<u8>>> {
        if wait.is_some_and(|wait| !has_input(wait)) {
            return Ok(None);
        }
        let mut head = [0; frame::HEAD_BYTES];
        read_exact(&mut head)?;
        let mut frame = vec![0; frame::length(head, self.limits.request_bytes_max)?];
        read_exact(&mut frame)?;
        Ok(Some(frame))
    }
}

/// Whether there is something to read, or the gateway is gone, within so long.
fn has_input(wait: Duration) -> bool {
    let wait = Timespec {
        tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    };
    let input = stdin();
    let mut watched = [PollFd::new(&input, PollFlags::IN)];
    matches!(poll(&mut watched, Some(&wait)), Ok(ready) if ready > 0)
}

fn read_exact(mut into: &mut [u8]) -> io::Result<()> {
    while !into.is_empty() {
        match rustix::io::read(stdin(), &mut *into) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => into = &mut into[read..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What cannot be raised again.
fn confined_limits(limits: &Limits, uses: u32) -> [(Resource, u64); 4] {
    [
        (Resource::As, limits.memory_bytes),
        (Resource::Cpu, cpu_seconds_max(limits, uses)),
        (Resource::Nofile, limits.files),
        (Resource::Core, 0),
    ]
}

/// The kernel counts the CPU time of the whole process; the limit of a request starts from what is used so far.
fn allow_cpu(limits: &Limits, most: u64) -> io::Result<()> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or_default();
    let (current, maximum) = (Some((used + limits.cpu_seconds).min(most)), Some(most));
    Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
}

fn cpu_seconds_max(limits: &Limits, uses: u32) -> u64 {
    limits.cpu_seconds.saturating_mul(uses.into())
}
