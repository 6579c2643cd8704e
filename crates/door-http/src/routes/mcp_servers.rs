//! The MCP servers of a project: add, list, test, remove, and decide about what they offer. For backends only.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use toolgate_engine::store::StoreError;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::{Body, MaybeBody};
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, BadBody, Contended, Missing, NoRoom, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::wire::{AnyObject, Text, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;
use toolgate_sources::{
    Decision, Difference, Flag, Origin, ServerError, ServerView, State as Review, Status, ToolView, Why,
};
use utoipa::ToSchema;

use crate::Resources;

const HASH_CHARS: usize = 64;

wire! {
    /// Which definition was looked at.
    DecideTool {
        /// Hash of the definition, so that no other one is meant; the current one if it is left out.
        hash "hash": Option<Text<HASH_CHARS, HASH_CHARS>>,
    }
}

/// An MCP server. The values of headers and variables are masked.
#[derive(Serialize, ToSchema)]
#[schema(as = McpServer)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerBody {
    /// What it is called, `<agent>/<server>` for one that an agent brings.
    name: String,
    /// Who configured it: `settings` (the operator), `project` (over HTTP) or `agent`.
    origin: &'static str,
    /// Its configuration, values of headers and variables masked.
    #[schema(value_type = Object)]
    config: Value,
    /// Where the connection stands: `configured` (nobody needs it), `connecting`, `ready` or `failed`.
    status: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Before this time it is not tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    next_try: Option<Time>,
    /// A person must sign in first: `POST /v1/mcp/servers/{server}/authorize` says where.
    needs_sign_in: bool,
    /// The protocol revision that it speaks; missing until it was connected once.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    /// Name and version that it gives of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_info: Option<ServerInfoBody>,
    /// How it wants its tools to be used. No model is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    /// Its tools, by its own names.
    tools: Vec<ToolBody>,
    /// Number of tools that wait for a review.
    held: usize,
    /// Tools that were left out or simplified, in words.
    warnings: Vec<String>,
}

/// What a server says of itself.
#[derive(Serialize, ToSchema)]
#[schema(as = McpServerInfo)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerInfoBody {
    /// Name of the program.
    name: String,
    /// Version of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

/// A tool of an MCP server.
#[derive(Serialize, ToSchema)]
#[schema(as = McpTool)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolBody {
    /// The server's own name for it.
    tool: String,
    /// What agents and models call it.
    name: String,
    /// `accepted` (offered), `held` (waits for a review) or `rejected`.
    state: &'static str,
    /// Why it is held: `new`, `flagged` or `changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    /// Since when it is held or rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    since: Option<Time>,
    /// SHA-256 of the definition's canonical JSON, in hex.
    hash: String,
    /// The definition as the server lists it.
    #[schema(value_type = Object)]
    definition: Value,
    /// What differs from the definition that was accepted last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<DifferenceBody>)]
    diff: Vec<Difference>,
    /// What in it looks like an instruction to the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<FlagBody>)]
    flags: Vec<Flag>,
}

/// One place at which a definition differs from the accepted one.
#[derive(ToSchema)]
#[schema(as = McpToolDifference)]
#[expect(dead_code, reason = "describes a type of another crate")]
pub(crate) struct DifferenceBody {
    /// JSON pointer to the place.
    pointer: String,
    /// What stood there; missing if there was nothing.
    #[schema(value_type = Option<schema::Any>)]
    before: Option<Value>,
    /// What stands there now; missing if there is nothing.
    #[schema(value_type = Option<schema::Any>)]
    after: Option<Value>,
}

/// Something in a definition that looks like an instruction to the model.
#[derive(ToSchema)]
#[schema(as = McpToolFlag)]
#[expect(dead_code, reason = "describes a type of another crate")]
pub(crate) struct FlagBody {
    /// JSON pointer to the text.
    pointer: String,
    /// Why it is told, in words.
    reason: String,
    /// What was seen, with hidden characters written out.
    seen: String,
}

/// The MCP servers of a project.
#[derive(Serialize, ToSchema)]
#[schema(as = McpServerList)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerList {
    /// By name.
    servers: Vec<ServerBody>,
}

