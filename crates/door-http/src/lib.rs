//! The REST and SSE door: translates HTTP into the engine's words and back. Holds no run state.
//!
//! Start with [`router`]; then `routes` (one file per thing), `events` (what streams and lists hold) and `snapshot`
//! (a run as it stands). What it shares with other doors is in `toolgate_http`.

mod decisions;
mod event_schemas;
mod events;
mod precondition;
mod routes;
mod snapshot;
mod space_snapshot;
mod until;
mod waited;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::FromRef;
use serde_json::Value;
use toolgate_access::file_links::FileLinks;
use toolgate_engine::deletion::Deletions;
use toolgate_engine::knowledge::Knowledge;
use toolgate_engine::outbox::Outbox;
use toolgate_engine::records::Records;
use toolgate_engine::state_editor::StateEditor;
use toolgate_engine::workspace::Workspace;
use toolgate_http::Shared;
use toolgate_http::describe::Api;
use toolgate_http::known_query::KnownQuery;
use toolgate_kernel::json::Json;
use toolgate_plugins::Plugins;
use toolgate_sources::McpServers;
use toolgate_sources::oauth::CALLBACK_PATH;

pub use routes::overview::{ModelPrice, Prices};

/// What this door shows beside runs and the directory of a project.
pub struct Resources {
    /// The files of spaces.
    pub workspace: Workspace,
    /// Links to these files that work without a key.
    pub links: FileLinks,
    /// Address that users reach the gateway at, without a slash at its end; links begin with it.
    pub public_url: Option<String>,
    /// What agents have stored with their tools.
    pub records: Arc<dyn Records>,
    /// Changes by hand what agents have stored.
    pub state: Arc<dyn StateEditor>,
    /// The documents of projects.
    pub knowledge: Arc<dyn Knowledge>,
    /// The plugins of projects.
    pub plugins: Plugins,
    /// The MCP servers of projects.
    pub mcp: McpServers,
    /// Deletes runs, spaces and people.
    pub deletions: Arc<Deletions>,
    /// Deliveries to webhooks and mail.
    pub outbox: Arc<Outbox>,
    /// Renders the metrics.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// The OpenAPI document of all doors, as JSON text; made when somebody first asks for it.
    pub openapi: LazyLock<String>,
    /// Configuration of the first agent of a new project.
    pub first_agent: Json,
    /// What models cost.
    pub prices: Prices,
    /// Protections of the sandbox that this machine lacks.
    pub sandbox_lacks: Vec<String>,
}

/// The door's routes.
pub fn router(shared: Shared, resources: Resources) -> Router {
    let state = Rest {
        shared,
        resources: Arc::new(resources),
    };
    let (routes, described) = routes::all().split_for_parts();
    // OAuth: parameters of an authorization server that a client does not know are ignored.
    let known = KnownQuery::of(&described).except(CALLBACK_PATH);
    known.guard(routes.with_state(state))
}

/// What the door says of itself in the OpenAPI document.
pub fn api() -> Api {
    let routes = routes::all().into_openapi();
    let mut schemas = event_schemas::schemas();
    // An empty list of tools fits both forms, so they are no `oneOf`.
    let components = routes.components.as_ref().map(|all| &all.schemas);
    if let Some(found) = components.and_then(|schemas| schemas.get("FoundTools")) {
        let mut found = serde_json::to_value(found).expect("a description has text keys");
        if let Value::Object(members) = &mut found
            && let Some(either) = members.remove("oneOf")
        {
            members.insert("anyOf".into(), either);
        }
        schemas.insert("FoundTools".into(), found);
    }
    Api { routes, schemas }
}

/// The state of the router.
#[derive(Clone)]
struct Rest {
    shared: Shared,
    resources: Arc<Resources>,
}

impl FromRef<Rest> for Shared {
    fn from_ref(rest: &Rest) -> Self {
        rest.shared.clone()
    }
}
impl FromRef<Rest> for Arc<Resources> {
    fn from_ref(rest: &Rest) -> Self {
        rest.resources.clone()
    }
}
