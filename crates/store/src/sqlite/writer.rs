//! The writer thread. It receives all waiting writes, commits them together (group commit), calls the listeners, and
//! only then replies: no caller and no listener learns of a write that is not on disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot};
use toolgate_engine::store::{Append, StoreError};
use toolgate_kernel::event::Entry;

use super::fault::Fault;
use super::lock::DataLock;
use super::session::Session;
use super::work::{AppendWork, OtherWork, Work};
use super::{BUSY_WAIT, Damage, SqliteOptions};
use crate::listeners::Listeners;
use crate::text;

/// Handle to the writer thread. Dropping it waits until all accepted writes are done.
pub(crate) struct Writer {
    jobs: mpsc::Sender<Job>,
    // After `jobs`: the thread ends when the last sender is gone.
    _thread: Joined,
}

enum Job {
    Work(Box<dyn Work>),
    EmptyLog(oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
}

impl Writer {
    pub(crate) fn start(
        session: Session,
        lock: DataLock,
        listeners: Listeners,
        damage: Damage,
        options: &SqliteOptions,
    ) -> Result<Self, StoreError> {
        let (jobs, waiting) = mpsc::channel(options.pending_max);
        let queue = Queue {
            waiting,
            batch_max: options.batch_max,
            linger: options.linger,
            last_was_shared: false,
        };
        let thread = std::thread::Builder::new()
            .name("toolgate-writer".into())
            .spawn(move || {
                let committer = Committer {
                    session,
                    listeners,
                    damage,
                };
                serve(committer, lock, queue)
            })
            .map_err(|error| StoreError::Unavailable(format!("no thread for the writer: {error}")))?;
        Ok(Self {
            jobs,
            _thread: Joined(Some(thread)),
        })
    }

    /// Appends events. Once accepted they are stored even if the caller goes away.
    pub(crate) async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError> {
        let text = text::write(&append.events);
        self.ask(|reply| Box::new(AppendWork::new(append, text, reply)))
            .await
    }

    /// Does any other write in a transaction. `work` is called again if the transaction was rolled back.
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
        // No reply: the writer panicked in this batch, before or after its commit, so the outcome is unknown.
        answer.await.unwrap_or(Err(StoreError::Timeout))
    }

    /// Moves the write-ahead log into the database and empties it, because it holds pages as they were before a deletion.
    /// While somebody reads from it, it is tried again later.
    pub(crate) async fn empty_log(&self) -> Result<(), StoreError> {
        let (reply, done) = oneshot::channel();
        let closed = StoreError::Unavailable("the store is closed".into());
        self.jobs.send(Job::EmptyLog(reply)).await.map_err(|_| closed)?;
        // No reply: the thread has ended, and the log with it.
        let _ = done.await;
        Ok(())
    }

    /// Finishes accepted writes, closes the database and releases the lock.
    pub(crate) async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.jobs.send(Job::Close(reply)).await.is_ok() {
            // An error means that the thread has ended, which is what was requested.
            let _ = closed.await;
        }
    }
}

fn serve(mut committer: Committer, lock: DataLock, mut queue: Queue) {
    let mut closing = Vec::new();
    let mut log = LogToEmpty::default();
    while let Some(jobs) = queue.next() {
        let mut works = Vec::with_capacity(jobs.len());
        let mut emptying = Vec::new();
        for job in jobs {
            match job {
                Job::Work(work) => works.push(work),
                Job::EmptyLog(reply) => {
                    log.want();
                    emptying.push(reply);
                }
                Job::Close(reply) => {
                    // Writes that are in the queue already are still received.
                    queue.waiting.close();
                    closing.push(reply);
                }
            }
        }
        // A panic costs only the writes of this batch their replies.
        if !works.is_empty() && catch_unwind(AssertUnwindSafe(|| committer.commit(works))).is_err() {
            committer.session.roll_back();
        }
        log.empty_if_due(&committer.session.connection);
        for reply in emptying {
            // An error means that the caller stopped waiting.
            let _ = reply.send(());
        }
    }
    drop(committer);
    drop(lock);
    for reply in closing {
        // An error means that the caller stopped waiting.
        let _ = reply.send(());
    }
}

