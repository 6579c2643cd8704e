//! Executes the calls that a stream of events announces, with a limit on how many run at once.

use std::collections::{HashMap, HashSet};
use std::num::NonZero;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_protocol::event::Event as Body;
use toolgate_protocol::id::CallId;
use toolgate_protocol::tool::Placement;

use crate::error::Error;
use crate::event::Event;
use crate::work::{CallEnd, Handler, WorkEvent, WorkOutcome, execute_call};

/// Calls executed at once by default.
pub(crate) const CONCURRENCY_DEFAULT: NonZero<usize> = NonZero::new(16).expect("not zero");

/// An open call that any client may claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub call: CallId,
    pub name: String,
}

/// The meaning of an event for a client that executes calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallUpdate {
    Offered(Offer),
    Settled(CallId),
}

/// Reads an event. A client call is offered when it has a deadline, which it gets once it needs no approval
/// any more, and again when its lease was released or expired.
pub(crate) fn call_update(event: &Event) -> Option<CallUpdate> {
    let (tool, offered) = match event.body.as_ref()? {
        Body::ToolInputAvailable(e) => (e.tool(), e.deadline.is_some()),
        Body::ToolApprovalResponse(e) => (e.tool(), e.approved && e.deadline.is_some()),
        Body::ToolReleased(e) => (e.tool(), true),
        Body::ToolOutputAvailable(e) => return Some(CallUpdate::Settled(e.tool_call_id)),
        Body::ToolOutputError(e) => return Some(CallUpdate::Settled(e.tool_call_id)),
        Body::ToolOutputDenied(e) => return Some(CallUpdate::Settled(e.tool_call_id)),
        _ => return None,
    };
    (offered && tool.placement == Placement::Client).then(|| {
        CallUpdate::Offered(Offer {
            call: tool.call,
            name: tool.name.to_string(),
        })
    })
}

/// A call that this client has begun to work on.
struct Open {
    name: String,
    end: CallEnd,
    /// The call was offered once more meanwhile: if the claim then fails because another client holds it,
    /// that answer may be outdated.
    offered_again: bool,
}

/// Claims and executes calls. Dropping it stops all work.
pub(crate) struct CallExecutor {
    handler: Handler,
    work_events: mpsc::Sender<WorkEvent>,
    stop: CancellationToken,
    /// Calls that this client has begun and no event has ended yet.
    open: HashMap<CallId, Open>,
    /// Calls that nothing on this client executes, until they end.
    declined: HashSet<CallId>,
    /// Permits for calls that may be claimed at once; further ones wait.
    permits: Arc<Semaphore>,
    tasks: JoinSet<(CallId, Result<WorkOutcome, Error>)>,
}

impl CallExecutor {
    pub fn new(handler: Handler, work_events: mpsc::Sender<WorkEvent>, concurrency: NonZero<usize>) -> Self {
        Self {
            handler,
            work_events,
            stop: CancellationToken::new(),
            open: HashMap::new(),
            declined: HashSet::new(),
            permits: Arc::new(Semaphore::new(concurrency.get().min(Semaphore::MAX_PERMITS))),
            tasks: JoinSet::new(),
        }
    }

    /// Whether the offer is new and for this client. A repeated offer of a call in progress is remembered.
    pub fn wants(&mut self, offer: &Offer) -> bool {
        if let Some(open) = self.open.get_mut(&offer.call) {
            open.offered_again = true;
            return false;
        }
        !self.declined.contains(&offer.call) && self.handler.accepts(&offer.name)
    }

