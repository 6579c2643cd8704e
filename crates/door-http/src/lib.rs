//! The REST and SSE door: translates HTTP into the engine's words and back. Holds no run state.

pub mod keys;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio_util::sync::CancellationToken;
use toolgate_engine::Engine;
use toolgate_kernel::id::ProjectId;

/// What may be set.
#[derive(Clone)]
pub struct DoorSettings {
    /// Who may come in.
    pub auth: Auth,
    /// Largest request body.
    pub body_bytes_max: usize,
    /// How often a silent stream says that it lives.
    pub heartbeat: Duration,
    /// Requests per second of one key, and how many may come at once.
    pub rate: Rate,
    /// Renders the metrics.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Origins that browsers may call from; `*` for any.
    pub origins: Vec<String>,
    /// Fires when the gateway goes down: open streams end with a cursor to come back, `/readyz` says no.
    pub stop: CancellationToken,
}

/// Who may come in.
#[derive(Clone)]
pub enum Auth {
    /// Whoever has a key.
    Keys,
    /// Everybody, as the secret principal of this project: for trying out, on loopback only.
    Open(ProjectId),
}

/// Requests of one key.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// Per second, in the long run.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
}

/// Every route of the door.
pub fn router(_engine: Engine, _settings: DoorSettings) -> Router {
    todo!()
}

/// The door's OpenAPI document, as JSON.
pub fn openapi() -> String {
    todo!()
}
