//! The work on one call, from the claim to the receipt.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolgate_protocol::id::CallId;
use toolgate_protocol::message::Executor;

use crate::client::Client;
use crate::error::Error;
use crate::http::Backoff;
use crate::lease::{LEASE, is_elsewhere};
use crate::registry::given_name;
use crate::resources::Claimed;
use crate::tool::{ToolCall, ToolError, ToolResult};

/// Most tools that a gateway lets an executor name; the calls of the others are offered to everyone at once.
const EXECUTOR_TOOLS_MAX: usize = 256;

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
        let wanted = |only: &Arc<HashSet<String>>| {
            only.contains(tool) || given_name(tool).is_some_and(|given| only.contains(given))
        };
        self.only.as_ref().is_none_or(wanted) && (self.first.is_some() || self.client.has_tool(tool))
    }

    /// This client as the executor of a message's calls; `None` if it executes none.
    pub fn executor(&self) -> Option<Executor> {
        let tools = match (&self.first, &self.only) {
            // It may execute any tool.
            (Some(_), None) => None,
            (Some(_), Some(only)) => Some(only.iter().cloned().collect()),
            (None, _) => {
                let names = self
                    .client
                    .client_tool_definitions()
                    .into_iter()
                    .map(|tool| tool.name);
                Some(names.filter(|name| self.accepts(name)).collect())
            }
        };
        let tools = tools.map(|mut tools: Vec<String>| {
            tools.truncate(EXECUTOR_TOOLS_MAX);
            tools
        });
        let holder = self.client.holder().to_owned();
        (tools != Some(Vec::new())).then_some(Executor { holder, tools })
    }

    /// Executes a call; `None` if nothing on this client does.
    async fn run(&self, call: ToolCall) -> Option<Result<Value, ToolError>> {
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

/// Tells the work on a call to end.
#[derive(Debug, Clone)]
pub(crate) struct CallEnd {
    /// Fires when the result is no longer wanted, whatever the reason.
    pub cancelled: CancellationToken,
    /// Fires when the call has its outcome.
    pub settled: CancellationToken,
}

/// Claims a call, executes it, and submits its result. The lease is renewed meanwhile, and released when this
/// future is dropped. While the gateway does not answer, claim and result are sent again for as long as the call is
/// open.
pub(crate) async fn execute_call(
    handler: &Handler,
    id: CallId,
    end: CallEnd,
    events: &mpsc::Sender<WorkEvent>,
) -> Result<WorkOutcome, Error> {
    let client = &handler.client;
    let mut lease = client.lease(id);
    let claimed = tokio::select! {
        claimed = claim_while_open(client, id) => claimed,
        () = end.cancelled.cancelled() => {
            lease.give_up(&end.settled).await;
            return Ok(WorkOutcome::Elsewhere);
        }
    };
    let claimed = match claimed {
        Ok(Some(claimed)) => claimed,
        Ok(None) => {
            lease.forget();
            return Ok(WorkOutcome::Elsewhere);
        }
        Err(error) => {
            lease.forget();
            return Err(error);
        }
    };
    let lost = CancellationToken::new();
    lease.renew(lost.clone());
    let call = ToolCall {
        id,
        name: claimed.tool_name,
        input: claimed.input,
        run: claimed.run_id,
        cancelled: end.cancelled.child_token(),
        client: client.clone(),
    };
    let name = call.name.clone();
    // An error means that nobody listens any more; so below.
    let _ = events.send(WorkEvent::Began(call.clone())).await;
    let began = Instant::now();
    // A task of its own: a tool that blocks its thread must not keep this one from hearing that the call has ended.
    let running = handler.clone();
    let mut execution = AbortOnDropHandle::new(tokio::spawn(async move { running.run(call).await }));
    let outcome = tokio::select! {
        outcome = &mut execution => outcome,
        () = end.cancelled.cancelled() => {
            lease.give_up(&end.settled).await;
            return Ok(WorkOutcome::Elsewhere);
        }
        () = lost.cancelled() => {
            end.cancelled.cancel();
            lease.forget();
            return Ok(WorkOutcome::Elsewhere);
        }
    };
    let outcome = match outcome {
        Ok(Some(outcome)) => outcome,
        Ok(None) => {
            lease.release().await;
            return Ok(WorkOutcome::Declined);
        }
        // A panic becomes an error for the model, so that it does not end other calls.
        Err(error) if error.is_panic() => Err(ToolError::new(format_args!("{name} panicked"))),
        // The runtime is shutting down.
        Err(_) => return Ok(WorkOutcome::Elsewhere),
    };
    let result = ToolResult {
        call: id,
        name: name.clone(),
        outcome,
        elapsed: began.elapsed(),
    };
    let _ = events.send(WorkEvent::Ran(result.clone())).await;
    let submitted = submit_while_open(client, &result, &end).await;
    if submitted.is_ok() {
        lease.forget();
    }
    submitted
}

/// Claims a call, again and again while the gateway does not answer; `None` if the call is not to be had. Without a
/// limit of its own: the call has one, which the gateway knows, and whose event ends the wait.
async fn claim_while_open(client: &Client, id: CallId) -> Result<Option<Claimed>, Error> {
    let mut backoff = Backoff::default();
    loop {
        match client.tools().claim(id, LEASE).await {
            Ok(claimed) => return Ok(Some(claimed)),
            Err(error) if is_elsewhere(&error) => return Ok(None),
            Err(error) if !error.is_passing() => return Err(error),
            Err(error) => tracing::warn!(call = %id, %error, "the call cannot be claimed, trying again"),
        }
        tokio::time::sleep(backoff.step()).await;
    }
}

/// Submits the result, again and again while the gateway does not answer and the call is open. A result that the
/// gateway rejects is replaced by an error, so that the run can continue.
async fn submit_while_open(
    client: &Client,
    result: &ToolResult,
    end: &CallEnd,
) -> Result<WorkOutcome, Error> {
    let mut rejected = None;
    let mut backoff = Backoff::default();
    loop {
        let outcome = rejected.as_ref().unwrap_or(&result.outcome);
        match client.tools().submit(result.call, outcome).await {
            Ok(_) => return Ok(stored(result, outcome)),
            Err(error) if is_elsewhere(&error) => return Ok(WorkOutcome::Elsewhere),
            Err(error) if outcome.is_ok() && matches!(error.status(), Some(400 | 413 | 422)) => {
                rejected = Some(Err(ToolError::new(format_args!(
                    "the output was rejected: {error}"
                ))));
                continue;
            }
            Err(error) if !error.is_passing() || end.cancelled.is_cancelled() => return Err(error),
            Err(error) => {
                tracing::warn!(call = %result.call, %error, "the result cannot be sent, trying again")
            }
        }
        // When the call has ended it is sent a last time: the receipt says whether it ended with this result.
        tokio::select! {
            () = tokio::time::sleep(backoff.step()) => {}
            () = end.cancelled.cancelled() => {}
        }
    }
}

fn stored(result: &ToolResult, outcome: &Result<Value, ToolError>) -> WorkOutcome {
    WorkOutcome::Stored {
        name: result.name.clone(),
        ok: outcome.is_ok(),
    }
}