    /// Begins the work on a call as soon as a permit is free.
    pub fn start(&mut self, offer: Offer) {
        let (handler, work_events, call) = (self.handler.clone(), self.work_events.clone(), offer.call);
        let end = CallEnd {
            cancelled: self.stop.child_token(),
            settled: CancellationToken::new(),
        };
        let open = Open {
            name: offer.name,
            end: end.clone(),
            offered_again: false,
        };
        self.open.insert(call, open);
        let permits = self.permits.clone();
        self.tasks.spawn(async move {
            let _permit = tokio::select! {
                permit = permits.acquire_owned() => permit.expect("the semaphore is never closed"),
                () = end.cancelled.cancelled() => return (call, Ok(WorkOutcome::Elsewhere)),
            };
            (call, execute_call(&handler, call, end, &work_events).await)
        });
    }

    /// Handles the event that ends a call: work on it is cancelled.
    pub fn end_call(&mut self, call: CallId) {
        self.declined.remove(&call);
        if let Some(open) = self.open.remove(&call) {
            open.end.settled.cancel();
            open.end.cancelled.cancel();
        }
    }

    /// Number of this client's calls that have no outcome yet.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Whether any call is being executed.
    pub fn is_busy(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// How the next call's work ended; `None` if there is none.
    pub async fn next(&mut self) -> Option<(CallId, Result<WorkOutcome, Error>)> {
        loop {
            let joined = self.tasks.join_next().await?;
            let (call, worked) = joined.expect("tools run in tasks of their own");
            match &worked {
                // Stays open until its event arrives: only the event advances the run.
                Ok(WorkOutcome::Stored { .. }) => {}
                Ok(WorkOutcome::Elsewhere) => {
                    let open = self.open.remove(&call);
                    if let Some(offer) = open.and_then(|open| self.still_offered(call, open)) {
                        self.start(offer);
                        continue;
                    }
                }
                Err(_) => drop(self.open.remove(&call)),
                Ok(WorkOutcome::Declined) => {
                    self.open.remove(&call);
                    self.declined.insert(call);
                }
            }
            return Some((call, worked));
        }
    }

    /// The offer that arrived while another client still seemed to hold the call. The gateway will not send
    /// it again.
    fn still_offered(&self, call: CallId, open: Open) -> Option<Offer> {
        let name = open.name;
        (open.offered_again && !self.stop.is_cancelled()).then_some(Offer { call, name })
    }

    /// Releases the lease of every call that is not done.
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
    use toolgate_protocol::id::RunId;

    async fn executor(client: Client) -> (CallExecutor, mpsc::Receiver<WorkEvent>, Offer) {
        let tool = Tool::new(Definition::new("ask", "Asks."), |_| async { Ok("blue".into()) });
        client.register_tool(tool).await.unwrap();
        let handler = Handler {
            client,
            first: None,
            only: None,
        };
        let (work_events, received) = mpsc::channel(1);
        let run = RunId::new(Uuid::now_v7());
        let offer = Offer {
            call: CallId { run, number: 0 },
            name: "ask".into(),
        };
        (
            CallExecutor::new(handler, work_events, CONCURRENCY_DEFAULT),
            received,
            offer,
        )
    }

    #[tokio::test]
    async fn a_call_that_is_released_while_it_is_claimed_is_claimed_again() {
        let held = Reply::json(409, r#"{"status":409,"code":"HELD","detail":"held"}"#);
        let gateway = Scripted::start([held, held]);
        let (mut executor, _work_events, offer) = executor(gateway.client()).await;
        assert!(executor.wants(&offer));
        executor.start(offer.clone());
        assert!(!executor.wants(&offer), "it is being claimed");
        let (_, worked) = executor.next().await.unwrap();
        assert!(matches!(worked, Ok(WorkOutcome::Elsewhere)));
        assert_eq!(gateway.asked(), 2);
        assert!(
            executor.wants(&offer),
            "forgotten, should it be offered once more"
        );
    }

    #[tokio::test]
    async fn a_call_that_was_declined_is_forgotten_when_it_is_settled() {
        let (mut executor, _work_events, offer) = executor(Scripted::start([]).client()).await;
        executor.declined.insert(offer.call);
        assert!(!executor.wants(&offer));
        executor.end_call(offer.call);
        assert!(executor.declined.is_empty());
    }
}
