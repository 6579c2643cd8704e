//! One MCP server of a project, exposed as it is: `/mcp/servers/{name}`. A proxy: it keeps no run, and passes lists,
//! calls and results on as they were written.
//!
//! Clients and servers may speak different revisions of the protocol. Where both speak the same one, messages go straight
//! through; where they do not, they are crossed, per server:
//!
//! | client | server | |
//! | --- | --- | --- |
//! | 2026-07-28 | 2026-07-28 | `modern`: every request by itself |
//! | up to 2025-11-25 | up to 2025-11-25 | `straight`: a session of the client is a session of the server |
//! | 2026-07-28 | up to 2025-11-25 | `upwards`: what the server asks becomes `input_required`; its call stays open, in `parked` |
//! | up to 2025-11-25 | 2026-07-28 | `downwards`: `input_required` becomes a request to the client, a task is polled |
//!
//! Start with `routes`; then `reply` (how a request is answered), `upstream` (what is known of a server) and the four
//! modules above.

mod calls;
mod downwards;
mod era;
mod headers;
mod hidden;
mod legacy;
mod legacy_link;
mod limits;
mod modern;
mod modern_link;
mod owner;
mod parked;
mod reply;
mod routes;
mod sessions;
mod straight;
mod subscriptions;
mod task_owners;
mod tasks_of_others;
mod tools;
mod turn;
mod upstream;
mod upstreams;
mod upwards;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio_util::task::AbortOnDropHandle;
use toolgate_http::Shared;

pub use limits::{Limits, Places};
pub use upstreams::{Everything, Exposed, Hide, Review, Upstreams, UpstreamsError};

use parked::Parked;
use sessions::Sessions;
use upstream::Known;

use crate::gate::{Entrance, Gate};

/// How often what has expired is looked for.
const SWEEP: Duration = Duration::from_secs(15);

/// The proxy. Cheap to clone.
#[derive(Clone)]
pub struct Through(Arc<Parts>);

struct Parts {
    upstreams: Arc<dyn Upstreams>,
    known: Arc<Known>,
    sessions: Arc<Sessions>,
    parked: Arc<Parked>,
    _sweeper: AbortOnDropHandle<()>,
}

impl Through {
    /// A proxy for these servers.
    pub fn new(upstreams: Arc<dyn Upstreams>, limits: Limits) -> Self {
        let known = Arc::new(Known::new(limits.clone()));
        let sessions = Arc::new(Sessions::new(&limits));
        let parked = Arc::new(Parked::new(&limits));
        let sweeper = sweep(known.clone(), sessions.clone(), parked.clone());
        Self(Arc::new(Parts {
            upstreams,
            known,
            sessions,
            parked,
            _sweeper: AbortOnDropHandle::new(tokio::spawn(sweeper)),
        }))
    }

    /// Its routes.
    pub fn router(self, shared: Shared, entrance: Entrance) -> Router {
        routes::router(Gate { shared, entrance }, self)
    }
}

async fn sweep(known: Arc<Known>, sessions: Arc<Sessions>, parked: Arc<Parked>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        parked.sweep();
        sessions.sweep();
        known.sweep();
    }
}
