//! The REST and SSE door: translates HTTP into the engine's words and back. Holds no run state: what it
//! remembers (keys, where a run stands) may be forgotten at any time.
//!
//! Start with [`router`]; then `auth` and `access` (who may do what), `body` and `wire` (what comes in),
//! `stream` and `events` (what goes out), `routes` (one file per thing), `problem` (how a refusal reads).

mod access;
mod answer;
mod auth;
mod body;
mod cache;
mod chat;
mod describe;
mod edge;
mod events;
mod jwks;
mod jwt;
pub mod keys;
mod problem;
mod query;
mod rate;
mod routes;
mod schema;
mod snapshot;
mod stream;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio_util::sync::CancellationToken;
use toolgate_engine::Engine;
use toolgate_engine::knowledge::Knowledge;
use toolgate_engine::outbox::Outbox;
use toolgate_engine::workspace::Workspace;
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};

use cache::Cache;

/// What may be set.
#[derive(Clone)]
pub struct DoorSettings {
    /// Who may come in.
    pub auth: Auth,
    /// The files of spaces.
    pub workspace: Workspace,
    /// What projects know.
    pub knowledge: Arc<dyn Knowledge>,
    /// What has to be delivered outside.
    pub outbox: Arc<Outbox>,
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
pub fn router(engine: Engine, settings: DoorSettings) -> Router {
    let door = Arc::new(Door {
        keys: Cache::new(auth::KNOWN_MAX, auth::KEY_KNOWN),
        entities: Cache::new(auth::KNOWN_MAX, auth::KEY_KNOWN),
        runs: Cache::new(access::PLACES_MAX, access::PLACE_KNOWN),
        spaces: Cache::new(access::PLACES_MAX, access::PLACE_KNOWN),
        limiter: rate::Limiter::new(settings.rate),
        jwks: jwks::Jwks::default(),
        engine,
        settings,
    });
    let (router, _) = routes::all().split_for_parts();
    router
        .fallback(routes::no_route)
        .method_not_allowed_fallback(routes::no_method)
        .layer(axum::middleware::from_fn_with_state(door.clone(), edge::pass))
        .with_state(door)
}

/// The door's OpenAPI document, as JSON.
pub fn openapi() -> String {
    describe::document(routes::all().split_for_parts().1)
}

/// What the handlers share.
struct Door {
    engine: Engine,
    settings: DoorSettings,
    keys: Cache<[u8; 32], auth::KnownKey>,
    entities: Cache<(ProjectId, String), EntityId>,
    runs: Cache<RunId, (ProjectId, SpaceId)>,
    spaces: Cache<SpaceId, ProjectId>,
    limiter: rate::Limiter,
    jwks: jwks::Jwks,
}

type Shared = Arc<Door>;
