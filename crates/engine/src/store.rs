//! The seam to what remembers. A domain interface, not a layer over SQL: each store has its own statements,
//! and all of them pass the same conformance suite (`toolgate_testkit::store_conformance`).
//!
//! Five narrow traits: [`Log`] (events), [`Runs`] (rows, leases, wake-ups, usage), [`Directory`] (spaces,
//! entities, agents, projects, keys, idempotency keys), [`Retention`] (deleting) and
//! [`Records`](crate::records::Records) (what the gateway's own tools keep). [`Store`] is the first four together; whoever
//! needs one takes that one.

mod directory;
mod log;
mod retention;
mod runs;

pub use directory::{
    AgentRecord, Directory, EntityRecord, Holdings, IdempotencyRecord, IdentityProvider, KeyKind, KeyRecord,
    MemberRecord, ProjectRecord, Purged, RevisionRecord, SpaceRecord,
};
pub use log::{
    Above, Append, CommitListener, LeaseWrite, Log, LogOrder, LogPage, LogRange, PAGE_BYTES, PAGE_ENTRIES,
    Pages, RunWrite, StoredDefinition,
};
pub use retention::{
    DELETED_KNOWN, Deleted, FoundEntries, LogPlace, LooseSpaces, Retention, Trim, TrimLimit, Trimmed,
};
pub use runs::{
    AskingFilter, LANES, LookedAtMax, NODE_LEASE, RECENT_COUNT_MAX, RecentFilter, RunFilter, RunPage,
    RunRecord, RunTree, Runs, TITLE_CHARS_MAX, Wake,
};

use async_trait::async_trait;
use toolgate_kernel::id::RunId;

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It was not done, and may be tried again (busy, disk full, connection refused).
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// Nobody knows whether it was done.
    #[error("the store did not answer in time")]
    Timeout,
    /// Somebody else appended first, or the lease is lost: read the run again.
    #[error("the run has moved on")]
    Conflict,
    /// It exists already.
    #[error("it exists already")]
    Exists,
    /// The agent has another open run in the space, named here: it may have at most one that no call started.
    #[error("{0} is still open in this space, and an agent has at most one open run per space")]
    OpenRun(RunId),
    /// The agent of a new run was removed.
    #[error("the agent was removed")]
    AgentRemoved,
    /// The space was deleted: nothing begins in it.
    #[error("the space was deleted")]
    SpaceDeleted,
    /// The person was deleted: nothing begins for them.
    #[error("the person was deleted")]
    EntityDeleted,
    /// The run tree has as many as it may.
    #[error("the run tree is full")]
    Full,
    /// The run's log has an event that this version can pass on but not act on: a node of a newer version drives it.
    #[error("{run} holds a {kind:?} event, written by a newer version, which has to go on with it")]
    Newer {
        /// The run's id.
        run: RunId,
        /// Name of the event.
        kind: String,
    },
    /// What is stored cannot be read: a bug, or a damaged file.
    #[error("stored data cannot be read: {0}")]
    Corrupt(String),
}

/// Everything the engine needs of a store. Nothing is acknowledged before it is on disk.
#[async_trait]
pub trait Store: Log + Runs + Directory + Retention {
    /// Whether what runs need can be read, and a write would be taken now.
    async fn ready(&self) -> Result<(), StoreError>;
    /// Finishes what was accepted and closes. Nothing may be asked of it afterwards.
    async fn close(&self);
}
