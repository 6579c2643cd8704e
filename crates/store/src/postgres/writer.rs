//! Takes appends and commits those that wait together (group commit). A space is in one batch at a time, so listeners hear
//! of its entries in their order; batches of different spaces overlap.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id as TaskId, JoinHandle, JoinSet};
use toolgate_engine::store::{Append, RunWrite, StoreError};
use toolgate_kernel::event::Entry;
use toolgate_kernel::id::{NodeId, SpaceId};
use uuid::Uuid;

use super::attempts::{Attempts, Transaction};
use super::batch::{self, Locking, Stored};
use super::fault::Fault;
use super::plan::{self, Decision, Placed, Writes};
use super::pool::Pool;
use super::session::Db;
use super::{PostgresOptions, idempotency};
use crate::listeners::Listeners;
use crate::text;

/// Handle to the task that takes appends. When it is dropped, accepted appends are still committed.
pub(crate) struct Writer {
    jobs: mpsc::Sender<Job>,
    /// None once it was waited for.
    task: Mutex<Option<JoinHandle<()>>>,
}

enum Job {
    Append(Box<Work>),
    Close,
}

/// An append that waits for its commit.
struct Work {
    append: Append,
    /// The events in their stored form.
    text: String,
    /// It was left out of a batch, because another node holds one of its spaces.
    alone: bool,
    reply: oneshot::Sender<Result<Arc<Entry>, StoreError>>,
}

impl Work {
    fn spaces(&self) -> impl Iterator<Item = SpaceId> + use<> {
        let above = self.append.above.as_ref().map(|above| above.space);
        [Some(self.append.space), above].into_iter().flatten()
    }
}

/// Bytes of events after which a batch takes no more appends.
const BATCH_BYTES: usize = 8 << 20;

/// Shards of the usage counters: enough that two writers rarely share one.
const SHARDS: i64 = 64;

impl Writer {
    pub(crate) fn start(pool: Arc<Pool>, listeners: Listeners, options: &PostgresOptions) -> Self {
        let (jobs, waiting) = mpsc::channel(options.pending_max.max(1));
        let queue = Queue {
            committer: Arc::new(Committer {
                pool,
                listeners,
                nodes: Mutex::default(),
                answers: AtomicU64::new(0),
            }),
            slots: (0..options.append_connections.max(1)).map(|_| shard()).collect(),
            batch_max: options.batch_max.max(1),
            pending_max: options.pending_max.max(1),
            waiting: VecDeque::new(),
            busy: HashSet::new(),
            batches: JoinSet::new(),
            taken: HashMap::new(),
        };
        Self {
            jobs,
            task: Mutex::new(Some(tokio::spawn(queue.serve(waiting)))),
        }
    }

    /// Appends events. Once accepted they are stored even if the caller goes away.
    pub(crate) async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError> {
        let text = text::write(&append.events);
        let (reply, answer) = oneshot::channel();
        let work = Box::new(Work {
            append,
            text,
            alone: false,
            reply,
        });
        let closed = |_| StoreError::Unavailable("the store is closed".into());
        self.jobs.send(Job::Append(work)).await.map_err(closed)?;
        // No reply: its batch panicked, before or after the commit, so the outcome is unknown.
        answer.await.unwrap_or(Err(StoreError::Timeout))
    }

    /// Commits what was accepted, and takes no more.
    pub(crate) async fn close(&self) {
        // An error means that the task has ended, which is what is wanted.
        let _ = self.jobs.send(Job::Close).await;
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            // Panics of batches are theirs alone, and this task has no others.
            let _ = task.await;
        }
    }
}

/// A shard of the usage counters.
fn shard() -> i64 {
    let [.., byte] = Uuid::now_v7().into_bytes();
    i64::from(byte) % SHARDS
}

/// Appends that wait, and those that are under way.
struct Queue {
    committer: Arc<Committer>,
    /// Usage shards of batches that may be started now.
    slots: Vec<i64>,
    batch_max: usize,
    pending_max: usize,
    waiting: VecDeque<Work>,
    /// Spaces of the batches under way.
    busy: HashSet<SpaceId>,
    batches: JoinSet<Vec<Work>>,
    /// Spaces and shard of each batch under way.
    taken: HashMap<TaskId, (Vec<SpaceId>, i64)>,
}

impl Queue {
    async fn serve(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut open = true;
        let mut arrived = Vec::new();
        loop {
            self.start_batches();
            let has_room = self.waiting.len() < self.pending_max;
            if !open && self.batches.is_empty() {
                // What waited was started above, as nothing was under way.
                break;
            }
            tokio::select! {
                count = jobs.recv_many(&mut arrived, self.batch_max), if open && has_room => {
                    open &= count > 0;
                    for job in arrived.drain(..) {
                        match job {
                            Job::Append(work) => self.waiting.push_back(*work),
                            // What is in the channel already is still received.
                            Job::Close => jobs.close(),
                        }
                    }
                }
                Some(ended) = self.batches.join_next_with_id() => self.end_batch(ended),
            }
        }
        self.committer.pool.close(super::CLOSED);
    }

