//! Calls under way: who executes one, how far it is, and that what it waits for has happened.

use std::time::Duration;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolgate_engine::intake::Claimed;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BackendOnly, BadBody, Missing, Others, Refused, Settled};
use toolgate_http::executor::HOLDER_CHARS_MAX;
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::wire::{Text, Whole, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::{CallId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use crate::routes::results::ReceiptBody;

/// How long a claim holds when nobody says.
const LEASE_SECONDS_DEFAULT: u64 = 30;
/// Longest a claim holds without another word.
const LEASE_SECONDS_MAX: u64 = 600;

wire! {
    /// A client wants to execute a call, or goes on doing so.
    ClaimCall {
        /// A name the client chose for itself: a tab, a process.
        holder "holder": Text<1, HOLDER_CHARS_MAX>,
        /// How long the claim holds without another word; 30 unless said otherwise.
        lease_seconds "leaseSeconds": Option<Whole<1, LEASE_SECONDS_MAX>>,
    }
}
wire! {
    /// A client gives a call back.
    ReleaseCall {
        /// The name it claimed the call with.
        holder "holder": Text<1, HOLDER_CHARS_MAX>,
    }
}
wire! {
    /// How far a call is.
    CallProgress {
        /// Whatever the tool says of itself: any JSON.
        progress "progress": Json,
    }
}

wire! {
    /// Something happened that a call waits for.
    SignalCall {
        /// What the call gives for it: any JSON.
        value "value": Json,
    }
}

/// A client holds a call.
#[derive(Serialize, ToSchema)]
#[schema(as = Claimed)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClaimedBody {
    /// Id of the tool call.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// Its run.
    #[schema(value_type = schema::RunId)]
    run_id: RunId,
    /// Name of the tool.
    tool_name: String,
    /// What to run it with.
    #[schema(value_type = schema::Any)]
    input: Json,
    /// Client that holds the claim.
    holder: String,
    /// Until when, unless it is claimed again.
    #[schema(value_type = schema::Time)]
    until: Time,
    /// When the call is given up whoever holds it.
    #[schema(value_type = schema::Time)]
    deadline: Time,
}

impl From<Claimed> for ClaimedBody {
    fn from(claimed: Claimed) -> Self {
        Self {
            tool_call_id: claimed.tool_call_id,
            run_id: claimed.run_id,
            tool_name: claimed.tool_name,
            input: claimed.input,
            holder: claimed.holder,
            until: claimed.until,
            deadline: claimed.deadline,
        }
    }
}

/// Claims an open client call, so that nobody else executes it too; claiming again keeps the claim alive.
#[utoipa::path(
    post, path = "/v1/calls/{call}/claim", operation_id = "claim_call", tag = "calls",
    params(("call" = inline(schema::CallId), Path)),
    request_body = ClaimCall,
    responses((status = 200, description = "It is yours.", body = ClaimedBody), BadBody, Missing, Others, Settled, Refused),
)]
pub(crate) async fn claim(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(call): At<CallId>,
    body: Body<ClaimCall>,
) -> Result<Answer<ClaimedBody>, Refusal> {
    door.access.reach_top(&who, call.run, "call").await?;
    let lease = Duration::from_secs(
        body.value
            .lease_seconds
            .map_or(LEASE_SECONDS_DEFAULT, |seconds| seconds.0),
    );
    Ok(ok(door
        .engine
        .claim_call(call, body.value.holder.0, who.entity(), lease)
        .await?
        .into()))
}

/// Gives a claimed call back: it is offered again.
#[utoipa::path(
    post, path = "/v1/calls/{call}/release", operation_id = "release_call", tag = "calls",
    params(("call" = inline(schema::CallId), Path)),
    request_body = ReleaseCall,
    responses((status = 204, description = "It is free."), BadBody, Missing, Others, Settled, Refused),
)]
pub(crate) async fn release(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(call): At<CallId>,
    body: Body<ReleaseCall>,
) -> Result<StatusCode, Refusal> {
    door.access.reach_top(&who, call.run, "call").await?;
    let holder = body.value.holder.0;
    door.engine.release_call(call, holder, who.entity()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tells the space how far a call is.
#[utoipa::path(
    post, path = "/v1/calls/{call}/progress", operation_id = "report_progress", tag = "calls",
    params(("call" = inline(schema::CallId), Path)),
    request_body = CallProgress,
    responses((status = 204, description = "Told."), BadBody, Missing, Others, Settled, Refused),
)]
pub(crate) async fn progress(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(call): At<CallId>,
    body: Body<CallProgress>,
) -> Result<StatusCode, Refusal> {
    door.access.reach_top(&who, call.run, "call").await?;
    door.settings.content.check_progress(&body.value.progress)?;
    door.engine
        .progress(call, body.value.progress, who.entity())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends the wait of a `waiting` call that waits for a signal. The same signal again gets the same receipt.
#[utoipa::path(
    post, path = "/v1/calls/{call}/signal", operation_id = "signal_call", tag = "calls",
    params(("call" = inline(schema::CallId), Path)),
    request_body = SignalCall,
    responses(
        (status = 200, description = "Stored.", body = ReceiptBody),
        BadBody, Missing, BackendOnly, Settled, Refused,
    ),
)]
pub(crate) async fn signal(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(call): At<CallId>,
    body: Body<SignalCall>,
) -> Result<Answer<ReceiptBody>, Refusal> {
    if who.user.is_some() {
        return Err(Refusal::forbidden("a signal needs a secret key"));
    }
    door.access.reach_top(&who, call.run, "call").await?;
    Ok(ok(door.engine.signal_call(call, body.value.value).await?.into()))
}
