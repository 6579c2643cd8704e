//! The seam to what remembers. A domain interface, not a layer over SQL: each store has its own statements,
//! and all of them pass the same conformance suite (`toolgate_testkit::store_conformance`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use toolgate_kernel::event::{Entry, Event, Seq, Status};
use toolgate_kernel::id::{CallId, EntityId, KeyId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use crate::records::Receipt;
use crate::usage::{Day, ToolUse, UsageRecord};

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
    /// The family of runs has as many as it may.
    #[error("the family of runs is full")]
    Full,
    /// What is stored cannot be read: a bug, or a damaged file.
    #[error("stored data cannot be read: {0}")]
    Corrupt(String),
}

/// A run's row: what is needed to find it without reading its log.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Which.
    pub id: RunId,
    /// Whose.
    pub project: ProjectId,
    /// Where its events stand.
    pub space: SpaceId,
    /// Whose configuration it follows.
    pub agent: AgentName,
    /// Which revision of it.
    pub revision: u32,
    /// The call that started it, for a child run.
    pub parent: Option<CallId>,
    /// The run at the top of its tree; itself when it has no parent.
    pub root: RunId,
    /// Where it stands.
    pub status: Status,
    /// When it began.
    pub created: Time,
    /// When it last moved.
    pub updated: Time,
    /// Place of its last event: what an append names to show that it has read everything.
    pub version: Seq,
    /// When it must be looked at again: the earliest of its deadlines.
    pub wake_at: Option<Time>,
    /// Who drives it, for as long as its heartbeat lasts; nobody while it only waits.
    pub node: Option<NodeId>,
    /// Counts how often its lease was taken: a write with an older one is refused.
    pub epoch: u64,
}

/// A run at the top and all below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Family {
    /// Runs below the one at the top.
    pub descendants: u32,
    /// Tokens that all of them have used.
    pub tokens: u64,
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
    /// A new run. `record.version` and `updated` are set by the store; refused with `Exists` when the id is
    /// there. `space` is made in the same write when given.
    Create {
        /// The row.
        record: Box<RunRecord>,
        /// Its space, when that is new too.
        space: Option<Box<SpaceRecord>>,
        /// Refused with `Full` when so many runs stand below its root already.
        family_max: Option<u32>,
    },
    /// More events of a run; refused with `Conflict` unless its version and epoch are those given.
    Extend {
        /// Which.
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

/// A space's row.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceRecord {
    /// Which.
    pub id: SpaceId,
    /// Whose.
    pub project: ProjectId,
    /// Its name for people.
    pub title: Option<String>,
    /// The agent that answers when a message names none.
    pub agent: Option<AgentName>,
    /// Whatever the project attached.
    pub metadata: Option<Json>,
    /// Who takes part, in the order they joined.
    pub members: Vec<EntityId>,
    /// When it was made.
    pub created: Time,
}

/// An entity's row.
#[derive(Debug, Clone, PartialEq)]
pub struct EntityRecord {
    /// Which.
    pub id: EntityId,
    /// Whose.
    pub project: ProjectId,
    /// The project's own name for it: a JWT's `sub`. Unique in the project.
    pub subject: String,
    /// `person`, `agent`, `device` or the project's own word.
    pub kind: String,
    /// Its name for people.
    pub name: Option<String>,
    /// Whatever the project attached.
    pub metadata: Option<Json>,
    /// When it was made.
    pub created: Time,
}

/// One revision of an agent's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRecord {
    /// Whose.
    pub project: ProjectId,
    /// Unique in the project.
    pub name: AgentName,
    /// Counted from 1.
    pub revision: u32,
    /// The configuration as it was written, secrets included: never shown as it is.
    pub config: Json,
    /// When it was written.
    pub created: Time,
}

/// A project's row.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectRecord {
    /// Which.
    pub id: ProjectId,
    /// Unique among projects.
    pub name: String,
    /// What signs its users' tokens (HS256).
    pub jwt_secret: Option<String>,
    /// Where the keys are that sign its users' tokens (RS256, ES256, EdDSA).
    pub jwks_url: Option<String>,
    /// When it was made.
    pub created: Time,
}

/// What a key opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Everything in its project.
    Secret,
    /// What is meant for the user whose token comes with it.
    Public,
}

/// An API key's row; the key itself is nowhere.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRecord {
    /// Names it to people.
    pub id: KeyId,
    /// Whose.
    pub project: ProjectId,
    /// What it opens.
    pub kind: KeyKind,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    /// The first characters, for people to tell it from others.
    pub hint: String,
    /// What it is for.
    pub name: Option<String>,
    /// When it was made.
    pub created: Time,
}

/// The answer to a request that may be sent again.
#[derive(Debug, Clone, PartialEq)]
pub struct IdempotencyRecord {
    /// Whose.
    pub project: ProjectId,
    /// The key that the client chose, with the operation it was used for.
    pub key: String,
    /// SHA-256 of the request: the same key with another request is an error.
    pub request: [u8; 32],
    /// What to answer: ids only.
    pub answer: Json,
    /// When; forgotten after a day.
    pub time: Time,
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// In this space only.
    pub space: Option<SpaceId>,
    /// In this status only.
    pub status: Option<Status>,
    /// Children of this run only.
    pub parent: Option<RunId>,
    /// Older than this one: the last of the page before.
    pub before: Option<RunId>,
    /// At most so many.
    pub limit: usize,
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

/// What remembers. Nothing is acknowledged before it is on disk.
#[async_trait]
pub trait Store: Send + Sync {
    /// Adds somebody who learns of commits from now on.
    fn listen(&self, listener: Arc<dyn CommitListener>);

