//! The one thread that writes. It takes what is waiting, commits it together, tells the listener, and only
//! then answers: nobody hears of a write that is not on disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot};
use toolgate_engine::store::{Append, StoreError};
use toolgate_kernel::event::Entry;

use super::SqliteOptions;
use super::fault::Fault;
use super::lock::DataLock;
use super::session::Session;
use super::work::{AppendWork, OtherWork, Work};
use crate::listeners::Listeners;
use crate::text;

/// The handle to the writing thread. Dropping it waits until what was accepted is done.
pub(crate) struct Writer {
    jobs: mpsc::Sender<Job>,
    // After `jobs`: the thread ends when the last sender is gone.
    _thread: Joined,
}

enum Job {
    Work(Box<dyn Work>),
    Close(oneshot::Sender<()>),
}

impl Writer {
    pub(crate) fn start(
        session: Session,
        lock: DataLock,
        listeners: Listeners,
        options: &SqliteOptions,
    ) -> Result<Self, StoreError> {
        let (jobs, waiting) = mpsc::channel(options.pending_max);
        let queue = Queue {
            waiting,
            batch_max: options.batch_max,
            linger: options.linger,
            company: false,
        };
        let thread = std::thread::Builder::new()
            .name("toolgate-writer".into())
            .spawn(move || serve(Committer { session, listeners }, lock, queue))
            .map_err(|error| StoreError::Unavailable(format!("no thread for the writer: {error}")))?;
        Ok(Self {
            jobs,
            _thread: Joined(Some(thread)),
        })
    }

    /// Stores events. Once accepted they are stored even when the caller goes away.
    pub(crate) async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError> {
        let text = text::write(&append.events);
        self.ask(|reply| Box::new(AppendWork::new(append, text, reply)))
            .await
    }

    /// Does any other work in a transaction. `work` is called again when the transaction was undone.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(|reply| Box::new(OtherWork::new(work, reply))).await
    }

    async fn ask<T>(
        &self,
        work: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Box<dyn Work>,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let closed = |_| StoreError::Unavailable("the store is closed".into());
        self.jobs.send(Job::Work(work(reply))).await.map_err(closed)?;
        // No answer: the writer panicked over this one, before or after its commit.
        answer.await.unwrap_or(Err(StoreError::Timeout))
    }

    /// Finishes what was accepted, closes the database and gives the lock back.
    pub(crate) async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.jobs.send(Job::Close(reply)).await.is_ok() {
            // An error means that the thread is gone, which is what was asked for.
            let _ = closed.await;
        }
    }
}

fn serve(mut committer: Committer, lock: DataLock, mut queue: Queue) {
    let mut closing = Vec::new();
    while let Some(jobs) = queue.next() {
        let mut works = Vec::with_capacity(jobs.len());
        for job in jobs {
            match job {
                Job::Work(work) => works.push(work),
                Job::Close(reply) => {
                    // What is in the queue already still comes out of it.
                    queue.waiting.close();
                    closing.push(reply);
                }
            }
        }
        // A panic costs the works at hand their answers, never the ones to come.
        if catch_unwind(AssertUnwindSafe(|| committer.commit(works))).is_err() {
            committer.session.roll_back();
        }
    }
    drop(committer);
    drop(lock);
    for reply in closing {
        // Whoever asked has stopped waiting.
        let _ = reply.send(());
    }
}

/// What waits to be written.
struct Queue {
    waiting: mpsc::Receiver<Job>,
    batch_max: usize,
    linger: Duration,
    /// Whether the last batch held more than one job.
    company: bool,
}

