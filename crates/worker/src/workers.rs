//! The gateway's side: who runs where.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolgate_fair::{Full, Queue, Share};

use crate::kind::Kind;
use crate::process::Process;

/// Workers of one kind. Cheap to clone. Their processes end with the last clone.
#[derive(Clone)]
pub struct Workers {
    shared: Arc<Shared>,
}

struct Shared {
    program: PathBuf,
    kind: Kind,
    queue: Arc<Queue>,
    idle: Mutex<Idle>,
}

/// Processes that wait for a request.
#[derive(Default)]
struct Idle {
    fresh: Vec<Process>,
    /// Those that have worked, and for which tenant; the oldest first.
    used: VecDeque<(u128, Process)>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Too many requests wait already.
    #[error("too much is waiting; try again in a moment")]
    Busy,
    /// The request is longer than its kind permits.
    #[error("the request is longer than {0} bytes")]
    TooLong(usize),
    /// No process can be started.
    #[error("no worker can be started: {0}")]
    Start(#[source] io::Error),
    /// The worker ended without a response, took too long, or responded with more than permitted. It is gone.
    #[error("the worker did not finish within its limits")]
    Failed,
}

impl Workers {
    /// Workers that are `program`, started with the argument of their kind. None is started yet.
    pub fn new(program: PathBuf, kind: Kind) -> Self {
        let queue = Queue::new(kind.queue);
        Self {
            shared: Arc::new(Shared {
                program,
                kind,
                queue,
                idle: Mutex::default(),
            }),
        }
    }

    /// Lets a worker handle a request, after those who are before it. Dropping the future kills the worker.
    pub async fn run(&self, share: Share, request: &[u8]) -> Result<Vec<u8>, WorkerError> {
        let shared = &*self.shared;
        let limits = &shared.kind.limits;
        if request.len() > limits.request_bytes_max {
            return Err(WorkerError::TooLong(limits.request_bytes_max));
        }
        let turn = shared.queue.turn(share, request.len()).await;
        let _permit = turn.map_err(|Full| WorkerError::Busy)?;
        let mut process = shared.process(share.tenant).map_err(WorkerError::Start)?;
        // The next process starts while this one works. None is started before the first request: most gateways
        // never read a document, and an idle process is memory.
        let exchange = process.exchange(request, limits.response_bytes_max, || shared.warm_up());
        match tokio::time::timeout(limits.wall, exchange).await {
            Ok(Ok(response)) => {
                shared.put_back(share.tenant, process);
                Ok(response)
            }
            Ok(Err(_)) | Err(_) => Err(WorkerError::Failed),
        }
    }
}

impl Shared {
    /// One that has worked for this tenant, or one that has worked for nobody.
    fn process(&self, tenant: u128) -> io::Result<Process> {
        loop {
            let known = {
                let mut idle = self.idle();
                let at = idle.used.iter().position(|(of, _)| *of == tenant);
                let used = at.and_then(|at| idle.used.remove(at)).map(|(_, process)| process);
                used.or_else(|| idle.fresh.pop())
            };
            match known {
                Some(process) if process.is_alive() => return Ok(process),
                Some(_) => {}
                None => return Process::start(&self.program, &self.kind),
            }
        }
    }

    fn put_back(&self, tenant: u128, process: Process) {
        if process.uses_left == 0 {
            return;
        }
        let mut idle = self.idle();
        idle.used.push_back((tenant, process));
        if idle.used.len() > self.kind.queue.running.all {
            idle.used.pop_front();
        }
    }

    fn warm_up(&self) {
        while self.idle().fresh.len() < self.kind.warm {
            match Process::start(&self.program, &self.kind) {
                Ok(process) => self.idle().fresh.push(process),
                // Whoever needs one learns why there is none.
                Err(_) => return,
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
