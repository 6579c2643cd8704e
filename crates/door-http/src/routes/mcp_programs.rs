//! The programs of MCP servers: start one again, and read what it wrote to its standard error. For backends only.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::schema;
use toolgate_kernel::time::Time;
use toolgate_sources::LogLine;
use utoipa::ToSchema;

use super::mcp_servers::{ServerBody, refused};
use crate::Resources;

/// The log of an MCP server.
#[derive(Serialize, ToSchema)]
#[schema(as = McpServerLog)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogBody {
    /// At most 200, oldest first; none for a server at an address.
    lines: Vec<LogLineBody>,
}

/// A line that the program of an MCP server wrote to its standard error.
#[derive(Serialize, ToSchema)]
#[schema(as = McpServerLogLine)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogLineBody {
    /// When the gateway read it.
    #[schema(value_type = schema::Time)]
    at: Time,
    /// The line, values of headers, variables and secrets hidden; of one with more than 4 KiB the beginning.
    text: String,
}

impl From<LogLine> for LogLineBody {
    fn from(line: LogLine) -> Self {
        Self {
            at: line.at,
            text: line.text,
        }
    }
}

/// Ends the connection to an MCP server, and its program, and starts it again, without a pause after earlier failures.
/// Calls under way are `INTERRUPTED`.
#[utoipa::path(
    post, path = "/v1/mcp/servers/{server}/restart", operation_id = "restart_mcp_server", tag = "mcp",
    params(("server" = String, Path, description = "Name of the server; `<agent>/<server>`, percent-encoded, for an agent's.")),
    responses(
        (status = 202, description = "The server, which is `connecting`. `GET` says what comes of it.", body = ServerBody),
        Missing, BackendOnly, Refused,
    ),
)]
pub(crate) async fn restart(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(name): At<String>,
) -> Result<Answer<ServerBody>, Refusal> {
    let server = resources.mcp.restart(project, &name).await.map_err(refused)?;
    Ok(Answer(StatusCode::ACCEPTED, server.into()))
}

/// What the program of an MCP server wrote to its standard error last. The gateway keeps it in memory, at most 200 lines
/// and 64 KiB, also while the program is started again.
#[utoipa::path(
    get, path = "/v1/mcp/servers/{server}/log", operation_id = "get_mcp_server_log", tag = "mcp",
    params(("server" = String, Path, description = "Name of the server; `<agent>/<server>`, percent-encoded, for an agent's.")),
    responses((status = 200, description = "The last lines.", body = LogBody), Missing, BackendOnly, Refused),
)]
pub(crate) async fn log(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(name): At<String>,
) -> Result<Answer<LogBody>, Refusal> {
    let lines = resources.mcp.log(project, &name).await.map_err(refused)?;
    Ok(ok(LogBody {
        lines: lines.into_iter().map(LogLineBody::from).collect(),
    }))
}