impl From<ServerView> for ServerBody {
    fn from(view: ServerView) -> Self {
        let tools = view.tools().map(ToolBody::from).collect();
        let (status, reason, next_try) = match view.status {
            Status::Configured => ("configured", None, None),
            Status::Connecting => ("connecting", None, None),
            Status::Ready => ("ready", None, None),
            Status::Failed { reason, next_try } => ("failed", Some(reason), Some(next_try)),
        };
        let catalog = view.catalog.as_deref();
        let info = catalog.and_then(|catalog| {
            Some(ServerInfoBody {
                name: catalog.server_name.clone()?,
                version: catalog.server_version.clone(),
            })
        });
        Self {
            name: view.name,
            origin: match view.origin {
                Origin::Settings => "settings",
                Origin::Project => "project",
                Origin::Agent(_) => "agent",
            },
            config: view.config,
            status,
            reason,
            next_try,
            needs_sign_in: view.needs_sign_in,
            protocol: catalog.map(|catalog| catalog.protocol.clone()),
            server_info: info,
            instructions: catalog.and_then(|catalog| catalog.instructions.clone()),
            held: catalog.map_or(0, |catalog| catalog.held().count()),
            warnings: catalog
                .map(|catalog| catalog.warnings.clone())
                .unwrap_or_default(),
            tools,
        }
    }
}

impl From<ToolView<'_>> for ToolBody {
    fn from(view: ToolView<'_>) -> Self {
        let (state, why, since) = match view.tool.state {
            Review::Accepted => ("accepted", None, None),
            Review::Held { why, since } => ("held", Some(why), Some(since)),
            Review::Rejected { at } => ("rejected", None, Some(at)),
        };
        Self {
            tool: view.original.to_owned(),
            name: view.tool.name.clone(),
            state,
            why: why.map(|why| match why {
                Why::New => "new",
                Why::Flagged => "flagged",
                Why::Changed => "changed",
            }),
            since,
            hash: view.tool.hash.clone(),
            definition: view.tool.definition.clone(),
            diff: view.diff,
            flags: view.tool.flags.clone(),
        }
    }
}

/// The MCP servers of the project, with their status and their tools.
#[utoipa::path(
    get, path = "/v1/mcp/servers", operation_id = "list_mcp_servers", tag = "mcp",
    responses((status = 200, description = "All of them, by name.", body = ServerList), BackendOnly, Refused),
)]
pub(crate) async fn list(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
) -> Result<Answer<ServerList>, Refusal> {
    let servers = resources.mcp.list(project).await?;
    Ok(ok(ServerList {
        servers: servers.into_iter().map(ServerBody::from).collect(),
    }))
}

/// An MCP server with its status, its tools and what waits for a review.
#[utoipa::path(
    get, path = "/v1/mcp/servers/{server}", operation_id = "get_mcp_server", tag = "mcp",
    params(("server" = String, Path, description = "Name of the server; `<agent>/<server>`, percent-encoded, for an agent's.")),
    responses((status = 200, description = "The server.", body = ServerBody), Missing, BackendOnly, Refused),
)]
pub(crate) async fn get(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(name): At<String>,
) -> Result<Answer<ServerBody>, Refusal> {
    let server = resources.mcp.get(project, &name).await.map_err(refused)?;
    Ok(ok(server.into()))
}

/// Adds an MCP server or changes it, and begins to connect it: `{"url": …, "headers": …}` for one at an address,
/// `{"command": …, "args": …, "env": …}` for a program, where the setting `mcp.commands` permits it.
#[utoipa::path(
    put, path = "/v1/mcp/servers/{server}", operation_id = "put_mcp_server", tag = "mcp",
    params(("server" = String, Path, description = "Name of the server.")),
    request_body(content = Object, content_type = "application/json", description = "Configuration of the server."),
    responses(
        (status = 200, description = "As it is now. `test` waits until it is connected.", body = ServerBody),
        BadBody, BackendOnly, Contended, NoRoom, Refused,
    ),
)]
pub(crate) async fn put(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(name): At<String>,
    body: Body<AnyObject>,
) -> Result<Answer<ServerBody>, Refusal> {
    let written = body.value.0.to_value();
    let server = resources.mcp.put(project, &name, &written).await;
    door.engine.tools_changed(project);
    Ok(ok(server.map_err(refused)?.into()))
}

/// Removes an MCP server and everything that is known of its tools. Calls under way are cut off.
#[utoipa::path(
    delete, path = "/v1/mcp/servers/{server}", operation_id = "remove_mcp_server", tag = "mcp",
    params(("server" = String, Path, description = "Name of the server.")),
    responses((status = 204, description = "Removed."), Missing, BackendOnly, Contended, Refused),
)]
pub(crate) async fn remove(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(name): At<String>,
) -> Result<StatusCode, Refusal> {
    let removed = resources.mcp.remove(project, &name).await;
    door.engine.tools_changed(project);
    match removed.map_err(refused)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Refusal::not_found("MCP server")),
    }
}

