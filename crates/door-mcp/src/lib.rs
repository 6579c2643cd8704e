//! The MCP door: the project's tools, files and agents for MCP clients, at `/mcp` (streamable HTTP, both eras of the
//! protocol). A call is a run that is one call, as over REST; a task is that run. Holds no run state: what it keeps of
//! a client is a legacy session, which survives nothing.
//!
//! Start with `entry` (what a request passes) and `handler` (one method of the protocol each); then `tool_call` (a call
//! from its start to its answer), `answer` (what a run is in MCP's words), `tasks`, `questions` and `resume` (calls that
//! wait for people), `resources`, `prompts`. The transport itself is `rmcp`'s. [`through`] is a door of its own: one MCP
//! server as it is.

mod answer;
mod entry;
mod following;
mod handler;
mod late;
mod list_changes;
mod listened_tasks;
mod listing;
mod metadata;
mod origin;
mod problem;
mod progress;
mod prompts;
mod questions;
mod resources;
mod resume;
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

use list_changes::ListChanges;
use resume::RequestStates;
use sessions::Transport;

/// What the door needs beside what all HTTP doors share.
pub struct McpParts {
    /// The files of spaces, which are resources.
    pub workspace: Workspace,
    /// Where the keys are that sign request states.
    pub records: Arc<dyn Records>,
    /// Address that clients reach the gateway at; otherwise the one that a request names.
    pub public_url: Option<String>,
    /// Names that the gateway answers to, besides loopback; empty for any, since callers need a key.
    pub hosts: Vec<String>,
    /// Authorization servers that issue users' tokens.
    pub authorization_servers: Vec<String>,
}

/// What the handlers of the door share.
pub(crate) struct Mcp {
    pub shared: Shared,
    pub workspace: Workspace,
    pub states: RequestStates,
    pub lists: ListChanges,
    pub public_url: Option<String>,
    pub hosts: Vec<String>,
    pub authorization_servers: Vec<String>,
}

/// The door's routes.
pub fn router(shared: Shared, parts: McpParts) -> Router {
    let mcp = Arc::new(Mcp {
        shared,
        workspace: parts.workspace,
        states: RequestStates::new(parts.records),
        lists: ListChanges::default(),
        public_url: parts.public_url,
        hosts: parts.hosts,
        authorization_servers: parts.authorization_servers,
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
