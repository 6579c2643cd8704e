//! The log: what happened, in the order it was stored.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_kernel::event::{Entry, Event, Seq, Status};
use toolgate_kernel::id::{NodeId, RunId, SpaceId};
use toolgate_kernel::time::Time;

use super::{IdempotencyRecord, RunRecord, SpaceRecord, StoreError};
use crate::usage::ToolUse;

/// Stores events and reads them back.
#[async_trait]
pub trait Log: Send + Sync {
    /// Adds somebody who learns of commits from now on.
    fn listen(&self, listener: Arc<dyn CommitListener>);
    /// Stores events, all or none, and gives them their places.
    async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError>;
    /// The whole log of a run, in order.
    async fn run_log(&self, run: RunId) -> Result<Vec<Entry>, StoreError>;
    /// Part of a space's log, in order.
    async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<Vec<Entry>, StoreError>;
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
    /// Now.
    pub time: Time,
    /// Remembers the answer to a request that may be sent again.
    pub idempotency: Option<IdempotencyRecord>,
}

/// What an append does to a run's row.
#[derive(Debug, Clone)]
pub enum RunWrite {
    /// A message that starts no run.
    None,
    /// A new run. `record.version`, `updated` and `lane` are set by the store. `space` is made in the same write
    /// when given. Refused with `Exists` when the id is there, and with `OpenRun` when the record has no parent and
    /// its agent has another open run without a parent in the space.
    Create {
        /// The row.
        record: Box<RunRecord>,
        /// Its space, when that is new too.
        space: Option<Box<SpaceRecord>>,
        /// Refused with `Full` when so many runs stand below its root already.
        family_max: Option<u32>,
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

/// Which part of a log to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRange {
    /// Entries with an event after this place.
    pub after: Seq,
    /// Entries whose first event stands before this place.
    pub before: Option<Seq>,
    /// At most so many entries.
    pub limit: usize,
}

/// Learns of every commit, in commit order, before the append is acknowledged. Must not block.
pub trait CommitListener: Send + Sync {
    /// These entries are stored.
    fn committed(&self, entries: &[Arc<Entry>]);
}
