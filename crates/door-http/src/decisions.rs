//! Who decided on the calls of a run: the JSON form of its decisions.

use serde::Serialize;
use toolgate_http::schema;
use toolgate_kernel::id::{ApprovalId, CallId, EntityId};
use toolgate_kernel::run::{DecisionRecord, RunState, Verdict};
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

/// A decision on a call.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Decision)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionBody {
    /// The question that was answered; absent for a call that runs by a remembered yes.
    #[schema(value_type = Option<schema::ApprovalId>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<ApprovalId>,
    /// The remembered yes that the call runs by, where nobody was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    consent_id: Option<String>,
    /// The call.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// Name of the tool.
    tool_name: String,
    /// Whether the call may run.
    approved: bool,
    /// Who decided, where it was a person whom the reader may know; absent for a secret key.
    #[schema(value_type = Option<schema::EntityId>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<EntityId>,
    /// Why not, where the reader may know.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Nobody decided in time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    expired: bool,
    /// Whoever decided changed the input.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    edited: bool,
    /// The yes stands for later calls too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    remembered: bool,
    /// SHA-256 of the input that runs, in hex, over its JSON with sorted members; where the reader may see the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_hash: Option<String>,
    /// When it was decided; of a remembered yes, when that was given.
    #[schema(value_type = schema::Time)]
    time: Time,
}

/// The decisions of a run as its reader may see them, for whom `state` was folded.
pub(crate) fn of(state: &RunState) -> Vec<DecisionBody> {
    let decided = state.decisions().filter_map(|record| decided(state, record));
    let consented = state.calls().iter().filter_map(|call| {
        let consent = call.consent.as_ref()?;
        Some(DecisionBody {
            approval_id: None,
            consent_id: Some(consent.consent_id.clone()),
            tool_call_id: call.tool.call,
            tool_name: call.tool.name.to_string(),
            approved: true,
            by: consent.by,
            reason: None,
            expired: false,
            edited: false,
            remembered: false,
            input_hash: None,
            time: consent.given_at,
        })
    });
    let mut decisions: Vec<DecisionBody> = decided.chain(consented).collect();
    decisions.sort_by_key(|decision| decision.time);
    decisions
}

fn decided(state: &RunState, record: &DecisionRecord) -> Option<DecisionBody> {
    let call = state.call(record.approval.call())?;
    let (approved, edited, reason) = match &record.verdict {
        Verdict::Approve(input) => (true, input.is_some(), None),
        Verdict::Deny(reason) => (false, false, reason.clone()),
    };
    Some(DecisionBody {
        approval_id: Some(record.approval),
        consent_id: None,
        tool_call_id: call.tool.call,
        tool_name: call.tool.name.to_string(),
        approved,
        by: record.by,
        reason,
        expired: !record.answered,
        edited,
        remembered: record.remembered,
        input_hash: record.input_hash.clone(),
        time: record.time,
    })
}
