//! The A2A door: the agents of a project for A2A clients, in version 1.0 (JSON-RPC and REST) and 0.3 (JSON-RPC). A task
//! is a run, a context is a space. Holds no run state: everything it tells is folded from the log, as `view` shows it.
//!
//! Start with `entry` (addresses and bindings) and `operations` (one operation each); then `send` and `answers` (what
//! comes in), `task` and `pause` (what a run is as a task), `follow` (streams), `list`, `push`, `card`.

mod answers;
mod asking;
mod card;
pub mod conformance;
mod context;
mod entry;
mod follow;
mod list;
mod message;
mod offered_tools;
mod operations;
mod pause;
mod problem;
mod push;
mod rest;
mod send;
pub mod task;

use std::sync::Arc;

use axum::Router;
use axum::routing::{any, get};
use serde_json::Value;
use toolgate_engine::default_agent;
use toolgate_engine::push_configs::PushConfigs;
use toolgate_http::Shared;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::name::AgentName;

/// Makes a signature of a card: a JWS in the flattened form without a payload.
pub type CardSigner = Arc<dyn Fn(&Value) -> Value + Send + Sync>;

/// Settings of the door.
#[derive(Clone, Default)]
pub struct A2aSettings {
    /// Cards name 0.3 too, and carry the members that clients of 0.3 read.
    pub advertise_03: bool,
    /// Name and site of the organization that runs the gateway.
    pub provider: Option<(String, String)>,
    /// Signs cards.
    pub signer: Option<CardSigner>,
    /// The conformance agent stands at the root in place of the agent `default`.
    pub conformance: bool,
}

/// What the door needs beside what all HTTP doors share.
pub struct A2aParts {
    /// Project whose public agents are shown to visitors without a key.
    pub default_project: ProjectId,
    /// Address that clients reach the gateway at; otherwise the one that a request names.
    pub public_url: Option<String>,
    /// Where push configurations are kept; none when nobody delivers.
    pub push: Option<PushConfigs>,
    /// Settings.
    pub settings: A2aSettings,
}

/// What the handlers share.
pub(crate) struct A2a {
    pub shared: Shared,
    pub default_project: ProjectId,
    pub public_url: Option<String>,
    pub push: Option<PushConfigs>,
    pub settings: A2aSettings,
}

impl A2a {
    /// The agent at the root.
    pub fn root_agent(&self) -> AgentName {
        match self.settings.conformance {
            true => conformance::AGENT.parse().expect("a name"),
            false => default_agent(),
        }
    }
}

/// The door's routes.
pub fn router(shared: Shared, parts: A2aParts) -> Router {
    let a2a = Arc::new(A2a {
        shared,
        default_project: parts.default_project,
        public_url: parts.public_url,
        push: parts.push,
        settings: parts.settings,
    });
    Router::new()
        .route("/.well-known/agent-card.json", get(entry::root_card))
        .route("/.well-known/agent.json", get(entry::root_card))
        .route("/a2a", any(entry::enter))
        .route("/a2a/", any(entry::enter))
        .route("/a2a/{*path}", any(entry::enter))
        .with_state(a2a)
}
