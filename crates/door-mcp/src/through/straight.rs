//! A session of a client of the older era with a server of the same: everything passes as it is, both ways, and ids with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::link::LinkError;
use toolgate_mcp::link::message::{Id, Members, Message, Outcome, Request};

use super::calls::{self, Counted, unreachable};
use super::era;
use super::legacy_link::{LegacyExchange, LegacyLink};
use super::reply::{Closed, Era, Reply};
use super::upstream::{Lister, Upstream};

pub(super) struct Straight {
    link: Arc<LegacyLink>,
    pub(super) upstream: Arc<Upstream>,
    /// What belongs to no request.
    pub(super) notices: Arc<AsyncMutex<mpsc::Receiver<Message>>>,
    /// Requests of the client that are under way.
    open: Mutex<HashMap<Id, CancellationToken>>,
}

impl Straight {
    /// Shakes hands with the server as the client does, in the gateway's name.
    pub(super) async fn open(upstream: Arc<Upstream>, params: Option<Members>) -> Result<Self, LinkError> {
        let mut params = params.unwrap_or_default();
        params.set("clientInfo", era::gateway());
        let opening = LegacyLink::open(&upstream.server, params);
        let opened = tokio::time::timeout(upstream.limits.handshake, opening).await;
        let late = || LinkError::Unreachable("it does not shake hands in time".into());
        let link = Arc::new(opened.map_err(|_| late())??);
        let notices = link.unrelated().ok_or(LinkError::Gone)?;
        Ok(Self {
            link,
            upstream,
            notices: Arc::new(AsyncMutex::new(notices)),
            open: Mutex::default(),
        })
    }

    /// The server's part of the handshake.
    pub(super) fn initialized(&self) -> Box<RawValue> {
        self.link.initialized.clone()
    }

    /// Passes on a notification, or a response to a request of the server.
    pub(super) async fn tell(&self, message: Message) -> Result<(), LinkError> {
        if let Message::Notification(notice) = &message {
            match notice.method.as_str() {
                "notifications/initialized" => return self.link.start().await,
                "notifications/cancelled" => {
                    let id = notice.params.as_ref().and_then(|params| params.get("requestId"));
                    let open = id
                        .and_then(Id::read)
                        .and_then(|id| self.requests().get(&id).cloned());
                    self.link.tell(message).await?;
                    if let Some(open) = open {
                        open.cancel();
                    }
                    return Ok(());
                }
                _ => {}
            }
        }
        self.link.tell(message).await
    }

    pub(super) async fn forward(&self, request: Request, reply: Reply) -> Result<(), Closed> {
        let id = request.id.clone();
        let Some(open) = self.begin(&id) else {
            let outcome = unreachable(&self.upstream, &LinkError::Repeated);
            return reply.end(&id, outcome).await;
        };
        let counted = Counted::begin(&self.upstream, &request);
        let method = request.method.clone();
        let lister = Lister::Legacy(&self.link);
        let outcome = match calls::check(&self.upstream, &request, lister, None, Era::Legacy).await {
            Err(outcome) => outcome,
            Ok(_) => match self.link.request(request).await {
                Err(error) => unreachable(&self.upstream, &error),
                Ok(exchange) => match self.follow(exchange, &reply, &open.token).await? {
                    Some(outcome) => outcome,
                    // Cancelled: nobody waits for a response.
                    None => return Ok(()),
                },
            },
        };
        let outcome = match method.as_str() {
            "tools/list" => self.upstream.passed_list(outcome),
            _ => outcome,
        };
        counted.end(&outcome);
        reply.end(&id, outcome).await
    }

    async fn follow(
        &self,
        mut exchange: LegacyExchange,
        reply: &Reply,
        cancelled: &CancellationToken,
    ) -> Result<Option<Outcome>, Closed> {
        loop {
            let message = tokio::select! {
                message = exchange.next() => message,
                () = cancelled.cancelled() => {
                    exchange.forget();
                    return Ok(None);
                }
            };
            match message {
                Ok(Some(Message::Response(response))) => return Ok(Some(response.outcome)),
                Ok(Some(message)) => {
                    if let Message::Notification(notice) = &message
                        && notice.method == "notifications/tools/list_changed"
                    {
                        self.upstream.tools.forget();
                    }
                    reply.send(message).await?;
                }
                Ok(None) => return Ok(Some(unreachable(&self.upstream, &LinkError::Gone))),
                Err(error) => return Ok(Some(unreachable(&self.upstream, &error))),
            }
        }
    }

    /// Tells the server that the session is over.
    pub(super) async fn end(&self) {
        self.link.end().await;
    }

    fn begin(&self, id: &Id) -> Option<OpenRequest<'_>> {
        let token = CancellationToken::new();
        let mut requests = self.requests();
        if requests.contains_key(id) {
            return None;
        }
        requests.insert(id.clone(), token.clone());
        Some(OpenRequest {
            token,
            id: id.clone(),
            of: self,
        })
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request under way, which the client may cancel.
struct OpenRequest<'s> {
    token: CancellationToken,
    id: Id,
    of: &'s Straight,
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.of.requests().remove(&self.id);
    }
}
