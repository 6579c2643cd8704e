//! The log: what happened, in the order it was stored.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_kernel::event::{Entry, Event, Seq, Status};
use toolgate_kernel::id::{EntityId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use super::{IdempotencyRecord, RunRecord, SpaceRecord, StoreError, Wake};
use crate::consumption::Consumption;
use crate::usage::ToolUse;

/// Stores events and reads them back.
#[async_trait]
pub trait Log: Send + Sync {
    /// Adds somebody who learns of commits from now on.
    fn listen(&self, listener: Arc<dyn CommitListener>);
    /// Stores events, all or none, and gives them their places. `EntityDeleted` when something begins with them for a person who was
    /// deleted ([`Append::begins_for`]).
    async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError>;
    /// A page of a run's log.
    async fn run_log(&self, run: RunId, range: LogRange) -> Result<LogPage, StoreError>;
    /// A page of a space's log.
    async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<LogPage, StoreError>;
    /// Place of the last event of a space; 0 when it has none.
    async fn space_tail(&self, space: SpaceId) -> Result<Seq, StoreError>;
    /// The entry that a run began with.
    async fn run_start(&self, run: RunId) -> Result<Option<Entry>, StoreError> {
        let first = LogRange {
            limit: 1,
            ..LogRange::default()
        };
        Ok(self.run_log(run, first).await?.entries.pop())
    }
    /// Those of a project's definitions that have these hashes; in no order.
    async fn definitions(
        &self,
        project: ProjectId,
        hashes: &[String],
    ) -> Result<Vec<StoredDefinition>, StoreError>;
}

/// One atomic write to a space's log and to the row of the run it concerns.
#[derive(Debug, Clone)]
pub struct Append {
    /// The space.
    pub space: SpaceId,
    /// What it does to which run.
    pub run: RunWrite,
    /// Never empty, all durable.
    pub events: Vec<Event>,
    /// Calls that ended with it, for the figures of their tools.
    pub usage: Vec<ToolUse>,
    /// What it adds to the counters of its project, at most one for each run. What counts for a person who was deleted counts for
    /// nobody.
    pub consumption: Vec<Consumption>,
    /// What a child run tells the run at the top with it.
    pub above: Option<Above>,
    /// Runs that are woken by it, or whose wake-ups it has acted on.
    pub wakes: Vec<Wake>,
    /// Now.
    pub time: Time,
    /// Remembers the answer to a request that may be sent again, under each of its keys; refused with `Exists` when
    /// one of them is taken.
    pub idempotency: Vec<IdempotencyRecord>,
}

impl Append {
    /// People for whom something begins with it: whoever starts a run at the top or says something outside of runs, and the members
    /// of a new space.
    pub fn begins_for(&self) -> Vec<EntityId> {
        match &self.run {
            RunWrite::None => self.events.iter().filter_map(said_by).collect(),
            RunWrite::Create { record, space, .. } => {
                let members = space.iter().flat_map(|space| &space.members);
                record.user.iter().chain(members).copied().collect()
            }
            RunWrite::Extend { .. } => Vec::new(),
        }
    }
}

fn said_by(event: &Event) -> Option<EntityId> {
    match event {
        Event::Said(said) => said.message.from,
        Event::Told(told) => told.from,
        _ => None,
    }
}

/// Events that a child run stores in the log of the run at the top, as an entry of that run. They change nothing about
/// it but its version, so whoever drives it reads them before it writes again. When that run has ended, they are an entry
/// of the space alone.
#[derive(Debug, Clone)]
pub struct Above {
    /// The space of the run at the top.
    pub space: SpaceId,
    /// The run at the top.
    pub run: RunId,
    /// Never empty, all durable.
    pub events: Vec<Event>,
}

/// What an append does to a run's row.
#[derive(Debug, Clone)]
pub enum RunWrite {
    /// A message that starts no run.
    None,
    /// A new run. `record.version`, `updated` and `lane` are set by the store. `space` is made in the same write
    /// when given. Refused with `Exists` when the id is there, and with `OpenRun` when the record has no parent and
    /// its agent has another open run without a parent in the space, and with `AgentRemoved` when it has no parent and
    /// its agent was removed.
    Create {
        /// The row.
        record: Box<RunRecord>,
        /// Its space, when that is new too.
        space: Option<Box<SpaceRecord>>,
        /// Refused with `Full` when so many runs stand below its root already.
        descendants_max: Option<u32>,
        /// The definitions that it pins, unless a run of this project has stored them already. One that is there stays.
        definitions: Arc<[StoredDefinition]>,
    },
    /// More events of a run; refused with `Conflict` unless its version and epoch are those given and it is
    /// not final.
    Extend {
        /// The run's id.
        id: RunId,
        /// Place of the last event that the writer has read.
        version: Seq,
        /// The epoch that the writer has read, or holds.
        epoch: u64,
        /// Where the run stands after it.
        status: Status,
        /// When it must be looked at again.
        wake_at: Option<Time>,
        /// What becomes of the lease.
        lease: LeaseWrite,
    },
}

/// The definition of a tool as runs pin it. Like an agent's configuration it may hold secrets: never shown as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDefinition {
    /// SHA-256 of the definition, in hex; unique in its project.
    pub hash: String,
    /// The definition, with everything filled in.
    pub definition: Json,
}

