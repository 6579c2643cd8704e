//! The transport, and the legacy sessions in it: whose they are, and how many one user may have. A session is what a
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
use toolgate_kernel::id::{EntityId, KeyId, ProjectId};

use crate::Mcp;
use crate::handler::Handler;

/// Names a legacy session.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// How long a session lasts in which nothing happens; longer than one request stays open.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(1800);
/// Most sessions of one user: the one that was used longest ago gives way to a new one.
const SESSIONS_PER_USER: usize = 16;
/// Most sessions of one secret key, which many people may share.
const SESSIONS_PER_KEY: usize = 1024;
/// Most sessions of all callers.
const SESSIONS_MAX: usize = 4096;
/// Messages that wait for a client that does not read, per stream. A stream carries notices of progress and one result.
const MESSAGES_WAITING_MAX: usize = 8;
/// How long what a stream said can be asked for again.
const REPLAY_MAX: Duration = Duration::from_secs(30);

tokio::task_local! {
    /// The tool that the request under way calls.
    static CALLED: Option<Tool>;
}

/// Who began a session: nobody else may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    project: ProjectId,
    entity: Option<EntityId>,
    key: Option<KeyId>,
}

impl Owner {
    fn of(who: &Principal) -> Self {
        Self {
            project: who.project,
            entity: who.entity(),
            key: who.key.map(|key| key.id()),
        }
    }
}

struct Session {
    owner: Owner,
    used: Instant,
}

/// MCP's streamable HTTP, both eras.
pub(crate) struct Transport {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    sessions: Mutex<HashMap<String, Session>>,
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
            let session = Session {
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

    /// Makes room for one more session of this caller.
    pub async fn make_room(&self, who: &Principal) -> Result<(), Refusal> {
        let live: HashSet<String> = {
            let known = self.manager.sessions.read().await;
            known.keys().map(|id| id.to_string()).collect()
        };
        let oldest = {
            let mut sessions = self.lock();
            sessions.retain(|id, _| live.contains(id));
            if sessions.len() >= SESSIONS_MAX {
                let words = format!("{SESSIONS_MAX} MCP sessions are open; try again later");
                return Err(Refusal::unavailable(words));
            }
            let owner = Owner::of(who);
            let max = match owner.entity {
                Some(_) => SESSIONS_PER_USER,
                None => SESSIONS_PER_KEY,
            };
            let own = || sessions.iter().filter(|(_, session)| session.owner == owner);
            let oldest = own().min_by_key(|(_, session)| session.used);
            let oldest = oldest.map(|(id, _)| id.clone());
            let oldest = oldest.filter(|_| own().count() >= max);
            if let Some(oldest) = &oldest {
                sessions.remove(oldest);
            }
            oldest
        };
        if let Some(id) = oldest {
            // One that has ended by itself meanwhile is gone too.
            let _ = self.manager.close_session(&id.into()).await;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