    /// Starts as many batches as there are connections and appends for them.
    fn start_batches(&mut self) {
        while let Some(shard) = self.slots.pop() {
            let works = self.next_batch();
            if works.is_empty() {
                self.slots.push(shard);
                return;
            }
            let spaces: Vec<SpaceId> = works.iter().flat_map(|work| work.spaces()).collect();
            self.busy.extend(&spaces);
            let task = self.batches.spawn(self.committer.clone().commit(works, shard));
            self.taken.insert(task.id(), (spaces, shard));
        }
    }

    /// Appends that can be committed now, in the order in which they came. One whose space is under way waits, and so do
    /// those behind it in the same space.
    fn next_batch(&mut self) -> Vec<Work> {
        let mut works: Vec<Work> = Vec::new();
        let mut held = HashSet::new();
        let (mut bytes, mut at) = (0, 0);
        while at < self.waiting.len() && works.len() < self.batch_max && bytes < BATCH_BYTES {
            let work = &self.waiting[at];
            let fits = !work.alone || works.is_empty();
            let free = |space| !self.busy.contains(&space) && !held.contains(&space);
            if !fits || !work.spaces().all(free) {
                held.extend(work.spaces());
                at += 1;
                continue;
            }
            let work = self.waiting.remove(at).expect("the place is in the queue");
            bytes += work.text.len();
            let alone = work.alone;
            works.push(work);
            if alone {
                break;
            }
        }
        works
    }

    fn end_batch(&mut self, ended: Result<(TaskId, Vec<Work>), tokio::task::JoinError>) {
        let (id, left) = match ended {
            Ok((id, left)) => (id, left),
            Err(error) => {
                tracing::error!(%error, "a batch of appends broke off");
                (error.id(), Vec::new())
            }
        };
        let (spaces, shard) = self.taken.remove(&id).expect("the batch was started here");
        for space in spaces {
            self.busy.remove(&space);
        }
        self.slots.push(shard);
        for work in left.into_iter().rev() {
            self.waiting.push_front(work);
        }
    }
}

/// Commits batches.
struct Committer {
    pool: Arc<Pool>,
    listeners: Listeners,
    /// Nodes that surely have a row, which saves each new run a statement.
    nodes: Mutex<BTreeSet<NodeId>>,
    /// Idempotency records that were written, to delete old ones from time to time.
    answers: AtomicU64,
}

/// Idempotency records written between two deletions of old ones.
const FORGET_EVERY: u64 = 1024;
/// Most nodes that are remembered.
const NODES_MAX: usize = 1024;

/// What came of a try to commit a batch.
enum Tried {
    /// Every append is decided, and what was accepted is stored.
    Done(Vec<Decision>),
    /// Nothing is stored.
    Failed(Fault),
    /// What was accepted may be stored.
    Unknown(Vec<Decision>, Box<Writes>),
}

impl Committer {
    /// Commits the appends and replies to their callers. Gives back those whose spaces another node holds.
    async fn commit(self: Arc<Self>, works: Vec<Work>, shard: i64) -> Vec<Work> {
        let mut left = Vec::new();
        let mut batches = VecDeque::from([works]);
        while let Some(works) = batches.pop_front() {
            match self.commit_together(&works, shard).await {
                Ok(decisions) => left.extend(self.publish(works, decisions)),
                // One of them may have spoiled it for the others.
                Err(Fault::Refused(_) | Fault::Failed(_)) if works.len() > 1 => {
                    batches.extend(works.into_iter().map(|work| vec![work]));
                }
                Err(fault) => refuse(works, fault),
            }
        }
        left
    }

    async fn commit_together(&self, works: &[Work], shard: i64) -> Result<Vec<Decision>, Fault> {
        let started = Instant::now();
        let locking = match works {
            [one] if one.alone => Locking::Wait,
            _ => Locking::Skip,
        };
        let mut attempts = Attempts::default();
        loop {
            let fault = match self.attempt(works, locking, shard).await {
                Tried::Done(decisions) => {
                    metrics::histogram!("toolgate_store_commit_seconds").record(started.elapsed());
                    metrics::histogram!("toolgate_store_commit_writes").record(works.len() as f64);
                    return Ok(decisions);
                }
                Tried::Failed(fault) => fault,
                Tried::Unknown(decisions, writes) => match self.find_out(&writes).await? {
                    true => return Ok(decisions),
                    false => Fault::Again("the connection was lost before the commit".into()),
                },
            };
            if !attempts.pause(&fault, &self.pool).await {
                return Err(fault);
            }
        }
    }

