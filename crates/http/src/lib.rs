//! What every door that speaks HTTP stands on, so that no door has to know another: who calls, bounded bodies with
//! JSON pointers to every problem, problem+json, queries, event streams, and pieces of the OpenAPI document.
//! Has no routes of its own.
//!
//! Start with [`Http`] (what handlers share) and [`finish`] (what every request passes); then [`caller`], [`body`]
//! and [`mod@wire`] (what comes in), [`stream`] and [`answer`] (what goes out), [`problem`] (how a refusal reads).

pub mod answer;
pub mod body;
pub mod caller;
pub mod client_tools;
pub mod content;
pub mod describe;
mod edge;
pub mod executor;
pub mod in_flight;
pub mod known_query;
pub mod meter;
pub mod problem;
pub mod query;
pub mod run_state;
pub mod schema;
pub mod session_cookie;
pub mod stream;
pub mod ui_message;
pub mod wait;
pub mod wire;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::IntoResponse as _;
use http::{HeaderMap, Method, Response, Uri};
use tokio_util::sync::CancellationToken;
use toolgate_access::Access;
use toolgate_engine::Engine;

use content::ContentLimits;
use meter::Meter;
use session_cookie::SessionCookie;

/// Settings of all HTTP doors.
#[derive(Clone)]
pub struct HttpSettings {
    /// Largest request body, in bytes.
    pub body_bytes_max: usize,
    /// Longest wait for the next bytes of a request body.
    pub body_timeout: Duration,
    /// Limits on what a request may store.
    pub content: ContentLimits,
    /// How often a silent stream sends a comment to show that it lives.
    pub heartbeat: Duration,
    /// Longest wait for a run within one request.
    pub wait_max: Duration,
    /// Origins that browsers may call from; `*` for any.
    pub origins: Vec<String>,
    /// How the cookie of a session is set.
    pub session_cookie: SessionCookie,
    /// Fires when the gateway has been told to go down: balancers are told to send nothing more.
    pub leaving: CancellationToken,
    /// Fires when the gateway goes down: open streams end with a cursor to come back.
    pub stop: CancellationToken,
}

/// What the handlers of all HTTP doors share.
pub struct Http {
    /// Drives runs.
    pub engine: Engine,
    /// Decides who is asking and what they may reach.
    pub access: Access,
    /// Bytes of requests and answers in memory.
    pub in_flight: Arc<Meter>,
    /// Open event streams.
    pub streams: Arc<Meter>,
    /// Settings.
    pub settings: HttpSettings,
}

/// The state of a door's router, or a part of it.
pub type Shared = Arc<Http>;

/// What is sent for a method, a path and headers that no door answers.
pub type Pages = fn(&Method, &str, &HeaderMap) -> Option<Response<Bytes>>;

/// Wraps the routes of all doors: request ids, spans and figures, calls from other origins, and answers for
/// addresses that no door has.
pub fn finish(routes: Router, shared: Shared) -> Router {
    finish_with_pages(routes, shared, |_, _, _| None)
}

/// The same with pages for people: `pages` answers what no door does, where it has something to say.
pub fn finish_with_pages(routes: Router, shared: Shared, pages: Pages) -> Router {
    let fallback = async move |method: Method, uri: Uri, headers: HeaderMap| match pages(
        &method,
        uri.path(),
        &headers,
    ) {
        Some(page) => page.map(Body::from),
        None => edge::no_route(uri).await.into_response(),
    };
    let routes = routes
        .fallback(fallback)
        .method_not_allowed_fallback(edge::no_method)
        .layer(axum::middleware::from_fn_with_state(
            edge::Edge::new(shared),
            edge::pass,
        ));
    // Around the whole router: axum sets `allow` when all layers of a route are done.
    Router::new()
        .fallback_service(routes)
        .layer(axum::middleware::map_response(edge::name_methods))
}