/// How long writes wait for readers of the write-ahead log that is to be emptied.
const EMPTYING_WAIT: Duration = Duration::from_millis(50);
/// How much later it is tried again.
const EMPTYING_PAUSE: Duration = Duration::from_secs(1);

/// Whether the write-ahead log is to be emptied.
#[derive(Default)]
struct LogToEmpty {
    due: Option<Instant>,
}

impl LogToEmpty {
    fn want(&mut self) {
        self.due = Some(Instant::now());
    }

    /// Empties the log if that is wanted and nobody reads from it. Heartbeats see to it that there is a next time.
    fn empty_if_due(&mut self, connection: &Connection) {
        if self.due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.due = match empty(connection) {
            Ok(true) => None,
            Ok(false) => Some(Instant::now() + EMPTYING_PAUSE),
            Err(error) => {
                tracing::warn!(%error, "the write-ahead log could not be emptied, it still has what was deleted");
                Some(Instant::now() + EMPTYING_PAUSE)
            }
        };
    }
}

/// False while somebody reads from it.
fn empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(EMPTYING_WAIT)?;
    let is_busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    connection.busy_timeout(BUSY_WAIT)?;
    Ok(is_busy? == 0)
}

/// Queue of writes.
struct Queue {
    waiting: mpsc::Receiver<Job>,
    batch_max: usize,
    linger: Duration,
    /// Whether the last batch held more than one job.
    last_was_shared: bool,
}

impl Queue {
    /// The next batch; none if the queue is closed. While batches hold several writes it waits a moment
    /// for more, because a commit costs the same for one as for many; a lone write is committed at once.
    fn next(&mut self) -> Option<Vec<Job>> {
        let mut jobs = Vec::new();
        if self.waiting.blocking_recv_many(&mut jobs, self.batch_max) == 0 {
            return None;
        }
        if (self.last_was_shared || jobs.len() > 1) && jobs.len() < self.batch_max && !self.linger.is_zero() {
            std::thread::sleep(self.linger);
            let more = std::iter::from_fn(|| self.waiting.try_recv().ok());
            jobs.extend(more.take(self.batch_max - jobs.len()));
        }
        self.last_was_shared = jobs.len() > 1;
        Some(jobs)
    }
}

/// Commits batches of writes.
struct Committer {
    session: Session,
    listeners: Listeners,
    damage: Damage,
}

/// Why a transaction failed.
enum Failure {
    /// One of its writes failed after it had changed something.
    Spoiled(StoreError),
    /// It could not begin or commit; nothing is stored.
    Undone(String),
    /// The disk failed during the commit: after a restart it may turn out to be stored.
    Unknown(String),
}

impl Committer {
    /// Commits the writes together; if one of them spoils the transaction, each by itself.
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
                    work.reply(Err(why));
                }
            }
            Failure::Undone(why) => {
                tracing::error!(why, writes = works.len(), "a commit failed");
                works
                    .into_iter()
                    .for_each(|work| work.reply(Err(StoreError::Unavailable(why.clone()))));
            }
            Failure::Unknown(why) => {
                tracing::error!(why, writes = works.len(), "the disk failed during a commit");
                works
                    .into_iter()
                    .for_each(|work| work.reply(Err(StoreError::Timeout)));
            }
        }
    }

    /// Runs one transaction. A write that is rejected before it changes anything does not affect the others.
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
                Err(fault) => return Err(Failure::Spoiled(self.damage.note(fault))),
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

    /// Passes the batch to the listeners, then replies to every caller.
    fn publish(&self, mut works: Vec<Box<dyn Work>>, outcomes: Vec<Result<(), StoreError>>) {
        let stored = works
            .iter_mut()
            .zip(&outcomes)
            .filter(|(_, outcome)| outcome.is_ok());
        let entries: Vec<_> = stored.flat_map(|(work, _)| work.entries()).collect();
        self.listeners.tell(&entries);
        works
            .into_iter()
            .zip(outcomes)
            .for_each(|(work, outcome)| work.reply(outcome));
    }
}

/// Joins a thread on drop, except from itself: the thread may drop the last handle.
struct Joined(Option<JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        let Some(thread) = self.0.take() else { return };
        if thread.thread().id() != std::thread::current().id() {
            // Its panics are caught where they happen.
            let _ = thread.join();
        }
    }
}