/// What becomes of a run's lease with an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseWrite {
    /// Nothing.
    Keep,
    /// Nobody drives it any more.
    Release,
    /// This node drives it from now on, with the next epoch.
    Take(NodeId),
}

/// Most entries of a page, unless a range says otherwise.
pub const PAGE_ENTRIES: usize = 1_000;
/// Stored bytes after which a page ends, unless a range says otherwise.
pub const PAGE_BYTES: usize = 1 << 20;

/// Which part of a log to read, and how much of it at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRange {
    /// Entries with an event after this place.
    pub after: Seq,
    /// Entries whose first event stands before this place.
    pub before: Option<Seq>,
    /// From which end of the range to read.
    pub order: LogOrder,
    /// At most so many entries.
    pub limit: usize,
    /// The page ends with the entry that reaches so many bytes, so it has at least one, however large that is.
    pub bytes: usize,
}

/// The order of entries in a page, and so the end of the range that it is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogOrder {
    /// As they were stored.
    OldestFirst,
    /// The other way round.
    NewestFirst,
}

/// The first page of a whole log.
impl Default for LogRange {
    fn default() -> Self {
        Self {
            after: Seq(0),
            before: None,
            order: LogOrder::OldestFirst,
            limit: PAGE_ENTRIES,
            bytes: PAGE_BYTES,
        }
    }
}

impl LogRange {
    /// The page that follows a cursor.
    pub fn after(after: Seq) -> Self {
        Self {
            after,
            ..Self::default()
        }
    }
    /// The last page of a whole log, newest entry first.
    pub fn newest() -> Self {
        Self {
            order: LogOrder::NewestFirst,
            ..Self::default()
        }
    }
    /// What is left of the range behind an entry that was read.
    pub fn behind(self, entry: &Entry) -> Self {
        match self.order {
            LogOrder::OldestFirst => Self {
                after: entry.last(),
                ..self
            },
            LogOrder::NewestFirst => Self {
                before: Some(entry.first),
                ..self
            },
        }
    }
}

/// Entries that were read together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogPage {
    /// In the order that the range asked for.
    pub entries: Vec<Entry>,
    /// Bytes of their events as they are stored.
    pub bytes: usize,
    /// A limit was reached and the range has more entries.
    pub more: bool,
}

impl LogPage {
    /// Whether it has all that `range` allows: for stores, which leave out the next entry then.
    pub fn is_full(&self, range: LogRange) -> bool {
        self.entries.len() >= range.limit || (self.bytes >= range.bytes && !self.entries.is_empty())
    }
}

/// Reads a log page by page, so that no more than a page of it is in memory.
#[derive(Debug, Clone, Copy)]
pub struct Pages {
    of: LogOf,
    /// What is left to be read.
    rest: Option<LogRange>,
}

#[derive(Debug, Clone, Copy)]
enum LogOf {
    Run(RunId),
    Space(SpaceId),
}

impl Pages {
    /// The entries of a run.
    pub fn of_run(run: RunId, range: LogRange) -> Self {
        Self {
            of: LogOf::Run(run),
            rest: Some(range),
        }
    }
    /// The entries of a space.
    pub fn of_space(space: SpaceId, range: LogRange) -> Self {
        Self {
            of: LogOf::Space(space),
            rest: Some(range),
        }
    }
    /// The next page; none when everything was read. After an error the same page may be asked for again.
    pub async fn next(&mut self, log: &(impl Log + ?Sized)) -> Result<Option<LogPage>, StoreError> {
        let Some(range) = self.rest else {
            return Ok(None);
        };
        let page = match self.of {
            LogOf::Run(run) => log.run_log(run, range).await?,
            LogOf::Space(space) => log.space_log(space, range).await?,
        };
        let last = page.entries.last().filter(|_| page.more);
        self.rest = last.map(|last| range.behind(last));
        Ok(Some(page))
    }
    /// Every entry that is left at once: for what cannot be folded page by page.
    pub async fn all(mut self, log: &(impl Log + ?Sized)) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        while let Some(page) = self.next(log).await? {
            entries.extend(page.entries);
        }
        Ok(entries)
    }
}

/// Learns of every commit, in commit order, before the append is acknowledged. Must not block.
pub trait CommitListener: Send + Sync {
    /// These entries are stored.
    fn committed(&self, entries: &[Arc<Entry>]);
}
