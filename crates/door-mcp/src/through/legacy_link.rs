//! A connection of the older era: a handshake, a session, and requests both ways.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::task::TaskTracker;
use toolgate_fair::Permit;
use toolgate_mcp::Server;
use toolgate_mcp::link::message::{Id, Members, Message, Notification, Outcome, Request, Response};
use toolgate_mcp::link::{Exchange, Link, LinkError, Receiver};

use super::tools::Listed;
use super::{era, headers};

/// Longest time that a notice of cancellation may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection of the older era.
pub(super) struct LegacyLink {
    link: Link,
    headers: HeaderMap,
    /// The result of the handshake.
    pub(super) initialized: Box<RawValue>,
    count: AtomicU64,
    is_gone: AtomicBool,
    /// Notices that are sent after their requests were dropped.
    errands: TaskTracker,
    pub(super) listed: Listed,
    // After the link: its program has ended, or was told to, when another may take its place.
    _process: Option<Permit>,
}

impl LegacyLink {
    /// Shakes hands with these parameters. An error of the server is given as [`LinkError::Unreachable`]. `process` is the
    /// right to run the server's program.
    pub(super) async fn open(
        server: &Server,
        params: Members,
        process: Option<Permit>,
    ) -> Result<Self, LinkError> {
        let link = server.link()?;
        let request = Request {
            id: Id::text("toolgate-initialize"),
            method: "initialize".to_owned(),
            params: Some(params),
        };
        let mut exchange = link.request(request, HeaderMap::new()).await?;
        let outcome = loop {
            match exchange.next().await? {
                Some(Message::Response(response)) => break response.outcome,
                Some(_) => {}
                None => return Err(LinkError::Gone),
            }
        };
        let initialized = match outcome {
            Outcome::Result(result) => result,
            Outcome::Error(error) => {
                let words = Members::of(&error).and_then(|error| error.read::<String>("message"));
                let words = words.unwrap_or_else(|| "it refuses the handshake".into());
                return Err(LinkError::Unreachable(words));
            }
        };
        let mut made = HeaderMap::new();
        if let Some(session) = exchange.session.clone() {
            made.insert(headers::SESSION, session);
        }
        let version: Option<String> =
            Members::of(&initialized).and_then(|result| result.read("protocolVersion"));
        let version = version.unwrap_or_else(|| era::LEGACY.to_owned());
        if let Ok(version) = HeaderValue::try_from(version) {
            made.insert(headers::VERSION, version);
        }
        drop(exchange);
        Ok(Self {
            link,
            headers: made,
            initialized,
            count: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
            errands: TaskTracker::new(),
            listed: Listed::default(),
            _process: process,
        })
    }

    /// Ends the handshake, and opens the stream of what belongs to no request.
    pub(super) async fn start(&self) -> Result<(), LinkError> {
        let ready = Notification {
            method: "notifications/initialized".to_owned(),
            params: None,
        };
        self.tell(Message::Notification(ready)).await?;
        self.link.follow(self.headers.clone()).await;
        Ok(())
    }

    pub(super) async fn request(self: &Arc<Self>, request: Request) -> Result<LegacyExchange, LinkError> {
        let id = request.id.clone();
        let exchange = self.noticed(self.link.request(request, self.headers.clone()).await)?;
        Ok(LegacyExchange {
            id,
            exchange: Some(exchange),
            link: self.clone(),
        })
    }

    pub(super) async fn tell(&self, message: Message) -> Result<(), LinkError> {
        self.noticed(self.link.tell(&message, self.headers.clone()).await)
    }

    /// Answers a request of the server.
    pub(super) async fn answer(&self, id: Id, outcome: Outcome) -> Result<(), LinkError> {
        let id = Some(id);
        self.tell(Message::Response(Response { id, outcome })).await
    }

    /// What belongs to no request; given once.
    pub(super) fn unrelated(&self) -> Option<Receiver> {
        self.link.unrelated()
    }

    /// Ends the session.
    pub(super) async fn end(&self) {
        if self.headers.contains_key(headers::SESSION) {
            self.link.end_session(self.headers.clone()).await;
        }
    }

    pub(super) fn fresh_id(&self) -> Id {
        Id::text(&format!(
            "toolgate-{}",
            self.count.fetch_add(1, Ordering::Relaxed)
        ))
    }

    /// Capabilities of the server.
    pub(super) fn capabilities(&self) -> Value {
        let initialized = Members::of(&self.initialized);
        initialized
            .and_then(|result| result.read("capabilities"))
            .unwrap_or_default()
    }

    /// Whether the child has ended, or the server has forgotten the session.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    fn noticed<T>(&self, result: Result<T, LinkError>) -> Result<T, LinkError> {
        // 404 is what a server says of a session that it does not know.
        if matches!(result, Err(LinkError::Gone | LinkError::Status(404))) {
            self.is_gone.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// A request under way. Dropping it before its response tells the server to stop.
pub(super) struct LegacyExchange {
    pub(super) id: Id,
    /// None when it is over.
    exchange: Option<Exchange>,
    link: Arc<LegacyLink>,
}

impl LegacyExchange {
    /// The next message that belongs to the request; none after the response.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, LinkError> {
        let Some(exchange) = &mut self.exchange else {
            return Ok(None);
        };
        let next = self.link.noticed(exchange.next().await);
        match &next {
            Ok(Some(Message::Response(_))) => self.is_over(),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => self.exchange = None,
        }
        next
    }

    /// The client has told the server to stop by itself.
    pub(super) fn forget(&mut self) {
        self.is_over();
    }

    fn is_over(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            exchange.forget();
        }
    }
}

impl Drop for LegacyExchange {
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.take() else {
            return;
        };
        if !self.link.link.is_http() {
            // On a pipe that is said when the exchange is dropped.
            return drop(exchange);
        }
        let params = serde_json::json!({"requestId": self.id.raw()});
        let notice = Message::Notification(Notification::new("notifications/cancelled", params));
        let link = self.link.clone();
        let errands = self.link.errands.clone();
        errands.spawn(async move {
            // The server hears of it before its stream is closed. One that cannot be reached does not go on for us either.
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, link.tell(notice)).await;
            drop(exchange);
        });
    }
}
