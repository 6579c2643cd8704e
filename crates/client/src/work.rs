//! One call, from the claim to the receipt.

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

/// How long a claim holds without another word: a client that dies is noticed after this.
const LEASE: Duration = Duration::from_secs(30);
/// How often a claim is renewed: two renewals may be lost.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Takes a call before the client's own tools do; nothing leaves it to them.
pub(crate) type Override =
    Arc<dyn Fn(ToolCall) -> BoxFuture<'static, Option<Result<Value, ToolError>>> + Send + Sync>;

/// Which calls are taken, and by what they are executed.
#[derive(Clone)]
pub(crate) struct Handler {
    pub client: Client,
    /// Asked first, also for calls of tools that are not this client's.
    pub first: Option<Override>,
    /// Only these tools, when set.
    pub only: Option<Arc<HashSet<String>>>,
}

impl Handler {
    /// Whether calls of this tool are for us to try.
    pub fn takes(&self, tool: &str) -> bool {
        let wanted = self.only.as_ref().is_none_or(|only| only.contains(tool));
        wanted && (self.first.is_some() || self.client.has_tool(tool))
    }

    /// Executes a call; nothing when nothing here does. A panic is an error like any other: it must not take
    /// the calls beside it along.
    async fn run(&self, call: ToolCall) -> Option<Result<Value, ToolError>> {
        let name = call.name.clone();
        let guarded = AssertUnwindSafe(self.run_unguarded(call)).catch_unwind();
        guarded
            .await
            .unwrap_or_else(|_| Some(Err(ToolError::new(format_args!("{name} broke down")))))
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

/// What is told of a call while it is worked on.
#[derive(Debug)]
pub(crate) enum Told {
    /// It is ours, and runs.
    Began(ToolCall),
    /// It ran.
    Ran(ToolResult),
}

/// How the work on a call ended.
#[derive(Debug)]
pub(crate) enum Worked {
    /// The result is stored.
    Stored { name: String, ok: bool },
    /// Somebody else holds or has settled it, or a person has to decide first. Should it be offered again, it is
    /// tried again.
    Elsewhere,
    /// Nothing here executes it.
    Declined,
}

/// Claims a call, executes it, and hands in what came of it. The claim is kept alive meanwhile.
pub(crate) async fn work(
    handler: &Handler,
    id: CallId,
    cancelled: CancellationToken,
    tell: &mpsc::Sender<Told>,
) -> Result<Worked, Error> {
    let tools = handler.client.tools();
    let claimed = match tools.claim(id, LEASE).await {
        Ok(claimed) => claimed,
        Err(error) if is_elsewhere(&error) => return Ok(Worked::Elsewhere),
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
    // Who does not listen any more needs not be told; so below.
    let _ = tell.send(Told::Began(call.clone())).await;
    let began = Instant::now();
    let outcome = tokio::select! {
        outcome = handler.run(call) => outcome,
        () = cancelled.cancelled() => {
            give_back(&handler.client, id).await;
            return Ok(Worked::Elsewhere);
        }
        () = keep(&handler.client, id) => {
            cancelled.cancel();
            return Ok(Worked::Elsewhere);
        }
    };
    let Some(outcome) = outcome else {
        give_back(&handler.client, id).await;
        return Ok(Worked::Declined);
    };
    let result = ToolResult {
        call: id,
        name: name.clone(),
        outcome,
        elapsed: began.elapsed(),
    };
    let _ = tell.send(Told::Ran(result.clone())).await;
    hand_in(&handler.client, &result).await
}

/// Stores the result. One that the gateway cannot take becomes an error, so that the run goes on.
async fn hand_in(client: &Client, result: &ToolResult) -> Result<Worked, Error> {
    let stored = |ok| Worked::Stored {
        name: result.name.clone(),
        ok,
    };
    match client.tools().submit(result.call, &result.outcome).await {
        Ok(_) => Ok(stored(result.outcome.is_ok())),
        Err(error) if is_elsewhere(&error) => Ok(Worked::Elsewhere),
        Err(error) if result.outcome.is_ok() && matches!(error.status(), Some(400 | 413 | 422)) => {
            let told = Err(ToolError::new(format_args!("the output was refused: {error}")));
            client
                .tools()
                .submit(result.call, &told)
                .await
                .map(|_| stored(false))
        }
        Err(error) => Err(error),
    }
}

/// Renews the claim until it is lost.
async fn keep(client: &Client, id: CallId) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        match client.tools().claim(id, LEASE).await {
            Err(error) if is_elsewhere(&error) => return,
            // A gateway that is away for a moment: the result is taken also without a claim.
            Ok(_) | Err(_) => {}
        }
    }
}

async fn give_back(client: &Client, id: CallId) {
    // A call that was settled needs no release, and a lease that stays ends by itself.
    let _ = client.tools().release(id).await;
}

/// The call is not ours: held, settled, unknown, or not approved yet.
fn is_elsewhere(error: &Error) -> bool {
    matches!(error.status(), Some(404 | 409 | 410))
}
