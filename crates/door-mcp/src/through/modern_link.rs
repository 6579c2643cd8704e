//! A connection of the newer era. Clients share it: on a pipe each request gets an id and a progress token of its own, and
//! what comes back is given the client's again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::http::HeaderMap;
use serde_json::value::RawValue;
use toolgate_fair::Permit;
use toolgate_mcp::link::message::{Id, Members, Message, Request};
use toolgate_mcp::link::{Exchange, Link, LinkError};

use super::era::{META, SUBSCRIPTION_KEY};
use super::tools::Listed;

/// Token of a request, by which its progress is known.
const TOKEN: &str = "progressToken";

/// A connection of the newer era.
pub(super) struct ModernLink {
    link: Link,
    count: AtomicU64,
    is_gone: AtomicBool,
    pub(super) listed: Listed,
    // After the link: its program has ended, or was told to, when another may take its place.
    _process: Option<Permit>,
}

impl ModernLink {
    /// A connection for which nothing was sent yet. `process` is the right to run its program.
    pub(super) fn new(link: Link, process: Option<Permit>) -> Self {
        Self {
            link,
            count: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
            listed: Listed::default(),
            _process: process,
        }
    }

    /// Whether its child has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    pub(super) async fn request(
        self: &Arc<Self>,
        mut request: Request,
        headers: HeaderMap,
    ) -> Result<ModernExchange, LinkError> {
        let theirs = match self.link.is_http() {
            true => None,
            false => Some(self.rename(&mut request)),
        };
        let exchange = self.noticed(self.link.request(request, headers).await)?;
        Ok(ModernExchange {
            exchange,
            theirs,
            link: self.clone(),
        })
    }

    /// Gives a request names that no other client uses.
    fn rename(&self, request: &mut Request) -> Theirs {
        let fresh = Id::text(&format!(
            "toolgate-{}",
            self.count.fetch_add(1, Ordering::Relaxed)
        ));
        let mut token = None;
        if let Some(params) = &mut request.params
            && let Some(mut meta) = params.object(META)
            && let Some(given) = meta.get(TOKEN)
        {
            token = Some(given.to_owned());
            meta.set(TOKEN, fresh.raw());
            params.set(META, meta);
        }
        Theirs {
            id: std::mem::replace(&mut request.id, fresh),
            token,
        }
    }

    fn noticed<T>(&self, result: Result<T, LinkError>) -> Result<T, LinkError> {
        if matches!(result, Err(LinkError::Gone)) {
            self.is_gone.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// A request under way. Dropping it cancels the request.
pub(super) struct ModernExchange {
    exchange: Exchange,
    theirs: Option<Theirs>,
    link: Arc<ModernLink>,
}

/// The client's own names of a request.
struct Theirs {
    id: Id,
    token: Option<Box<RawValue>>,
}

impl ModernExchange {
    /// The next message that belongs to the request, with the client's own id and token.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, LinkError> {
        let message = self.link.noticed(self.exchange.next().await)?;
        Ok(message.map(|message| match &self.theirs {
            Some(theirs) => theirs.restore(message),
            None => message,
        }))
    }
}

impl Theirs {
    fn restore(&self, mut message: Message) -> Message {
        match &mut message {
            Message::Response(response) => {
                response.id = Some(self.id.clone());
                if let toolgate_mcp::link::message::Outcome::Result(result) = &mut response.outcome
                    && let Some(mut members) = Members::of(result)
                    && self.restore_subscription(&mut members)
                {
                    *result = members.raw();
                }
            }
            Message::Notification(notice) => {
                if let Some(params) = &mut notice.params {
                    if params.get(TOKEN).is_some()
                        && let Some(token) = &self.token
                    {
                        params.set(TOKEN, token);
                    }
                    self.restore_subscription(params);
                }
            }
            Message::Request(_) => {}
        }
        message
    }

    /// The id of a subscription is that of its request.
    fn restore_subscription(&self, members: &mut Members) -> bool {
        let Some(mut meta) = members.object(META) else {
            return false;
        };
        if meta.get(SUBSCRIPTION_KEY).is_none() {
            return false;
        }
        meta.set(SUBSCRIPTION_KEY, self.id.raw());
        members.set(META, meta);
        true
    }
}
