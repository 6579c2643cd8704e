//! The doors of the gateway, as one router and one OpenAPI document.

use axum::Router;
use toolgate_door_http::Resources;
use toolgate_door_mcp::McpParts;
use toolgate_door_mcp::through::Through;
use toolgate_http::Shared;

/// Every route of every door.
pub fn router(shared: Shared, resources: Resources, mcp: McpParts, through: Through) -> Router {
    let rest = toolgate_door_http::router(shared.clone(), resources);
    let chat = toolgate_door_chat::router(shared.clone());
    let mcp = toolgate_door_mcp::router(shared.clone(), mcp);
    let exposed = through.router(shared.clone());
    toolgate_http::finish(rest.merge(chat).merge(mcp).merge(exposed), shared)
}

/// The OpenAPI document of all doors that speak REST, as JSON text. MCP describes itself.
pub fn openapi() -> String {
    toolgate_http::describe::document([toolgate_door_http::api(), toolgate_door_chat::api()])
}