    /// One transaction. It is rolled back unless something was accepted.
    async fn attempt(&self, works: &[Work], locking: Locking, shard: i64) -> Tried {
        let lease = match self.pool.get().await {
            Ok(lease) => lease,
            Err(fault) => return Tried::Failed(fault),
        };
        let db = lease.db();
        let mut state = match batch::load(&db, works.iter().map(|work| &work.append), locking).await {
            Ok(state) => state,
            Err(fault) => {
                lease.throw_away();
                return Tried::Failed(fault);
            }
        };
        let mut writes = Writes::default();
        let decide = |work: &Work| plan::decide(&mut state, &mut writes, &work.append, &work.text);
        let decisions: Vec<Decision> = works.iter().map(decide).collect();
        if writes.entries.is_empty() {
            if !matches!(db.control("ROLLBACK").await, Ok(Ok(()))) {
                lease.throw_away();
            }
            return Tried::Done(decisions);
        }
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match batch::store(&db, &state, &writes, shard, &nodes).await {
            Ok(Stored::Committed) => {
                self.remember_nodes(&writes);
                self.forget_answers(&db, &writes).await;
                Tried::Done(decisions)
            }
            Ok(Stored::Undone(fault)) => Tried::Failed(fault),
            Ok(Stored::Unknown) => {
                lease.throw_away();
                Tried::Unknown(decisions, Box::new(writes))
            }
            Err(fault) => {
                lease.throw_away();
                Tried::Failed(fault)
            }
        }
    }

    fn remember_nodes(&self, writes: &Writes) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if nodes.len() >= NODES_MAX {
            nodes.clear();
        }
        nodes.extend(&writes.nodes);
    }

    /// Deletes old idempotency records after every so many new ones.
    async fn forget_answers(&self, db: &Db<'_>, writes: &Writes) {
        let more = writes.answers.len() as u64;
        let before = self.answers.fetch_add(more, Ordering::Relaxed);
        let newest = writes.answers.values().map(|record| record.time).max();
        if let Some(now) = newest.filter(|_| before / FORGET_EVERY != (before + more) / FORGET_EVERY)
            && let Err(fault) = idempotency::forget(db, now).await
        {
            // They are in nobody's way, and the next time is soon.
            tracing::warn!(?fault, "old idempotency records could not be deleted");
        }
    }

    /// Whether a batch is stored whose commit got no answer; `Unknown` if that cannot be found out soon.
    async fn find_out(&self, writes: &Writes) -> Result<bool, Fault> {
        let mut attempts = Attempts::default();
        loop {
            let fault = match self.look_for(writes).await {
                Ok(stored) => return Ok(stored),
                Err(fault) => fault,
            };
            if !attempts.pause(&fault, &self.pool).await {
                tracing::error!(?fault, "whether a commit was stored cannot be found out");
                return Err(Fault::Unknown);
            }
        }
    }

    async fn look_for(&self, writes: &Writes) -> Result<bool, Fault> {
        let transaction = Transaction::begin(self.pool.get().await?, "BEGIN").await?;
        let found = {
            let db = transaction.db();
            batch::is_stored(&db, writes).await
        };
        transaction.end(found).await
    }

    /// Tells listeners of the entries, then replies to the callers. Gives back the appends that have to wait.
    fn publish(&self, works: Vec<Work>, decisions: Vec<Decision>) -> Vec<Work> {
        let mut left = Vec::new();
        let mut entries = Vec::new();
        let mut replies = Vec::new();
        for (mut work, decision) in works.into_iter().zip(decisions) {
            match decision {
                Decision::Accepted(placed) => {
                    let own = entries_of(&mut work.append, placed);
                    replies.push((work.reply, Ok(own[0].clone())));
                    entries.extend(own);
                }
                Decision::Refused(why) => replies.push((work.reply, Err(why))),
                Decision::Waits => {
                    work.alone = true;
                    left.push(work);
                }
            }
        }
        self.listeners.tell(&entries);
        for (reply, outcome) in replies {
            // An error means that the caller went away; the append is stored all the same.
            let _ = reply.send(outcome);
        }
        left
    }
}

/// The entry of an append, and that of the run at the top.
fn entries_of(append: &mut Append, placed: Placed) -> Vec<Arc<Entry>> {
    let run = match &append.run {
        RunWrite::None => None,
        RunWrite::Create { record, .. } => Some(record.id),
        RunWrite::Extend { id, .. } => Some(*id),
    };
    let entry = Arc::new(Entry {
        space: append.space,
        run,
        first: placed.first,
        time: append.time,
        events: std::mem::take(&mut append.events),
    });
    let above = append.above.take().zip(placed.above);
    let above = above.map(|(above, (first, run))| {
        Arc::new(Entry {
            space: above.space,
            run,
            first,
            time: append.time,
            events: above.events,
        })
    });
    std::iter::once(entry).chain(above).collect()
}

/// Replies to the callers of a batch that failed.
fn refuse(works: Vec<Work>, fault: Fault) {
    tracing::error!(?fault, writes = works.len(), "a commit failed");
    let again = |fault: &Fault| match fault {
        Fault::Refused(StoreError::Exists) => StoreError::Exists,
        Fault::Refused(StoreError::Corrupt(why)) => StoreError::Corrupt(why.clone()),
        Fault::Refused(other) => StoreError::Unavailable(other.to_string()),
        Fault::Again(why) | Fault::Failed(why) => StoreError::Unavailable(why.clone()),
        Fault::ReadOnly => Fault::ReadOnly.into_store_error(),
        Fault::Unknown => StoreError::Timeout,
    };
    for work in works {
        // An error means that the caller went away.
        let _ = work.reply.send(Err(again(&fault)));
    }
}
