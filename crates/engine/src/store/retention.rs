//! What data has an end: deleting runs, spaces and people, and what is left of a log afterwards.
//!
//! Every write here is one transaction of bounded size, and has no effect when it is repeated: whoever deletes stores a
//! plan first ([`crate::deletion`]) and works it off in portions, so a crash between any two of them costs nothing.

use std::time::Duration;

use async_trait::async_trait;
use toolgate_kernel::event::{Entry, Event, Seq};
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;

use super::{Purged, RunRecord, StoreError};
use crate::records::Owner;
use crate::usage::Day;

/// How long it is known that a run, a space or a person was deleted: a stream that comes back with a cursor is told so, and a
/// request that was under way brings neither the space nor anything of the person back.
pub const DELETED_KNOWN: Duration = Duration::from_secs(7 * 24 * 3600);

/// Deletes what is stored.
#[async_trait]
pub trait Retention: Send + Sync {
    /// The last place of a space's log that was deleted, 0 when nothing was: a reader with an earlier cursor has missed
    /// something that it cannot catch up on. Places are never given twice, whatever was deleted.
    async fn log_floor(&self, space: SpaceId) -> Result<Seq, StoreError>;
    /// How often entries of a space's log were deleted or rewritten. Whoever keeps what it has read of the log notes this before
    /// it reads, and reads again when it is another: that is so whatever notices were lost.
    async fn log_rewrites(&self, space: SpaceId) -> Result<u64, StoreError>;
    /// Whether the project had this run, space or person, and it was deleted no longer than [`DELETED_KNOWN`] ago.
    async fn was_deleted(&self, project: ProjectId, deleted: Deleted) -> Result<bool, StoreError>;
    /// Runs at the top of trees in which every run has ended by `before`; those that ended first come first.
    async fn ended_trees(
        &self,
        project: ProjectId,
        before: Time,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError>;
    /// Bytes of a run's entries as they are stored. Nothing of what they say is read.
    async fn run_bytes(&self, run: RunId) -> Result<u64, StoreError>;
    /// Looks at no more than `count` spaces of a project, those behind `after` in the order of ids, for entries that belong to no
    /// run and were stored before a time.
    async fn loose_spaces(
        &self,
        project: ProjectId,
        before: Time,
        after: SpaceId,
        count: usize,
    ) -> Result<LooseSpaces, StoreError>;
    /// Entries of a space that belong to no run and were stored before a time, oldest first, those behind `after`.
    async fn loose_entries(
        &self,
        space: SpaceId,
        before: Time,
        after: (Time, Seq),
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError>;
    /// Removes the rows of runs, and remembers that they were deleted; their entries stay until they are trimmed.
    /// `Conflict` and nothing is removed when one of them is open. Rows that are gone are passed over.
    async fn remove_runs(&self, project: ProjectId, runs: Vec<RunId>, now: Time) -> Result<(), StoreError>;
    /// Removes the row of a space with its members, and remembers that it was deleted: no run and no message begins in it
    /// any more (`SpaceDeleted`). Runs that are there can still append, and its log stays until it is trimmed.
    async fn remove_space(&self, project: ProjectId, space: SpaceId, now: Time) -> Result<(), StoreError>;
    /// Deletes entries from a log, oldest first.
    async fn trim_log(&self, trim: Trim, limit: TrimLimit) -> Result<Trimmed, StoreError>;
    /// Deletes at most `limit` records of an owner, whatever their kind, and says how many those were. Nothing is left, and
    /// nothing names the owner, when it says fewer than `limit`.
    async fn remove_records(
        &self,
        project: ProjectId,
        owner: Owner,
        limit: usize,
    ) -> Result<Purged, StoreError>;
    /// Deletes the figures of tools of the days before one, and says how many rows those were.
    async fn remove_usage(&self, project: ProjectId, before: Day) -> Result<u64, StoreError>;
    /// Deletes at most `limit` sums of what was consumed on the days before one, and says how many.
    async fn remove_consumption(
        &self,
        project: ProjectId,
        before: Day,
        limit: usize,
    ) -> Result<u64, StoreError>;
    /// Adds at most `limit` sums of what was consumed for a person to those of nobody, and says how many.
    async fn unlink_consumption(
        &self,
        project: ProjectId,
        user: EntityId,
        limit: usize,
    ) -> Result<u64, StoreError>;
    /// Forgets nodes whose heartbeat ended before a time and that hold no run, and says how many.
    async fn forget_nodes(&self, before: Time) -> Result<u64, StoreError>;
    /// Takes user and title off at most `limit` runs that an entity started, and says of how many.
    async fn unlink_runs(&self, project: ProjectId, user: EntityId, limit: usize) -> Result<u64, StoreError>;
    /// Removes an entity, and remembers that it was deleted: no space or run begins for it any more, it becomes a member of none, and
    /// it says nothing outside of runs (`EntityDeleted`). What is consumed for it counts for nobody. Its memberships stay, so that its
    /// spaces are found. False when there is no such entity.
    async fn remove_entity(
        &self,
        project: ProjectId,
        entity: EntityId,
        now: Time,
    ) -> Result<bool, StoreError>;
    /// Looks through at most `rows` entries of a project's logs, in the order of spaces and places, for those whose stored
    /// form has this text.
    async fn find_entries(
        &self,
        project: ProjectId,
        text: &str,
        after: LogPlace,
        rows: usize,
    ) -> Result<FoundEntries, StoreError>;
    /// Replaces the events of a stored entry by as many others; `Conflict` when it is no longer as in `before`, and no
    /// effect when it is gone.
    async fn rewrite_entry(&self, before: Entry, events: Vec<Event>) -> Result<(), StoreError>;
    /// Gives at most so many pages of what was deleted back to the file system, and says how many. When that is all, copies of
    /// deleted data in a write-ahead log go as well. A store that manages its files itself gives back none.
    async fn reclaim(&self, pages: u32) -> Result<u32, StoreError>;
}

/// What was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deleted {
    /// A run.
    Run(RunId),
    /// A space.
    Space(SpaceId),
    /// A person.
    Entity(EntityId),
}

impl Deleted {
    /// The form in which stores remember it: a letter, because a child run and its space have the same id, and the id.
    pub fn to_bytes(self) -> [u8; 17] {
        let (letter, id) = match self {
            Self::Run(run) => (b'r', run.to_bytes()),
            Self::Space(space) => (b's', space.to_bytes()),
            Self::Entity(entity) => (b'e', entity.to_bytes()),
        };
        let mut bytes = [letter; 17];
        bytes[1..].copy_from_slice(&id);
        bytes
    }
}

/// Spaces that have entries of no run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LooseSpaces {
    /// The spaces.
    pub spaces: Vec<SpaceId>,
    /// The last space that was looked at; none when there is none behind it.
    pub next: Option<SpaceId>,
}

