//! A session of a client of the older era with a server of the same: everything passes as it is, both ways, and ids with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::link::message::{Id, Members, Message, Outcome, Request};
use toolgate_mcp::link::{LinkError, Receiver};

use super::calls::{self, Counted, unreachable};
use super::era::{self, INTERNAL};
use super::legacy_link::{LegacyExchange, LegacyLink};
use super::owner::Owner;
use super::reply::{Closed, Era, Reply};
use super::turn::Turn;
use super::upstream::{Lister, Upstream};

/// Most questions of the server that wait for an answer of the client, in one session.
const QUESTIONS_MAX: usize = 64;
/// Longest id of a question.
const QUESTION_ID_BYTES_MAX: usize = 256;

pub(super) struct Straight {
    link: Arc<LegacyLink>,
    pub(super) upstream: Arc<Upstream>,
    /// What belongs to no request.
    pub(super) notices: Arc<AsyncMutex<Receiver>>,
    owner: Owner,
    /// Requests of the client that are under way.
    open: Mutex<HashMap<Id, Open>>,
    /// Requests of the client that stand still until it has answered a question of the server.
    asked: Mutex<HashMap<Id, Vec<Arc<Turn>>>>,
}

struct Open {
    cancelled: CancellationToken,
    /// None while it waits for its turn.
    turn: Option<Arc<Turn>>,
}

impl Straight {
    /// Shakes hands with the server as the client does, in the gateway's name.
    pub(super) async fn open(
        upstream: Arc<Upstream>,
        owner: Owner,
        params: Option<Members>,
    ) -> Result<Self, LinkError> {
        let mut params = params.unwrap_or_default();
        params.set("clientInfo", era::gateway());
        let link = Arc::new(upstream.shake_hands(owner, params).await?);
        let notices = link.unrelated().ok_or(LinkError::Gone)?;
        Ok(Self {
            link,
            upstream,
            owner,
            notices: Arc::new(AsyncMutex::new(notices)),
            open: Mutex::default(),
            asked: Mutex::default(),
        })
    }

    /// The server's part of the handshake.
    pub(super) fn initialized(&self) -> Box<RawValue> {
        self.link.initialized.clone()
    }

    /// The server asks the client something on the stream of no request: any that is under way may wait for the answer.
    /// False if it may not, and then it has been told.
    pub(super) async fn asks(&self, question: &Request) -> bool {
        let turns: Vec<Arc<Turn>> = self
            .requests()
            .values()
            .filter_map(|open| open.turn.clone())
            .collect();
        self.stand_still(&question.id, turns).await
    }

    /// The requests stand still until the client has answered. False for a question too many, of which the server has been
    /// told: it would keep its call for as long as it asks.
    async fn stand_still(&self, question: &Id, turns: Vec<Arc<Turn>>) -> bool {
        {
            let mut asked = lock(&self.asked);
            let is_known = asked.contains_key(question);
            let is_short = question.raw().get().len() <= QUESTION_ID_BYTES_MAX;
            if is_short && !is_known && asked.len() < QUESTIONS_MAX {
                for turn in &turns {
                    turn.pause();
                }
                asked.insert(question.clone(), turns);
                return true;
            }
        }
        let words = "too many questions wait for an answer of the client already, or one has the same id";
        // A server that is gone is noticed at the next message.
        let _ = self
            .link
            .answer(question.clone(), Outcome::error(INTERNAL, words))
            .await;
        false
    }

