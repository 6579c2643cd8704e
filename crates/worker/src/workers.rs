//! The gateway's side: who runs where.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use rustix::process::Signal;
use toolgate_fair::{Full, Permit, Queue, Share};

use crate::kind::Kind;
use crate::process::Process;

/// Whose requests a process handles: it never handles those of two. A hash of whatever tells them apart.
pub type Owner = [u8; 32];

/// Workers of one kind. Cheap to clone. Their processes end with the last clone.
#[derive(Clone)]
pub struct Workers {
    shared: Arc<Shared>,
}

struct Shared {
    program: PathBuf,
    kind: Kind,
    arguments: Vec<String>,
    queue: Arc<Queue>,
    idle: Mutex<Idle>,
}

/// Processes that wait for a request.
#[derive(Default)]
struct Idle {
    fresh: Vec<Process>,
    /// Those that have worked, and for whom; the oldest first.
    used: VecDeque<(Owner, Process)>,
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
        Self::with_arguments(program, kind, Vec::new())
    }

    /// Workers that are started with further arguments.
    pub fn with_arguments(program: PathBuf, kind: Kind, arguments: Vec<String>) -> Self {
        let queue = Queue::new(kind.queue);
        Self {
            shared: Arc::new(Shared {
                program,
                kind,
                arguments,
                queue,
                idle: Mutex::default(),
            }),
        }
    }

    /// Lets a worker handle a request, after those who are before it. Dropping the future kills the worker.
    pub async fn run(&self, share: Share, request: &[u8]) -> Result<Vec<u8>, WorkerError> {
        let permit = self.admit(share, request.len()).await?;
        let limits = &self.shared.kind.limits;
        let response = async {
            let mut exchange = self.begin(permit, owner_of(share), request).await?;
            let response = exchange.next(limits.response_bytes_max).await?;
            exchange.finish();
            Ok(response.to_vec())
        };
        tokio::time::timeout(limits.wall, response)
            .await
            .unwrap_or(Err(WorkerError::Failed))
    }

    /// Waits for the turn of a request of so many bytes.
    pub async fn admit(&self, share: Share, request_bytes: usize) -> Result<Permit, WorkerError> {
        let most = self.shared.kind.limits.request_bytes_max;
        if request_bytes > most {
            return Err(WorkerError::TooLong(most));
        }
        let turn = self.shared.queue.turn(share, request_bytes).await;
        turn.map_err(|Full| WorkerError::Busy)
    }

    /// Hands a request to a worker that has worked for nobody but this owner. Whoever waits for the end sets a time to it:
    /// dropping the exchange kills the worker.
    pub async fn begin(&self, permit: Permit, owner: Owner, request: &[u8]) -> Result<Exchange, WorkerError> {
        let shared = &self.shared;
        let mut process = shared.process(owner).map_err(WorkerError::Start)?;
        let sent = process.request(request).await;
        // The next process starts while this one works. None is started before the first request: most gateways
        // never read a document, and an idle process is memory.
        shared.warm_up();
        sent.map_err(|_| WorkerError::Failed)?;
        Ok(Exchange {
            shared: shared.clone(),
            owner,
            process,
            _permit: permit,
        })
    }
}

/// The owner of requests that are told apart by their tenant alone.
fn owner_of(share: Share) -> Owner {
    let mut owner = [0; 32];
    owner[..16].copy_from_slice(&share.tenant.to_be_bytes());
    owner
}

/// A request under way. Dropping it kills the worker.
pub struct Exchange {
    shared: Arc<Shared>,
    owner: Owner,
    process: Process,
    _permit: Permit,
}

impl Exchange {
    /// The next frame of the worker, of so many bytes at most. May be cancelled and called again. What was said by
    /// [`Exchange::send`] goes out meanwhile.
    pub async fn next(&mut self, bytes_max: usize) -> Result<BytesMut, WorkerError> {
        self.process
            .next(bytes_max)
            .await
            .map_err(|_| WorkerError::Failed)
    }

    /// The next frame like [`Exchange::next`]; none as soon as fewer than `waiting_max` bytes wait for the worker to read
    /// them, if there were as many.
    pub async fn next_or_room(
        &mut self,
        bytes_max: usize,
        waiting_max: usize,
    ) -> Result<Option<BytesMut>, WorkerError> {
        let next = self.process.next_or_room(bytes_max, waiting_max).await;
        next.map_err(|_| WorkerError::Failed)
    }

    /// Sends the worker a frame, with the next call of [`Exchange::next`].
    pub fn send(&mut self, frame: &[u8]) -> Result<(), WorkerError> {
        self.process.push(frame).map_err(|_| WorkerError::Failed)
    }

    /// Bytes that wait for the worker to read them.
    pub fn waiting_bytes(&self) -> usize {
        self.process.waiting_bytes()
    }

    /// Whether the worker was ended because it had used up its CPU time. It is gone after this.
    pub async fn used_up_cpu(self) -> bool {
        self.process.ended_by().await == Some(Signal::XCPU.as_raw())
    }

    /// CPU time that the worker has used since its start; none where the system does not tell.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.process.cpu_time()
    }

    /// Lets everything else go first, for good: the worker handles no further request.
    pub fn demote(&mut self) {
        self.process.demote();
    }

    /// The request is handled: the worker waits for the owner's next one.
    pub fn finish(self) {
        let Self {
            shared,
            owner,
            process,
            ..
        } = self;
        shared.put_back(owner, process);
    }
}

impl Shared {
    /// One that has worked for this owner, or one that has worked for nobody.
    fn process(&self, owner: Owner) -> io::Result<Process> {
        loop {
            let known = {
                let mut idle = self.idle();
                // The one that worked last: it is warm.
                let at = idle.used.iter().rposition(|(of, _)| *of == owner);
                let used = at.and_then(|at| idle.used.remove(at)).map(|(_, process)| process);
                used.or_else(|| idle.fresh.pop())
            };
            match known {
                Some(process) if process.is_alive() => return Ok(process),
                Some(_) => {}
                None => return self.start(),
            }
        }
    }

    fn put_back(&self, owner: Owner, process: Process) {
        if process.uses_left == 0 {
            return;
        }
        let mut idle = self.idle();
        idle.used.push_back((owner, process));
        if idle.used.len() > self.kind.queue.running.all {
            idle.used.pop_front();
        }
    }

    fn warm_up(&self) {
        while self.idle().fresh.len() < self.kind.warm {
            match self.start() {
                Ok(process) => self.idle().fresh.push(process),
                // Whoever needs one learns why there is none.
                Err(_) => return,
            }
        }
    }

    fn start(&self) -> io::Result<Process> {
        Process::start(&self.program, &self.kind, &self.arguments)
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
