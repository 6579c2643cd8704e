//! The work on one call, from the claim to the receipt.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_kernel::id::CallId;

use crate::client::Client;
use crate::error::Error;
use crate::tool::{ToolCall, ToolError, ToolResult};

/// Lease on a claimed call: when a client dies, the call is open again after this.
const LEASE: Duration = Duration::from_secs(30);
/// How often the lease is renewed: two renewals may be lost.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Runs before the client's own tools; `None` leaves the call to them.
pub(crate) type Override =
    Arc<dyn Fn(ToolCall) -> BoxFuture<'static, Option<Result<Value, ToolError>>> + Send + Sync>;

/// The calls that this client executes, and the functions that execute them.
#[derive(Clone)]
pub(crate) struct Handler {
    pub client: Client,
    /// Called first, also for calls of tools that are not this client's.
    pub first: Option<Override>,
    /// Restricts execution to these tools, if set.
    pub only: Option<Arc<HashSet<String>>>,
}

impl Handler {
    /// Whether calls of this tool should be claimed.
    pub fn accepts(&self, tool: &str) -> bool {
        let wanted = self.only.as_ref().is_none_or(|only| only.contains(tool));
        wanted && (self.first.is_some() || self.client.has_tool(tool))
    }

    /// Executes a call; `None` if nothing on this client does. A panic becomes an error for the model, so
    /// that it does not end other calls.
    async fn run(&self, call: ToolCall) -> Option<Result<Value, ToolError>> {
        let name = call.name.clone();
        let guarded = AssertUnwindSafe(self.run_unguarded(call)).catch_unwind();
        guarded
            .await
            .unwrap_or_else(|_| Some(Err(ToolError::new(format_args!("{name} panicked")))))
    }

    async fn run_unguarded(&self, call: ToolCall) -> Option<Result<Value, ToolError>> {
        if let Some(first) = &self.first
            && let Some(outcome) = first(call.clone()).await
        {
            return Some(outcome);
        }
        match self.client.has_tool(&call.name) {
            true => Some(call.execute().await),
            false => None,
        }
    }
}

/// Progress of the work on a call.
#[derive(Debug)]
pub(crate) enum WorkEvent {
    /// The call was claimed, and its tool is executing.
    Began(ToolCall),
    /// The tool has returned.
    Ran(ToolResult),
}

/// How the work on a call ended.
#[derive(Debug)]
pub(crate) enum WorkOutcome {
    /// The result is stored.
    Stored { name: String, ok: bool },
    /// Another client holds the call, it has its outcome, or it is not approved yet. If it is offered again,
    /// it is tried again.
    Elsewhere,
    /// Nothing on this client executes it.
    Declined,
}

/// Claims a call, executes it, and submits its result. The lease is renewed meanwhile.
pub(crate) async fn execute_call(
    handler: &Handler,
    id: CallId,
    cancelled: CancellationToken,
    events: &mpsc::Sender<WorkEvent>,
) -> Result<WorkOutcome, Error> {
    let tools = handler.client.tools();
    let claimed = match tools.claim(id, LEASE).await {
        Ok(claimed) => claimed,
        Err(error) if is_elsewhere(&error) => return Ok(WorkOutcome::Elsewhere),
        Err(error) => return Err(error),
    };
    let call = ToolCall {
        id,
        name: claimed.tool_name,
        input: claimed.input,
        run: claimed.run_id,
        cancelled: cancelled.clone(),
        client: handler.client.clone(),
    };
    let name = call.name.clone();
    // An error means that nobody listens any more; so below.
    let _ = events.send(WorkEvent::Began(call.clone())).await;
    let began = Instant::now();
    let outcome = tokio::select! {
        outcome = handler.run(call) => outcome,
        () = cancelled.cancelled() => {
            release_lease(&handler.client, id).await;
            return Ok(WorkOutcome::Elsewhere);
        }
        () = renew_lease(&handler.client, id) => {
            cancelled.cancel();
            return Ok(WorkOutcome::Elsewhere);
        }
    };
    let Some(outcome) = outcome else {
        release_lease(&handler.client, id).await;
        return Ok(WorkOutcome::Declined);
    };
    let result = ToolResult {
        call: id,
        name: name.clone(),
        outcome,
        elapsed: began.elapsed(),
    };
    let _ = events.send(WorkEvent::Ran(result.clone())).await;
    submit_result(&handler.client, &result).await
}

/// Submits the result. A result that the gateway rejects is replaced by an error, so that the run can
/// continue.
async fn submit_result(client: &Client, result: &ToolResult) -> Result<WorkOutcome, Error> {
    let stored = |ok| WorkOutcome::Stored {
        name: result.name.clone(),
        ok,
    };
    match client.tools().submit(result.call, &result.outcome).await {
        Ok(_) => Ok(stored(result.outcome.is_ok())),
        Err(error) if is_elsewhere(&error) => Ok(WorkOutcome::Elsewhere),
        Err(error) if result.outcome.is_ok() && matches!(error.status(), Some(400 | 413 | 422)) => {
            let rejected = Err(ToolError::new(format_args!("the output was rejected: {error}")));
            client
                .tools()
                .submit(result.call, &rejected)
                .await
                .map(|_| stored(false))
        }
        Err(error) => Err(error),
    }
}

/// Renews the lease until it is lost.
async fn renew_lease(client: &Client, id: CallId) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        match client.tools().claim(id, LEASE).await {
            Err(error) if is_elsewhere(&error) => return,
            // The gateway is unavailable for a moment: keep executing, because a result is accepted without a
            // lease too.
            Ok(_) | Err(_) => {}
        }
    }
}

async fn release_lease(client: &Client, id: CallId) {
    // A call with an outcome needs no release, and a lease that is not released expires.
    let _ = client.tools().release(id).await;
}

/// Whether the error means that the call is not this client's: held, ended, unknown, or not approved yet.
fn is_elsewhere(error: &Error) -> bool {
    matches!(error.status(), Some(404 | 409 | 410))
}