/// Which entries to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trim {
    /// Those of a run.
    Run(RunId),
    /// All of a space that was removed.
    Space(SpaceId),
    /// Those of a space that belong to no run and were stored before a time.
    Loose(SpaceId, Time),
}

/// How much is deleted in one write, so that other writes do not wait for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimLimit {
    /// Most entries.
    pub entries: usize,
    /// Stored bytes after which no further entry is deleted.
    pub bytes: usize,
}

impl Default for TrimLimit {
    fn default() -> Self {
        Self {
            entries: 500,
            bytes: 1 << 20,
        }
    }
}

/// What one write deleted of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trimmed {
    /// Entries.
    pub entries: u64,
    /// Bytes of their events as they were stored.
    pub bytes: u64,
    /// There are more.
    pub more: bool,
}

/// A place among all logs of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPlace {
    /// The space.
    pub space: SpaceId,
    /// The place in its log.
    pub seq: Seq,
}

impl LogPlace {
    /// Before everything.
    pub fn start() -> Self {
        Self {
            space: SpaceId::from_bytes([0; 16]),
            seq: Seq(0),
        }
    }
}

/// Entries that were found, and where to look on.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundEntries {
    /// The entries.
    pub entries: Vec<Entry>,
    /// The last place that was looked at; none when there is nothing behind it.
    pub next: Option<LogPlace>,
}