impl Queue {
    /// What to commit together; none when no more will come. While jobs come in company it waits a moment
    /// for more, because a commit costs the same for one as for many; a job that comes alone goes at once.
    fn next(&mut self) -> Option<Vec<Job>> {
        let mut jobs = Vec::new();
        if self.waiting.blocking_recv_many(&mut jobs, self.batch_max) == 0 {
            return None;
        }
        if (self.company || jobs.len() > 1) && jobs.len() < self.batch_max && !self.linger.is_zero() {
            std::thread::sleep(self.linger);
            let more = std::iter::from_fn(|| self.waiting.try_recv().ok());
            jobs.extend(more.take(self.batch_max - jobs.len()));
        }
        self.company = jobs.len() > 1;
        Some(jobs)
    }
}

/// Turns works into commits.
struct Committer {
    session: Session,
    listeners: Listeners,
}

/// Why a transaction came to nothing.
enum Failure {
    /// One of its works spoiled it.
    Spoiled(StoreError),
    /// It could not begin or commit.
    Undone(String),
    /// The disk failed during the commit: after a crash it may be found done.
    Unknown(String),
}

impl Committer {
    /// Commits the works together; when one of them spoils that, each by itself.
    fn commit(&mut self, mut works: Vec<Box<dyn Work>>) {
        let failure = match self.transact(&mut works) {
            Ok(outcomes) => return self.publish(works, outcomes),
            Err(failure) => failure,
        };
        self.session.roll_back();
        match failure {
            Failure::Spoiled(_) if works.len() > 1 => {
                works.into_iter().for_each(|work| self.commit(vec![work]));
            }
            Failure::Spoiled(why) => {
                if let Some(work) = works.pop() {
                    work.answer(Err(why));
                }
            }
            Failure::Undone(why) => {
                tracing::error!(why, writes = works.len(), "a commit failed");
                works
                    .into_iter()
                    .for_each(|work| work.answer(Err(StoreError::Unavailable(why.clone()))));
            }
            Failure::Unknown(why) => {
                tracing::error!(why, writes = works.len(), "the disk failed during a commit");
                works
                    .into_iter()
                    .for_each(|work| work.answer(Err(StoreError::Timeout)));
            }
        }
    }

    /// One transaction. A work that refuses before it changes anything leaves the others alone.
    fn transact(&mut self, works: &mut [Box<dyn Work>]) -> Result<Vec<Result<(), StoreError>>, Failure> {
        let started = Instant::now();
        self.session
            .begin()
            .map_err(|error| Failure::Undone(error.to_string()))?;
        let mut outcomes = Vec::with_capacity(works.len());
        for work in works.iter_mut() {
            let changes = self.session.connection.total_changes();
            let outcome = match work.perform(&mut self.session) {
                Ok(()) => Ok(()),
                Err(Fault::Refused(why)) if self.session.connection.total_changes() == changes => Err(why),
                Err(fault) => return Err(Failure::Spoiled(fault.told())),
            };
            outcomes.push(outcome);
        }
        self.session
            .commit()
            .map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::SystemIoFailure) => Failure::Unknown(error.to_string()),
                _ => Failure::Undone(error.to_string()),
            })?;
        metrics::histogram!("toolgate_store_commit_seconds").record(started.elapsed());
        metrics::histogram!("toolgate_store_commit_writes").record(works.len() as f64);
        Ok(outcomes)
    }

    /// Tells the listener of the batch, then every caller of its part.
    fn publish(&self, mut works: Vec<Box<dyn Work>>, outcomes: Vec<Result<(), StoreError>>) {
        let stored = works
            .iter_mut()
            .zip(&outcomes)
            .filter(|(_, outcome)| outcome.is_ok());
        let entries: Vec<_> = stored.filter_map(|(work, _)| work.entry()).collect();
        self.listeners.tell(&entries);
        works
            .into_iter()
            .zip(outcomes)
            .for_each(|(work, outcome)| work.answer(outcome));
    }
}

/// A thread that is waited for, except by itself: the last handle may go with what the thread drops.
struct Joined(Option<JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        let Some(thread) = self.0.take() else { return };
        if thread.thread().id() != std::thread::current().id() {
            // Its panics are caught and answered where they happen.
            let _ = thread.join();
        }
    }
}
