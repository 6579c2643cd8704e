//! The MCP door: the project's tools, files and agents for MCP clients, at `/mcp` (streamable HTTP, both eras of the
//! protocol). A call is a run that is one call, as over REST; a task is that run. Holds no run state: what it keeps of
//! a client is a legacy session, which survives nothing.
//!
//! Start with `gate` (who comes in), `entry` (what a request passes) and `handler` (one method of the protocol each); then `tool_call` (a call
//! from its start to its answer), `answer` (what a run is in MCP's words), `content` (files in results), `tasks`, `questions` and `resume` (calls that
//! wait for people), `resources`, `prompts`. The transport itself is `rmcp`'s. [`through`] is a door of its own: one MCP
//! server as it is.

mod answer;
mod content;
mod entry;
mod following;
mod gate;
mod handler;
mod late;
mod list_changes;
mod listened_tasks;
mod listing;
mod metadata;
mod problem;
mod progress;
mod prompts;
mod questions;
mod resources;
mod resume;
mod session_shares;
mod sessions;
mod start;
mod subscriptions;
mod tasks;
pub mod through;
mod tool_call;
mod visitor;

use std::sync::Arc;

use axum::Router;
use axum::routing::{any, get};
use toolgate_engine::records::Records;
use toolgate_engine::workspace::Workspace;
use toolgate_http::Shared;

pub use gate::Entrance;

use gate::Gate;
use list_changes::ListChanges;
use resume::RequestStates;
use sessions::Transport;

/// What the door needs beside what all HTTP doors share.
pub struct McpParts {
    /// The files of spaces, which are resources.
    pub workspace: Workspace,
    /// Where the keys are that sign request states.
    pub records: Arc<dyn Records>,
    /// Where clients reach the door.
    pub entrance: Entrance,
}

/// What the handlers of the door share.
pub(crate) struct Mcp {
    pub shared: Shared,
    pub workspace: Workspace,
    pub states: RequestStates,
    pub lists: ListChanges,
    pub gate: Gate,
}

/// The door's routes.
pub fn router(shared: Shared, parts: McpParts) -> Router {
    let gate = Gate {
        shared: shared.clone(),
        entrance: parts.entrance,
    };
    let mcp = Arc::new(Mcp {
        shared,
        workspace: parts.workspace,
        states: RequestStates::new(parts.records),
        lists: ListChanges::default(),
        gate,
    });
    let door = Arc::new(entry::Door {
        transport: Arc::new(Transport::new(mcp.clone())),
        mcp,
    });
    Router::new()
        .route(entry::PATH, any(entry::default_agent))
        .route("/mcp/agents/{agent}", any(entry::named_agent))
        .route("/.well-known/oauth-protected-resource", get(metadata::get))
        .route(
            "/.well-known/oauth-protected-resource/{*path}",
            get(metadata::get),
        )
        .with_state(door)
}
