//! The transport, and the legacy sessions in it. A session is what a
//! client of before 2026-07-28 begins with `initialize`. It is in memory only; after a restart its requests are answered
//! with 404, and the client begins anew.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Request, Response, StatusCode};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::model::Tool;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::time::Instant;
use toolgate_access::Principal;
use toolgate_http::problem::Refusal;

use crate::Mcp;
use crate::handler::Handler;
use crate::session_shares::{Held, Owner, SessionLimits};

/// Names a legacy session.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// How long a session lasts in which nothing happens; longer than one request stays open.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(1800);
/// How many sessions there may be.
const SESSIONS: SessionLimits = SessionLimits {
    user: 16,
    key: 1024,
    all: 4096,
};
/// Messages that wait for a client that does not read, per stream. A stream carries notices of progress and one result.
const MESSAGES_WAITING_MAX: usize = 8;
/// How long what a stream said can be asked for again.
const REPLAY_MAX: Duration = Duration::from_secs(30);

tokio::task_local! {
    /// The tool that the request under way calls.
    static CALLED: Option<Tool>;
}

/// MCP's streamable HTTP, both eras.
pub(crate) struct Transport {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    sessions: Mutex<HashMap<String, Held>>,
}

impl Transport {
    /// The transport of the gateway; ends with it.
    pub fn new(mcp: Arc<Mcp>) -> Self {
        let settings = &mcp.shared.settings;
        // Hosts and origins are checked before.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_sse_keep_alive(Some(settings.heartbeat))
            .with_max_request_body_bytes(settings.body_bytes_max)
            .with_cancellation_token(settings.stop.child_token());
        let mut sessions = SessionConfig::default();
        sessions.keep_alive = Some(SESSION_IDLE_MAX);
        sessions.channel_capacity = MESSAGES_WAITING_MAX;
        sessions.completed_cache_ttl = REPLAY_MAX;
        let mut manager = LocalSessionManager::default();
        manager.session_config = sessions;
        let manager = Arc::new(manager);
        let handler = move || {
            let called = CALLED.try_with(Clone::clone).ok().flatten();
            Ok(Handler::new(mcp.clone(), called))
        };
        Self {
            service: StreamableHttpService::new(handler, manager.clone(), config),
            manager,
            sessions: Mutex::default(),
        }
    }

    /// Answers a request. `called` is the tool that it calls.
    pub async fn answer(
        self: Arc<Self>,
        who: Principal,
        called: Option<Tool>,
        request: Request<Full<Bytes>>,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        let begins = !request.headers().contains_key(SESSION_ID);
        let answer = CALLED.scope(called, self.service.handle(request)).await;
        let made = answer.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
        if let Some(id) = made.filter(|_| begins) {
            let session = Held {
                owner: Owner::of(&who),
                used: Instant::now(),
            };
            self.lock().insert(id.to_owned(), session);
        }
        answer
    }

    /// Fails unless the session is the caller's: another's does not exist for it.
    pub fn admit(&self, who: &Principal, id: &str) -> Result<(), Refusal> {
        let mut sessions = self.lock();
        let session = sessions
            .get_mut(id)
            .filter(|session| session.owner == Owner::of(who));
        let Some(session) = session else {
            let words = "there is no such session: it has ended, or the gateway was started anew; send initialize again";
            return Err(Refusal::new(StatusCode::NOT_FOUND, "NO_SESSION", words));
        };
        session.used = Instant::now();
        Ok(())
    }

    /// Makes room for one more session of this caller: another gives way where there are too many.
    pub async fn make_room(&self, who: &Principal) {
        let live: HashSet<String> = {
            let known = self.manager.sessions.read().await;
            known.keys().map(|id| id.to_string()).collect()
        };
        let gives_way = {
            let mut sessions = self.lock();
            sessions.retain(|id, _| live.contains(id));
            let gives_way = SESSIONS.gives_way(&sessions, Owner::of(who));
            if let Some(id) = &gives_way {
                sessions.remove(id);
            }
            gives_way
        };
        if let Some(id) = gives_way {
            // One that has ended by itself meanwhile is gone too.
            let _ = self.manager.close_session(&id.into()).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
