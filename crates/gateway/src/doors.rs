//! The doors of the gateway, as one router and one OpenAPI document.

use axum::Router;
use toolgate_door_a2a::A2aParts;
use toolgate_door_http::Resources;
use toolgate_door_mcp::McpParts;
use toolgate_door_mcp::through::Through;
use toolgate_door_rtc::RtcDoor;
use toolgate_http::Shared;

/// Every route of every door, and the console's pages if it is served.
pub fn router(
    shared: Shared,
    resources: Resources,
    mcp: McpParts,
    through: Through,
    a2a: A2aParts,
    rtc: Option<RtcDoor>,
    console: bool,
) -> Router {
    let rest = toolgate_door_http::router(shared.clone(), resources);
    let chat = toolgate_door_chat::router(shared.clone());
    let exposed = through.router(shared.clone(), mcp.entrance.clone());
    let mcp = toolgate_door_mcp::router(shared.clone(), mcp);
    let a2a = toolgate_door_a2a::router(shared.clone(), a2a);
    let rtc = toolgate_door_rtc::router(shared.clone(), rtc);
    let doors = rest.merge(chat).merge(mcp).merge(exposed).merge(a2a).merge(rtc);
    match console {
        true => toolgate_http::finish_with_pages(doors, shared, toolgate_console::respond),
        false => toolgate_http::finish(doors, shared),
    }
}

/// The OpenAPI document of all doors that speak REST, as JSON text. MCP and A2A describe themselves.
pub fn openapi() -> String {
    toolgate_http::describe::document([
        toolgate_door_http::api(),
        toolgate_door_chat::api(),
        toolgate_door_rtc::api(),
    ])
}
