//! Drives runs: asks the kernel what is due, stores what happened, and only then acts. Owns the tasks of
//! runs and defines the seams to models, stores, tools and time. Knows no protocol.
//!
//! Start with [`Engine`]; then `driver` (one task per run that has work), `feed` (live events), and the
//! seams `store`, `model`, `tools`, `clock`.

pub mod clock;
pub mod feed;
pub mod intake;
pub mod model;
pub mod store;
pub mod tools;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolgate_kernel::agent::Agent;
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::id::{ApprovalId, CallId, NodeId, ProjectId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::problem::Problem;

use clock::Clock;
use feed::{Scope, Subscription};
use intake::{By, Claimed, Decided, Decision, IntakeError, Post, PostError, Posted, Receipt, Submission};
use model::Model;
use store::{Store, StoreError};
use tools::ServerTools;

/// What may be set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This process.
    pub node: NodeId,
    /// Calls of one run on the gateway's side at once.
    pub parallel_calls: usize,
    /// Batches a reader may lag behind before it is cut.
    pub reader_backlog: usize,
    /// Drop a run from memory at every pause and rebuild it from its log after every append: for tests.
    pub always_evict: bool,
}

/// Everything the engine works with.
pub struct Parts {
    /// What remembers.
    pub store: Arc<dyn Store>,
    /// What thinks.
    pub model: Arc<dyn Model>,
    /// What the gateway runs itself.
    pub tools: Arc<dyn ServerTools>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// Why a configuration was not stored.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It is wrong in these ways.
    #[error("the configuration has {} problems", .0.len())]
    Invalid(Vec<Problem>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The handle that doors hold. Cheap to clone.
#[derive(Clone)]
pub struct Engine {}

#[allow(unused_variables, reason = "skeleton")]
impl Engine {
    /// Puts the parts together; nothing runs until [`Engine::drive`].
    pub fn new(parts: Parts, settings: Settings) -> Self {
        todo!()
    }
    /// Heartbeat, recovery, timers, runs: until `stop` fires, then until what is under way is safe.
    pub async fn drive(&self, stop: CancellationToken) {
        todo!()
    }
    /// The store, for records that no run depends on.
    pub fn store(&self) -> &Arc<dyn Store> {
        todo!()
    }
    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        todo!()
    }
    /// Checks and stores a configuration; gives its revision.
    pub async fn put_agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        config: Json,
    ) -> Result<u32, AgentError> {
        todo!()
    }
    /// A compiled configuration: the revision asked for, or the newest.
    pub async fn agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        revision: Option<u32>,
    ) -> Result<Option<(u32, Arc<Agent>)>, StoreError> {
        todo!()
    }
    /// Stores a message, and starts or wakes the run that answers it.
    pub async fn post(&self, post: Post) -> Result<Posted, PostError> {
        todo!()
    }
    /// Takes a result from whoever executes a client call.
    pub async fn submit(&self, call: CallId, submission: Submission) -> Result<Receipt, IntakeError> {
        todo!()
    }
    /// Tells the space how far a client call is.
    pub async fn progress(&self, call: CallId, progress: Json) -> Result<(), IntakeError> {
        todo!()
    }
    /// Claims an open client call, or keeps a claim alive.
    pub async fn claim_call(
        &self,
        call: CallId,
        holder: String,
        lease: Duration,
    ) -> Result<Claimed, IntakeError> {
        todo!()
    }
    /// Gives a claim back: the call is offered again.
    pub async fn release_call(&self, call: CallId, holder: String) -> Result<(), IntakeError> {
        todo!()
    }
    /// Takes a person's decision.
    pub async fn decide(
        &self,
        approval: ApprovalId,
        decision: Decision,
        by: By,
    ) -> Result<Decided, IntakeError> {
        todo!()
    }
    /// Cancels a run and everything below it; gives where it stands then. A run that has ended stays so.
    pub async fn cancel(&self, run: RunId) -> Result<Status, IntakeError> {
        todo!()
    }
    /// Follows a space or a run from a cursor.
    pub async fn subscribe(&self, scope: Scope, after: Seq) -> Result<Subscription, StoreError> {
        todo!()
    }
}
