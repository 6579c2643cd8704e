//! The side of the child.

use std::io::{self, Read as _, Write as _};

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::frame;
use crate::kind::{Kind, Limits};

/// Handles the requests on the standard input, one after the other, until it ends or the process is used up. What the
/// hidden subcommand of a kind calls, before anything else.
pub fn serve(kind: &Kind, mut handle: impl FnMut(Vec<u8>) -> Vec<u8>) -> io::Result<()> {
    let limits = &kind.limits;
    confine(limits, kind.uses)?;
    for _ in 0..kind.uses {
        let Some(request) = read(limits.request_bytes_max)? else {
            return Ok(());
        };
        allow_cpu(limits, kind.uses)?;
        let response = handle(request);
        let mut to = io::stdout().lock();
        to.write_all(&frame::head(&response)?)?;
        to.write_all(&response)?;
        to.flush()?;
    }
    Ok(())
}

/// Sets what cannot be raised again.
fn confine(limits: &Limits, uses: u32) -> io::Result<()> {
    for (resource, most) in [
        (Resource::As, limits.memory_bytes),
        (Resource::Cpu, cpu_seconds_max(limits, uses)),
        (Resource::Nofile, limits.files),
        (Resource::Core, 0),
    ] {
        let (current, maximum) = (Some(most), Some(most));
        setrlimit(resource, Rlimit { current, maximum })?;
    }
    Ok(())
}

/// The kernel counts the CPU time of the whole process; the limit of a request starts from what is used so far.
fn allow_cpu(limits: &Limits, uses: u32) -> io::Result<()> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or_default();
    let most = cpu_seconds_max(limits, uses);
    let (current, maximum) = (Some((used + limits.cpu_seconds).min(most)), Some(most));
    Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
}

fn cpu_seconds_max(limits: &Limits, uses: u32) -> u64 {
    limits.cpu_seconds.saturating_mul(uses.into())
}

/// The next request; none when the gateway has no more, or is gone.
fn read(bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut from = io::stdin().lock();
    let mut head = [0; 4];
    match from.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut request = vec![0; frame::length(head, bytes_max)?];
    from.read_exact(&mut request)?;
    Ok(Some(request))
}
