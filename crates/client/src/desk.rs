//! The calls that a client works on, told by the events it reads.

use std::collections::{HashMap, HashSet};
use std::num::NonZero;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_kernel::event::Event as Body;
use toolgate_kernel::id::CallId;
use toolgate_kernel::tool::Placement;

use crate::error::Error;
use crate::event::Event;
use crate::work::{Handler, Told, Worked, work};

/// Calls that are executed at a time, unless said otherwise.
pub(crate) const CONCURRENCY_DEFAULT: NonZero<usize> = NonZero::new(16).expect("not zero");

/// A call that may be executed by whoever claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub call: CallId,
    pub name: String,
}

/// What an event means for whoever executes calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sign {
    Offered(Offer),
    Settled(CallId),
}

/// Reads an event. A client call is offered when it has a deadline, which it gets when no person stands in its
/// way any more; and again when its holder went away.
pub(crate) fn sign(event: &Event) -> Option<Sign> {
    let (tool, offered) = match event.body.as_ref()? {
        Body::ToolInputAvailable(e) => (e.tool(), e.deadline.is_some()),
        Body::ToolApprovalResponse(e) => (e.tool(), e.approved && e.deadline.is_some()),
        Body::ToolReleased(e) => (e.tool(), true),
        Body::ToolOutputAvailable(e) => return Some(Sign::Settled(e.tool_call_id)),
        Body::ToolOutputError(e) => return Some(Sign::Settled(e.tool_call_id)),
        Body::ToolOutputDenied(e) => return Some(Sign::Settled(e.tool_call_id)),
        _ => return None,
    };
    (offered && tool.placement == Placement::Client).then(|| {
        Sign::Offered(Offer {
            call: tool.call,
            name: tool.name.to_string(),
        })
    })
}

/// A call that was taken.
struct Open {
    name: String,
    cancelled: CancellationToken,
    /// It was offered once more meanwhile: should the gateway say that somebody else holds it, that may be old.
    offered_again: bool,
}

/// Works on calls. Stops when dropped.
pub(crate) struct Desk {
    handler: Handler,
    tell: mpsc::Sender<Told>,
    stop: CancellationToken,
    /// Calls that were taken and that no event has settled yet.
    open: HashMap<CallId, Open>,
    /// Calls that nothing here executes, until they are settled.
    declined: HashSet<CallId>,
    /// As many calls as may be claimed at a time; the rest waits.
    room: Arc<Semaphore>,
    tasks: JoinSet<(CallId, Result<Worked, Error>)>,
}

impl Desk {
    pub fn new(handler: Handler, tell: mpsc::Sender<Told>, concurrency: NonZero<usize>) -> Self {
        Self {
            handler,
            tell,
            stop: CancellationToken::new(),
            open: HashMap::new(),
            declined: HashSet::new(),
            room: Arc::new(Semaphore::new(concurrency.get().min(Semaphore::MAX_PERMITS))),
            tasks: JoinSet::new(),
        }
    }

    /// Whether this offer is for us, and news. One of a call that is open is remembered.
    pub fn wants(&mut self, offer: &Offer) -> bool {
        if let Some(open) = self.open.get_mut(&offer.call) {
            open.offered_again = true;
            return false;
        }
        !self.declined.contains(&offer.call) && self.handler.takes(&offer.name)
    }

    /// Begins to work on a call as soon as there is room.
    pub fn take(&mut self, offer: Offer) {
        let (handler, tell, call) = (self.handler.clone(), self.tell.clone(), offer.call);
        let cancelled = self.stop.child_token();
        let open = Open {
            name: offer.name,
            cancelled: cancelled.clone(),
            offered_again: false,
        };
        self.open.insert(call, open);
        let room = self.room.clone();
        self.tasks.spawn(async move {
            let _place = tokio::select! {
                place = room.acquire_owned() => place.expect("the room is never closed"),
                () = cancelled.cancelled() => return (call, Ok(Worked::Elsewhere)),
            };
            (call, work(&handler, call, cancelled, &tell).await)
        });
    }

    /// An event says that the call has its outcome: whoever still works on it may stop.
    pub fn settle(&mut self, call: CallId) {
        self.declined.remove(&call);
        if let Some(open) = self.open.remove(&call) {
            open.cancelled.cancel();
        }
    }

    /// Calls of ours whose outcome is not known yet.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Somebody works.
    pub fn is_busy(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// How the next piece of work ended; none when nobody works.
    pub async fn next(&mut self) -> Option<(CallId, Result<Worked, Error>)> {
        loop {
            let joined = self.tasks.join_next().await?;
            let (call, worked) = joined.expect("executors' panics are caught");
            match &worked {
                // Open until the event comes: only that moves the run.
                Ok(Worked::Stored { .. }) => {}
                Ok(Worked::Elsewhere) => {
                    let open = self.open.remove(&call);
                    if let Some(offer) = open.and_then(|open| self.still_offered(call, open)) {
                        self.take(offer);
                        continue;
                    }
                }
                Err(_) => drop(self.open.remove(&call)),
                Ok(Worked::Declined) => {
                    self.open.remove(&call);
                    self.declined.insert(call);
                }
            }
            return Some((call, worked));
        }
    }

    /// The offer that came while somebody else still seemed to hold the call. No other comes.
    fn still_offered(&self, call: CallId, open: Open) -> Option<Offer> {
        let name = open.name;
        (open.offered_again && !self.stop.is_cancelled()).then_some(Offer { call, name })
    }

    /// Gives everything back that is not done.
    pub async fn close(&mut self) {
        self.stop.cancel();
        while self.next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::client::Client;
    use crate::scripted::{Reply, Scripted};
    use crate::tool::{Definition, Tool};
    use toolgate_kernel::id::RunId;

    async fn desk(client: Client) -> (Desk, mpsc::Receiver<Told>, Offer) {
        let tool = Tool::new(Definition::new("ask", "Asks."), |_| async { Ok("blue".into()) });
        client.register_tool(tool).await.unwrap();
        let handler = Handler {
            client,
            first: None,
            only: None,
        };
        let (tell, told) = mpsc::channel(1);
        let run = RunId::new(Uuid::now_v7());
        let offer = Offer {
            call: CallId { run, number: 0 },
            name: "ask".into(),
        };
        (Desk::new(handler, tell, CONCURRENCY_DEFAULT), told, offer)
    }

    #[tokio::test]
    async fn a_call_that_is_released_while_it_is_claimed_is_claimed_again() {
        let held = Reply::json(409, r#"{"status":409,"code":"HELD","detail":"held"}"#);
        let gateway = Scripted::start([held, held]);
        let (mut desk, _told, offer) = desk(gateway.client()).await;
        assert!(desk.wants(&offer));
        desk.take(offer.clone());
        assert!(!desk.wants(&offer), "it is being claimed");
        let (_, worked) = desk.next().await.unwrap();
        assert!(matches!(worked, Ok(Worked::Elsewhere)));
        assert_eq!(gateway.asked(), 2);
        assert!(desk.wants(&offer), "forgotten, should it be offered once more");
    }

    #[tokio::test]
    async fn a_call_that_was_declined_is_forgotten_when_it_is_settled() {
        let (mut desk, _told, offer) = desk(Scripted::start([]).client()).await;
        desk.declined.insert(offer.call);
        assert!(!desk.wants(&offer));
        desk.settle(offer.call);
        assert!(desk.declined.is_empty());
    }
}