    /// Passes on a notification, or a response to a request of the server.
    pub(super) async fn tell(&self, message: Message) -> Result<(), LinkError> {
        if let Message::Response(response) = &message
            && let Some(id) = &response.id
        {
            let waited = lock(&self.asked).remove(id);
            waited.into_iter().flatten().for_each(|turn| turn.resume());
        }
        if let Message::Notification(notice) = &message {
            match notice.method.as_str() {
                "notifications/initialized" => return self.link.start().await,
                "notifications/cancelled" => {
                    let id = notice.params.as_ref().and_then(|params| params.get("requestId"));
                    let open = id
                        .and_then(Id::read)
                        .and_then(|id| self.requests().get(&id).map(|open| open.cancelled.clone()));
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
        let Some(mut open) = self.begin(&id) else {
            let outcome = unreachable(&self.upstream, &LinkError::Repeated);
            return reply.end(&id, outcome).await;
        };
        let turn = tokio::select! {
            turn = Turn::begin(&self.upstream, self.owner, &request) => turn,
            () = open.cancelled.cancelled() => return Ok(()),
        };
        let turn = match turn {
            Ok(turn) => open.hold(turn),
            Err(outcome) => return reply.end(&id, outcome).await,
        };
        let counted = Counted::begin(&self.upstream, &request);
        let outcome = tokio::select! {
            outcome = self.outcome(request, &reply, &open.cancelled, &turn) => outcome?,
            () = turn.expired() => Some(turn.late(Era::Legacy)),
        };
        // Cancelled: nobody waits for a response.
        let Some(outcome) = outcome else { return Ok(()) };
        counted.end(&outcome);
        reply.end(&id, outcome).await
    }

    /// The response; none when the client has cancelled the request.
    async fn outcome(
        &self,
        request: Request,
        reply: &Reply,
        cancelled: &CancellationToken,
        turn: &Arc<Turn>,
    ) -> Result<Option<Outcome>, Closed> {
        let lister = Lister::Legacy(&self.link);
        if let Err(outcome) = calls::check(&self.upstream, &request, lister, None, Era::Legacy).await {
            return Ok(Some(outcome));
        }
        let is_list = request.method == "tools/list";
        let outcome = match self.link.request(request).await {
            Err(error) => Some(unreachable(&self.upstream, &error)),
            Ok(exchange) => self.follow(exchange, reply, cancelled, turn).await?,
        };
        Ok(match (is_list, outcome) {
            (true, Some(outcome)) => Some(self.upstream.passed_list(outcome)),
            (_, outcome) => outcome,
        })
    }

    async fn follow(
        &self,
        mut exchange: LegacyExchange,
        reply: &Reply,
        cancelled: &CancellationToken,
        turn: &Arc<Turn>,
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
                    match &message {
                        Message::Notification(notice)
                            if notice.method == "notifications/tools/list_changed" =>
                        {
                            self.upstream.tools.forget();
                        }
                        Message::Request(question) => {
                            if !self.stand_still(&question.id, vec![turn.clone()]).await {
                                continue;
                            }
                        }
                        Message::Notification(_) | Message::Response(_) => {}
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
        let cancelled = CancellationToken::new();
        let mut requests = self.requests();
        if requests.contains_key(id) {
            return None;
        }
        let open = Open {
            cancelled: cancelled.clone(),
            turn: None,
        };
        requests.insert(id.clone(), open);
        Some(OpenRequest {
            cancelled,
            turn: None,
            id: id.clone(),
            of: self,
        })
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<Id, Open>> {
        lock(&self.open)
    }
}

/// A request under way, which the client may cancel.
struct OpenRequest<'s> {
    cancelled: CancellationToken,
    turn: Option<Arc<Turn>>,
    id: Id,
    of: &'s Straight,
}

impl OpenRequest<'_> {
    fn hold(&mut self, turn: Arc<Turn>) -> Arc<Turn> {
        if let Some(open) = self.of.requests().get_mut(&self.id) {
            open.turn = Some(turn.clone());
        }
        self.turn = Some(turn.clone());
        turn
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.of.requests().remove(&self.id);
        let Some(own) = &self.turn else { return };
        // A question that belonged to nothing else is not waited for any more.
        lock(&self.of.asked).retain(|_, turns| {
            turns.retain(|turn| !Arc::ptr_eq(turn, own));
            !turns.is_empty()
        });
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
