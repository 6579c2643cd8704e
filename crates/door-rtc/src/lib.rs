//! The data-channel door: tool events of a space over WebRTC, and decisions and results that come back the same way.
//! Translates the engine's events after the one redaction; holds no run state and no filter of its own.
//!
//! Start with [`RtcPort`] (the UDP socket and the task that owns it) and [`router`] (where a browser brings its offer); then
//! `offer` (SDP), `peers` (all connections, without IO), `session` (one peer: follows the space, hands messages in),
//! `outgoing` (events as messages), `starts` (messages that no event is for) and `incoming` (messages as requests).

mod demultiplex;
mod incoming;
mod intake;
mod limits;
mod members;
mod offer;
mod outgoing;
mod outlet;
mod peer;
mod peer_shares;
mod peers;
mod port;
mod rate;
mod route;
mod session;
mod starts;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use toolgate_http::Shared;
use toolgate_http::describe::Api;
use toolgate_http::known_query::KnownQuery;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use limits::RtcLimits;
pub use port::{RtcAddresses, RtcDoor, RtcPort};

/// The door's routes. Without `rtc` every offer is refused with `RTC_OFF`.
pub fn router(shared: Shared, rtc: Option<RtcDoor>) -> Router {
    let state = DoorState {
        shared,
        rtc: Arc::new(rtc),
    };
    let (routes, described) = all().split_for_parts();
    KnownQuery::of(&described).guard(routes.with_state(state))
}

/// What the door says of itself in the OpenAPI document.
pub fn api() -> Api {
    Api {
        routes: all().into_openapi(),
        schemas: serde_json::Map::new(),
    }
}

fn all() -> OpenApiRouter<DoorState> {
    OpenApiRouter::default().routes(routes!(route::connect))
}

/// The state of the router.
#[derive(Clone)]
struct DoorState {
    shared: Shared,
    rtc: Arc<Option<RtcDoor>>,
}

impl FromRef<DoorState> for Shared {
    fn from_ref(state: &DoorState) -> Self {
        state.shared.clone()
    }
}
impl FromRef<DoorState> for Arc<Option<RtcDoor>> {
    fn from_ref(state: &DoorState) -> Self {
        state.rtc.clone()
    }
}
