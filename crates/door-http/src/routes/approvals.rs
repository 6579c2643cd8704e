//! A person's decision on a call.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use toolgate_engine::intake::{Decided, Decision};
use toolgate_http::body::Body;
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BackendOnly, BadBody, Missing, Refused, Settled};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::wait::Wait;
use toolgate_http::wire::{Text, wire, words};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::{ApprovalId, CallId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use crate::snapshot::RunBody;
use crate::waited::{Given, answer_after};

const REASON_CHARS_MAX: usize = 2000;

words! {
    /// Yes or no, as a word.
    Word {
        /// The call may run.
        Approve = "approve",
        /// The call may not run.
        Deny = "deny",
    }
}
wire! {
    /// A decision.
    Decide {
        /// Whether the call may run.
        approved "approved": Option<bool>,
        /// The decision as a word, instead of `approved`.
        decision "decision": Option<Word>,
        /// With a yes: the input to run with instead. It is validated again.
        input "input": Option<Json>,
        /// With a yes: whether it stands for later calls too, until it is revoked. As the tool says unless given; `true` needs a
        /// tool that remembers decisions.
        remember "remember": Option<bool>,
        /// With a no: why. The model is told.
        reason "reason": Option<Text<0, REASON_CHARS_MAX>>,
    }
    exactly one of [approved "approved", decision "decision"]
}

/// A decision is stored. The same decision again gets the same receipt.
#[derive(Serialize, ToSchema)]
#[schema(as = Decided)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecidedBody {
    /// Id of the approval.
    #[schema(value_type = schema::ApprovalId)]
    approval_id: ApprovalId,
    /// Id of the tool call.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// Its run.
    #[schema(value_type = schema::RunId)]
    run_id: RunId,
    /// Whether the call may run.
    approved: bool,
    /// Whether the yes stands for later calls too: see `GET /v1/spaces/{space}/consents`.
    remembered: bool,
    /// The place of the decision.
    seq: u64,
    /// When it was stored.
    #[schema(value_type = schema::Time)]
    time: Time,
}

impl From<Decided> for DecidedBody {
    fn from(decided: Decided) -> Self {
        Self {
            approval_id: decided.approval_id,
            tool_call_id: decided.tool_call_id,
            run_id: decided.run_id,
            approved: decided.approved,
            remembered: decided.remembered,
            seq: decided.seq.0,
            time: decided.time,
        }
    }
}

/// A decision is stored; with the run when that was waited for.
#[derive(Serialize, ToSchema)]
pub(crate) struct DecidedAndRun {
    #[serde(flatten)]
    decided: DecidedBody,
    /// The run once it has ended or waits again: of a child run's call, the run at the top.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunBody>,
}

/// Decides whether a call may run.
///
/// With `prefer: wait=30` the answer has the run too once that has ended or waits again, if that is within 30 seconds.
#[utoipa::path(
    post, path = "/v1/approvals/{approval}", operation_id = "decide", tag = "approvals",
    params(
        ("approval" = inline(schema::ApprovalId), Path),
        ("wait" = Option<String>, Query, pattern = "^[0-9]+(ms|s|m)?$", description = "How long to wait for the run, such as `30s`."),
        ("prefer" = Option<String>, Header, description = "The same in seconds: `wait=30`."),
    ),
    request_body = Decide,
    responses(
        (status = 200, description = "Stored; with the run, when that was waited for.", body = DecidedAndRun),
        (status = 202, description = "Stored, and the run is under way after the wait.", body = DecidedBody),
        BadBody, Missing, BackendOnly, Settled, Refused,
    ),
)]
pub(crate) async fn decide(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(approval): At<ApprovalId>,
    wait: Wait,
    body: Body<Decide>,
) -> Result<Response, Refusal> {
    let wait = wait.reserve(&door, &who)?;
    let top = door.access.reach_top(&who, approval.run, "approval").await?;
    let by = door.access.decider(&who, top.space).await?;
    let body = body.value;
    let decision = match body.approved.unwrap_or(body.decision == Some(Word::Approve)) {
        true => Decision::Approve(body.input),
        false => Decision::Deny(body.reason.map(|reason| reason.0)),
    };
    let decided = door
        .engine
        .decide_with(approval, decision, body.remember, by)
        .await?;
    let given = Given {
        run: approval.run,
        seq: decided.seq,
        place_above: &|state| state.decision(approval).map(|decision| decision.seq),
    };
    let decided = DecidedBody::from(decided);
    let told = |decided, run| DecidedAndRun {
        decided,
        run: Some(run),
    };
    answer_after(&door, wait, who, given, decided, told).await
}
