//! What sort of work a worker does, and what it may use up.

use std::time::Duration;

/// What sort of work a worker does. The gateway and the child have to agree on it, so it is a constant of whoever brings
/// the work.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The hidden subcommand of the binary that calls [`serve`](crate::serve()).
    pub argument: &'static str,
    /// Requests that one process handles before it is replaced, all of one tenant. With 1, no request ever sees what
    /// another left behind.
    pub uses: u32,
    /// Processes that are started ahead.
    pub warm: usize,
    /// What one process may use.
    pub limits: Limits,
    /// What the process takes from itself besides.
    pub seals: Seals,
    /// How many requests run and wait. For fewer running of one tenant and one user than of all, the others find a process
    /// free.
    pub queue: toolgate_fair::Limits,
}

/// What one process may use. The kernel holds it to memory, CPU time and files; the gateway to the rest.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Address space of the process, in bytes.
    pub memory_bytes: u64,
    /// CPU time of one request, in seconds.
    pub cpu_seconds: u64,
    /// Time of one request by the clock, on a machine that may be busy with other things.
    pub wall: Duration,
    /// Open files. With 3, the process has its standard streams and can open nothing.
    pub files: u64,
    /// Largest request.
    pub request_bytes_max: usize,
    /// Largest response.
    pub response_bytes_max: usize,
}

/// What a worker takes from itself at its start, for good, besides what its [`Limits`] say. Each holds without the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seals {
    /// System calls that the work does not need fail: none opens, connects, starts or signals anything.
    pub seccomp: bool,
    /// No path of the file system, no TCP port, and no process outside can be reached.
    pub landlock: bool,
}

impl Seals {
    /// Both.
    pub const ALL: Self = Self {
        seccomp: true,
        landlock: true,
    };
    /// Neither: the limits alone.
    pub const NONE: Self = Self {
        seccomp: false,
        landlock: false,
    };
}
