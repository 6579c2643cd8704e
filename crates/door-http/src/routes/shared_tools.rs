//! Tools that the agents of a project share. For backends only.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::ETAG;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use toolgate_engine::shared_tools::SharedTool;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, BadBody, BadQuery, Changed, Contended, Missing, NoRoom, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::wire::AnyObject;
use toolgate_http::{Shared, schema};
use toolgate_kernel::agent::redact;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::ToolName;
use toolgate_kernel::problem::{Problem, one_of};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{self, Tool};
use utoipa::ToSchema;

use super::tools::{shared, wanted};
use crate::precondition::{etag, only};

/// A tool that agents use by its name. Keys in its definition are masked.
#[derive(Serialize, ToSchema)]
#[schema(as = SharedTool)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SharedToolBody {
    /// What agents and models call it. Unique in the project.
    name: String,
    /// Higher with each change; also in `etag`.
    #[schema(minimum = 1)]
    version: u64,
    /// The definition as it was written, keys masked.
    #[schema(value_type = Object)]
    definition: Json,
    /// When it was first stored.
    #[schema(value_type = schema::Time)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = schema::Time)]
    updated_at: Time,
}

impl From<SharedTool> for SharedToolBody {
    fn from(tool: SharedTool) -> Self {
        Self {
            definition: redact(&tool.definition),
            name: tool.name,
            version: tool.version,
            created_at: tool.created,
            updated_at: tool.updated,
        }
    }
}

impl SharedToolBody {
    fn answer(tool: SharedTool, status: StatusCode) -> Response {
        let tag = etag(tool.version);
        ([(ETAG, tag)], Answer(status, Self::from(tool))).into_response()
    }
}

/// The shared tools of a project.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SharedToolList {
    /// By name.
    shared_tools: Vec<SharedToolBody>,
}

/// The tools that the agents of the project share, that fit everything in the query.
#[utoipa::path(
    get, path = "/v1/shared-tools", operation_id = "list_shared_tools", tag = "tools",
    params(
        ("trigger" = Option<String>, Query, description = "With these words in a row in one of their triggers; case and accents do not matter."),
        ("category" = Option<String>, Query, description = "Of this category; case and accents do not matter."),
        ("permission" = Option<String>, Query, description = "That need this permission."),
    ),
    responses((status = 200, description = "All of them, by name.", body = SharedToolList), BackendOnly, BadQuery, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    Backend(project): Backend,
    query: Query,
) -> Result<Answer<SharedToolList>, Refusal> {
    let wanted = wanted(&query);
    let mut tools = door.engine.shared_tools(project).await?;
    if wanted != tool::Query::default() {
        let resolved = shared(&door, project).await?;
        let fits = |tool: &Arc<Tool>| wanted.fits(tool);
        let fitting: Vec<&str> = resolved
            .iter()
            .filter(|tool| fits(tool))
            .map(|tool| tool.name.as_str())
            .collect();
        tools.retain(|tool| fitting.contains(&tool.name.as_str()));
    }
    Ok(ok(SharedToolList {
        shared_tools: tools.into_iter().map(SharedToolBody::from).collect(),
    }))
}

/// How many shared tools were removed.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClearedTools {
    /// Number of the tools.
    removed: usize,
}

/// Removes all shared tools of the project, in one write. Agents that name them go without them; runs that began with them
/// fail their calls.
#[utoipa::path(
    delete, path = "/v1/shared-tools", operation_id = "clear_shared_tools", tag = "tools",
    params(("confirm" = String, Query, pattern = "^all$", description = "`all`: says that this is meant.")),
    responses((status = 200, description = "Removed.", body = ClearedTools), BackendOnly, BadQuery, Contended, Refused),
)]
pub(crate) async fn clear(
    State(door): State<Shared>,
    Backend(project): Backend,
    query: Query,
) -> Result<Answer<ClearedTools>, Refusal> {
    if query.text("confirm") != Some("all") {
        let seen = query.text("confirm").unwrap_or_default();
        return Err(Refusal::malformed(format!(
            "query confirm: {}; this removes every shared tool of the project",
            one_of(seen, &["all"])
        )));
    }
    let removed = door.engine.clear_shared_tools(project).await?;
    Ok(ok(ClearedTools { removed }))
}

/// Stores a tool that agents use by its name, checked like a tool of an agent. Agents that name it have it as it is now
/// from their next run on; runs that began with it as it was fail its calls.
#[utoipa::path(
    put, path = "/v1/shared-tools/{tool}", operation_id = "put_shared_tool", tag = "tools",
    params(
        ("tool" = String, Path, description = "Its name: not one of the gateway's own tools, of a plugin or of an MCP server."),
        ("if-match" = inline(Option<schema::EtagOrAny>), Header, description = "`etag` of the version to write over; `*`: whichever there is."),
        ("if-none-match" = inline(Option<schema::AnyEtag>), Header, description = "`*`: there must be none."),
    ),
    request_body(content = Object, description = "The definition; `name` may be left out.", content_type = "application/json"),
    responses(
        (status = 200, description = "Written.", body = SharedToolBody),
        (status = 201, description = "Made.", body = SharedToolBody),
        BadBody, BackendOnly, Changed, Contended, NoRoom, Refused,
    ),
)]
pub(crate) async fn put(
    State(door): State<Shared>,
    Backend(project): Backend,
    At(name): At<String>,
    headers: HeaderMap,
    body: Body<AnyObject>,
) -> Result<Response, Refusal> {
    let name = ToolName::try_from(name)
        .map_err(|error| Refusal::invalid(vec![Problem::new("", error.to_string())]))?;
    let definition = body.value.0.to_value();
    let stored = door
        .engine
        .put_shared_tool(project, &name, definition, only(&headers)?);
    let (tool, is_new) = stored.await?;
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok(SharedToolBody::answer(tool, status))
}

/// A tool that the agents of the project share.
#[utoipa::path(
    get, path = "/v1/shared-tools/{tool}", operation_id = "get_shared_tool", tag = "tools",
    params(("tool" = String, Path)),
    responses((status = 200, description = "The tool.", body = SharedToolBody), Missing, BackendOnly, Refused),
)]
pub(crate) async fn get(
    State(door): State<Shared>,
    Backend(project): Backend,
    At(name): At<ToolName>,
) -> Result<Response, Refusal> {
    let tool = door.engine.shared_tool(project, &name).await?;
    tool.map(|tool| SharedToolBody::answer(tool, StatusCode::OK))
        .ok_or_else(|| Refusal::not_found("shared tool"))
}

/// Removes a shared tool. Agents that name it go without it; runs that began with it fail its calls.
#[utoipa::path(
    delete, path = "/v1/shared-tools/{tool}", operation_id = "remove_shared_tool", tag = "tools",
    params(
        ("tool" = String, Path),
        ("if-match" = inline(Option<schema::EtagOrAny>), Header, description = "`etag` of the version to remove; `*`: whichever there is."),
    ),
    responses((status = 204, description = "Removed."), BadQuery, Missing, BackendOnly, Changed, Contended, Refused),
)]
pub(crate) async fn remove(
    State(door): State<Shared>,
    Backend(project): Backend,
    At(name): At<ToolName>,
    headers: HeaderMap,
) -> Result<StatusCode, Refusal> {
    let removed = door
        .engine
        .remove_shared_tool(project, &name, only(&headers)?)
        .await?;
    match removed {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Refusal::not_found("shared tool")),
    }
}
