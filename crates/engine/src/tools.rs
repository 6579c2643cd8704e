//! The seam to the tools that the gateway runs itself.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::{CallId, EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::prompt::Turn;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Execution;

use crate::records::Receipt;
use crate::store::{EntityRecord, StoreError};

/// The action by which a run tells the one above something before its end: the engine brings its outputs up.
pub const SIGNAL_PARENT: &str = "signal_parent";

/// What a tool on the gateway's side is given besides its input.
pub struct CallContext {
    /// Whose.
    pub project: ProjectId,
    /// Where: the space of the run at the top. All below it work there too, though their events stand elsewhere.
    pub space: SpaceId,
    /// In which run.
    pub run: RunId,
    /// The run at the top, which a person or a plan started.
    pub root: RunId,
    /// How many runs stand above this one; its parent waits for it when there is one.
    pub depth: u32,
    /// Whose configuration the run follows.
    pub agent: AgentName,
    /// The agent's own entity: what it keeps is tied to this.
    pub entity: EntityId,
    /// The call; also its idempotency key when it is run again after a crash.
    pub call: CallId,
    /// Whom the run works for: the person who spoke last, in it or above it. None when that was a backend or a plan.
    pub profile: Option<EntityRecord>,
    /// What was said in the space so far, as the model was told.
    pub turns: Vec<Arc<Turn>>,
    /// The tools that the run has.
    pub tools: Vec<ToolName>,
    /// What the agent was given.
    pub grants: Vec<String>,
    /// When the engine stops waiting.
    pub deadline: Time,
    /// Now, by the engine's clock.
    pub now: Time,
    /// Fires when nobody wants the result any more.
    pub cancel: CancellationToken,
    /// Tells the space how far it is.
    pub progress: Arc<dyn Fn(Json) + Send + Sync>,
}

impl CallContext {
    /// Says what the tool does now, for people who wait: `{"status": words}`.
    pub fn tell(&self, words: &str) {
        (self.progress)(serde_json::json!({ "status": words }).into());
    }
    /// Says that the call was made, with this answer: stored with what it changed, it is given when the call is made
    /// again after a crash.
    pub fn receipt(&self, answer: Json) -> Receipt {
        Receipt {
            key: self.call.to_string(),
            answer,
            time: self.now,
        }
    }
}

/// Why a tool gave no output, in words that the model can act on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CallFailure {
    /// Why, for programs.
    pub code: ErrorCode,
    /// Why, in words.
    pub message: String,
}

impl CallFailure {
    /// The tool failed, for this reason.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ExecutionFailed, message)
    }
    /// Whoever the tool needs is not there.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }
    /// With this code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// A store that failed; what it says of itself is for the log.
impl From<StoreError> for CallFailure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict => {
                Self::unavailable("others are changing this at the same time; nothing was changed, try again")
            }
            error => {
                tracing::warn!(%error, "a tool could not reach the store");
                Self::unavailable("the gateway's store cannot be reached now; try again later")
            }
        }
    }
}

/// What the gateway runs itself: the named actions behind `prebuilt` tools, and the execution types that need
/// the world outside.
#[async_trait]
pub trait ServerTools: Send + Sync {
    /// What there is to say of the action of this name.
    fn action(&self, name: &str) -> Option<Action>;
    /// Runs a call. The engine sets the deadline; dropping the future stops it.
    async fn run(
        &self,
        execution: &Execution,
        input: &Json,
        context: &CallContext,
    ) -> Result<Json, CallFailure>;
    /// An output that something else gave, as a model may read it: what is too large is kept, and told in short.
    async fn bounded(&self, output: Json, context: &CallContext) -> Json;
}