/// Connects an MCP server now, also if it failed a moment ago, and has it list its tools. The status says what came of it.
#[utoipa::path(
    post, path = "/v1/mcp/servers/{server}/test", operation_id = "test_mcp_server", tag = "mcp",
    params(("server" = String, Path, description = "Name of the server.")),
    responses(
        (status = 200, description = "The server: `ready`, or `failed` with the reason.", body = ServerBody),
        Missing, BackendOnly, Refused,
    ),
)]
pub(crate) async fn test(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(name): At<String>,
) -> Result<Answer<ServerBody>, Refusal> {
    let server = resources.mcp.test(project, &name).await.map_err(refused)?;
    door.engine.tools_changed(project);
    Ok(ok(server.into()))
}

/// Accepts the definition of a tool: new runs are offered it.
#[utoipa::path(
    post, path = "/v1/mcp/servers/{server}/tools/{tool}/approve", operation_id = "approve_mcp_tool", tag = "mcp",
    params(
        ("server" = String, Path, description = "Name of the server."),
        ("tool" = String, Path, description = "The server's own name of the tool."),
    ),
    request_body = DecideTool,
    responses(
        (status = 200, description = "The server as it is now.", body = ServerBody),
        BadBody, Missing, BackendOnly, Contended, Refused,
    ),
)]
pub(crate) async fn approve(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At((server, tool)): At<(String, String)>,
    body: MaybeBody<DecideTool>,
) -> Result<Answer<ServerBody>, Refusal> {
    decide(
        &door,
        &resources,
        project,
        (&server, &tool),
        body.0,
        Decision::Approve,
    )
    .await
}

/// Rejects the definition of a tool: nobody is offered it, and its calls are `UNAVAILABLE`, until the server changes it.
#[utoipa::path(
    post, path = "/v1/mcp/servers/{server}/tools/{tool}/reject", operation_id = "reject_mcp_tool", tag = "mcp",
    params(
        ("server" = String, Path, description = "Name of the server."),
        ("tool" = String, Path, description = "The server's own name of the tool."),
    ),
    request_body = DecideTool,
    responses(
        (status = 200, description = "The server as it is now.", body = ServerBody),
        BadBody, Missing, BackendOnly, Contended, Refused,
    ),
)]
pub(crate) async fn reject(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At((server, tool)): At<(String, String)>,
    body: MaybeBody<DecideTool>,
) -> Result<Answer<ServerBody>, Refusal> {
    decide(
        &door,
        &resources,
        project,
        (&server, &tool),
        body.0,
        Decision::Reject,
    )
    .await
}

async fn decide(
    door: &Shared,
    resources: &Resources,
    project: ProjectId,
    (server, tool): (&str, &str),
    body: DecideTool,
    decision: Decision,
) -> Result<Answer<ServerBody>, Refusal> {
    let hash = body.hash.as_ref().map(|hash| hash.0.as_str());
    let decided = resources.mcp.decide(project, server, tool, hash, decision).await;
    door.engine.tools_changed(project);
    Ok(ok(decided.map_err(refused)?.into()))
}

/// Why a change of servers was not made.
pub(super) fn refused(error: ServerError) -> Refusal {
    let words = error.to_string();
    match error {
        ServerError::Invalid(problems) => Refusal::invalid(problems),
        ServerError::Missing(_) => Refusal::missing(words),
        ServerError::Settings(_) => Refusal::new(StatusCode::CONFLICT, "SET_BY_OPERATOR", words),
        ServerError::Command(_) => Refusal::new(StatusCode::FORBIDDEN, "COMMAND_NOT_PERMITTED", words),
        ServerError::TooMany(_) => Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "LIMIT_EXCEEDED", words),
        ServerError::Changed(_) => Refusal::new(StatusCode::CONFLICT, "CHANGED", words),
        ServerError::NoSignIn(_) => Refusal::new(StatusCode::CONFLICT, "NO_SIGN_IN", words),
        ServerError::SignIn(_) => Refusal::new(StatusCode::BAD_GATEWAY, "SIGN_IN_FAILED", words),
        ServerError::Store(StoreError::Conflict) => Refusal::contended(),
        ServerError::Store(error) => error.into(),
    }
}
