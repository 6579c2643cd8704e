//! The seam to the tools that the gateway runs itself.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::{CallId, EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;

/// What a tool on the gateway's side is given besides its input.
pub struct CallContext {
    /// Whose.
    pub project: ProjectId,
    /// Where.
    pub space: SpaceId,
    /// In which run.
    pub run: RunId,
    /// The agent's own entity.
    pub entity: Option<EntityId>,
    /// The call; also its idempotency key when it is run again after a crash.
    pub call: CallId,
    /// Fires when nobody wants the result any more.
    pub cancel: CancellationToken,
    /// Tells the space how far it is.
    pub progress: Arc<dyn Fn(Json) + Send + Sync>,
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

/// The named actions behind `prebuilt` tools.
#[async_trait]
pub trait ServerTools: Send + Sync {
    /// Whether there is such an action.
    fn has(&self, action: &str) -> bool;
    /// Runs one. The engine sets the deadline; dropping the future stops it.
    async fn call(&self, action: &str, input: &Json, context: &CallContext) -> Result<Json, CallFailure>;
}
