//! The calls that a client works on, told by the events it reads.

use std::collections::{HashMap, HashSet};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_kernel::event::Event as Body;
use toolgate_kernel::id::CallId;
use toolgate_kernel::tool::Placement;

use crate::error::Error;
use crate::event::Event;
use crate::work::{Handler, Told, Worked, work};

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
    declined: HashSet<CallId>,
    tasks: JoinSet<(CallId, Result<Worked, Error>)>,
}

impl Desk {
    pub fn new(handler: Handler, tell: mpsc::Sender<Told>) -> Self {
        Self {
            handler,
            tell,
            stop: CancellationToken::new(),
            open: HashMap::new(),
            declined: HashSet::new(),
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

    /// Begins to work on a call.
    pub fn take(&mut self, offer: Offer) {
        let (handler, tell, call) = (self.handler.clone(), self.tell.clone(), offer.call);
        let cancelled = self.stop.child_token();
        let open = Open {
            name: offer.name,
            cancelled: cancelled.clone(),
            offered_again: false,
        };
        self.open.insert(call, open);
        self.tasks
            .spawn(async move { (call, work(&handler, call, cancelled, &tell).await) });
    }

    /// An event says that the call has its outcome: whoever still works on it may stop.
    pub fn settle(&mut self, call: CallId) {
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
    use crate::scripted::{Reply, Scripted};
    use crate::tool::{Definition, Tool};
    use toolgate_kernel::id::RunId;

    #[tokio::test]
    async fn a_call_that_is_released_while_it_is_claimed_is_claimed_again() {
        let held = Reply::json(409, r#"{"status":409,"code":"HELD","detail":"held"}"#);
        let gateway = Scripted::start([held, held]);
        let client = gateway.client();
        let tool = Tool::new(Definition::new("ask", "Asks."), |_| async { Ok("blue".into()) });
        client.register_tool(tool).await.unwrap();
        let handler = Handler {
            client,
            first: None,
            only: None,
        };
        let (tell, _told) = mpsc::channel(1);
        let mut desk = Desk::new(handler, tell);
        let run = RunId::new(Uuid::now_v7());
        let offer = Offer {
            call: CallId { run, number: 0 },
            name: "ask".into(),
        };
        assert!(desk.wants(&offer));
        desk.take(offer.clone());
        assert!(!desk.wants(&offer), "it is being claimed");
        let (_, worked) = desk.next().await.unwrap();
        assert!(matches!(worked, Ok(Worked::Elsewhere)));
        assert_eq!(gateway.asked(), 2);
        assert!(desk.wants(&offer), "forgotten, should it be offered once more");
    }
}
