//! The chat door: the AI SDK's UI message stream over the same runs. A chat is a space; a turn of it is a run that
//! may pause for the client and goes on with the next request. Holds no run state.
//!
//! Start with `routes` and `turn`; then `body` (what comes in), `client_updates` (what of it counts), `follow` (from
//! where the run is streamed), `ui_stream` (what goes out) and `ui_history` (a chat that is read again).

mod body;
mod chat;
mod chunk;
mod client_updates;
mod follow;
mod mismatch;
mod resume;
mod routes;
mod turn;
mod ui_event;
mod ui_history;
mod ui_stream;

use axum::Router;
use toolgate_http::Shared;
use toolgate_http::describe::Api;
use toolgate_http::known_query::KnownQuery;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The door's routes.
pub fn router(shared: Shared) -> Router {
    let (routes, described) = all().split_for_parts();
    KnownQuery::of(&described).guard(routes.with_state(shared))
}

/// What the door says of itself in the OpenAPI document.
pub fn api() -> Api {
    Api {
        routes: all().into_openapi(),
        schemas: serde_json::Map::new(),
    }
}

fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(routes::post))
        .routes(routes!(routes::messages))
        .routes(routes!(routes::resume))
        .routes(routes!(routes::post_default))
        .routes(routes!(routes::messages_default))
        .routes(routes!(routes::resume_default))
}
