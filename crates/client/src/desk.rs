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

/// Works on calls. Stops when dropped.
pub(crate) struct Desk {
    handler: Handler,
    tell: mpsc::Sender<Told>,
    stop: CancellationToken,
    /// Calls that were taken and that no event has settled yet.
    open: HashMap<CallId, CancellationToken>,
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

    /// Whether this offer is for us, and news.
    pub fn wants(&self, offer: &Offer) -> bool {
        let known = self.open.contains_key(&offer.call) || self.declined.contains(&offer.call);
        !known && self.handler.takes(&offer.name)
    }

    /// Begins to work on a call.
    pub fn take(&mut self, offer: Offer) {
        let (handler, tell, call) = (self.handler.clone(), self.tell.clone(), offer.call);
        let cancelled = self.stop.child_token();
        self.open.insert(call, cancelled.clone());
        self.tasks
            .spawn(async move { (call, work(&handler, call, cancelled, &tell).await) });
    }

    /// An event says that the call has its outcome: whoever still works on it may stop.
    pub fn settle(&mut self, call: CallId) {
        if let Some(cancelled) = self.open.remove(&call) {
            cancelled.cancel();
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
        let (call, worked) = self
            .tasks
            .join_next()
            .await?
            .expect("executors' panics are caught");
        match &worked {
            // Open until the event comes: only that moves the run.
            Ok(Worked::Stored { .. }) => {}
            Ok(Worked::Elsewhere) | Err(_) => drop(self.open.remove(&call)),
            Ok(Worked::Declined) => {
                self.open.remove(&call);
                self.declined.insert(call);
            }
        }
        Some((call, worked))
    }

    /// Gives everything back that is not done.
    pub async fn close(&mut self) {
        self.stop.cancel();
        while self.next().await.is_some() {}
    }
}