    // The log.
    /// Stores events, all or none, and gives them their places.
    async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError>;
    /// The whole log of a run, in order.
    async fn run_log(&self, run: RunId) -> Result<Vec<Entry>, StoreError>;
    /// Part of a space's log, in order.
    async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<Vec<Entry>, StoreError>;

    // Runs.
    /// A run's row.
    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError>;
    /// Rows of a project's runs, newest first.
    async fn runs(&self, project: ProjectId, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError>;
    /// What the run at the top of a tree and all below it come to: what `step-finish` tells of tokens is counted
    /// by the write that stores it. Nothing for a run that is not there.
    async fn family(&self, root: RunId) -> Result<Family, StoreError>;
    /// Runs that are not final and that nobody drives but somebody should: driven by a node whose heartbeat
    /// ended before `now`, or undriven and `queued`, `running`, or with `wake_at` at or before `now`.
    async fn claimable(&self, now: Time, limit: usize) -> Result<Vec<RunId>, StoreError>;
    /// Takes the lease of a run that nobody alive holds, or that `node` holds already, with the next epoch.
    /// None when somebody else holds it or the run is final or absent.
    async fn claim(&self, run: RunId, node: NodeId, now: Time) -> Result<Option<RunRecord>, StoreError>;
    /// Gives a lease back without an append; nothing when it is lost already.
    async fn release(&self, run: RunId, epoch: u64) -> Result<(), StoreError>;
    /// The node lives until `until`.
    async fn heartbeat(&self, node: NodeId, until: Time) -> Result<(), StoreError>;
    /// The earliest `wake_at` of all runs that are not final.
    async fn next_wake(&self) -> Result<Option<Time>, StoreError>;

    // Spaces, entities, agents, projects, keys.
    /// Makes a space; `Exists` when the id is there.
    async fn create_space(&self, space: SpaceRecord) -> Result<(), StoreError>;
    /// A space's row.
    async fn space(&self, space: SpaceId) -> Result<Option<SpaceRecord>, StoreError>;
    /// A project's spaces, newest first, older than `before`; only those with `member` when given.
    async fn spaces(
        &self,
        project: ProjectId,
        member: Option<EntityId>,
        before: Option<SpaceId>,
        limit: usize,
    ) -> Result<Vec<SpaceRecord>, StoreError>;
    /// Gives a space another title and metadata; `Conflict` when these are no longer as in `before`. A receipt is kept
    /// with the change; `Exists` when it is there already, and then so is the change.
    async fn amend_space(
        &self,
        before: SpaceRecord,
        title: Option<String>,
        metadata: Option<Json>,
        receipt: Option<Receipt>,
    ) -> Result<(), StoreError>;
    /// Adds a member; nothing when it is one.
    async fn add_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError>;
    /// Takes a member out; nothing when it is none.
    async fn remove_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError>;
    /// Makes an entity, or changes name, kind and metadata of the one with its subject; gives the stored row.
    async fn put_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError>;
    /// An entity by id.
    async fn entity(&self, id: EntityId) -> Result<Option<EntityRecord>, StoreError>;
    /// An entity by its subject.
    async fn entity_of(&self, project: ProjectId, subject: &str) -> Result<Option<EntityRecord>, StoreError>;
    /// Stores the next revision and gives its number; the same config as the newest revision makes none.
    /// A removed agent's numbers go on where they ended.
    async fn put_agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        config: Json,
        now: Time,
    ) -> Result<u32, StoreError>;
    /// One revision, also of a removed agent; without a number the newest, none when it was removed.
    async fn agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        revision: Option<u32>,
    ) -> Result<Option<AgentRecord>, StoreError>;
    /// The newest revision of every agent, by name.
    async fn agents(&self, project: ProjectId) -> Result<Vec<AgentRecord>, StoreError>;
    /// Removes an agent, with all records that its entity owns; runs under way keep their revision. False when there is
    /// none.
    async fn remove_agent(&self, project: ProjectId, name: &AgentName) -> Result<bool, StoreError>;
    /// Makes a project or changes its secret and JWKS address.
    async fn put_project(&self, project: ProjectRecord) -> Result<(), StoreError>;
    /// A project by id.
    async fn project(&self, id: ProjectId) -> Result<Option<ProjectRecord>, StoreError>;
    /// A project by name.
    async fn project_named(&self, name: &str) -> Result<Option<ProjectRecord>, StoreError>;
    /// Stores a key; `Exists` when its hash is there.
    async fn put_key(&self, key: KeyRecord) -> Result<(), StoreError>;
    /// A key by its hash.
    async fn key(&self, hash: [u8; 32]) -> Result<Option<KeyRecord>, StoreError>;
    /// A project's keys.
    async fn keys(&self, project: ProjectId) -> Result<Vec<KeyRecord>, StoreError>;
    /// Removes a key. False when there is none.
    async fn remove_key(&self, project: ProjectId, id: KeyId) -> Result<bool, StoreError>;
    /// The answer that was given before.
    async fn idempotency(
        &self,
        project: ProjectId,
        key: &str,
    ) -> Result<Option<IdempotencyRecord>, StoreError>;

    /// The figures of a tool since a day, that day included; in no order.
    async fn usage(&self, project: ProjectId, tool: &str, since: Day)
    -> Result<Vec<UsageRecord>, StoreError>;

    /// Whether a write would be taken now.
    async fn ready(&self) -> Result<(), StoreError>;
    /// Finishes what was accepted and closes. Nothing may be asked of it afterwards.
    async fn close(&self);
}

/// How long the heartbeat of a node may be silent before its runs are taken over.
pub const NODE_LEASE: Duration = Duration::from_secs(15);
