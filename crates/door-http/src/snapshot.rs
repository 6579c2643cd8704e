//! A run as it stands: its log, as its reader may see it, folded into one answer.

use serde::Serialize;
use toolgate_engine::store::RunRecord;
use toolgate_kernel::event::{Claim, Entry, Event, Usage};
use toolgate_kernel::id::{ApprovalId, CallId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Placement;
use toolgate_kernel::view::{Audience, view};
use utoipa::ToSchema;

use crate::schema;

/// A run's row.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunSummary {
    /// Which.
    #[schema(value_type = schema::RunId)]
    id: RunId,
    /// Where its events stand.
    #[schema(value_type = schema::SpaceId)]
    space_id: SpaceId,
    /// Whose configuration it follows.
    #[schema(value_type = schema::AgentName)]
    agent: AgentName,
    /// Which revision of it.
    revision: u32,
    /// Where it stands.
    #[schema(value_type = schema::Status)]
    status: &'static str,
    /// When it began.
    #[schema(value_type = schema::Time)]
    created_at: Time,
    /// When it last moved.
    #[schema(value_type = schema::Time)]
    updated_at: Time,
    /// The call that started it, for a child run; for backends only.
    #[schema(value_type = Option<schema::CallId>)]
    parent: Option<CallId>,
    /// Place of its last event.
    seq: u64,
}

impl RunSummary {
    pub fn of(record: RunRecord, audience: Audience) -> Self {
        Self {
            id: record.id,
            space_id: record.space,
            agent: record.agent,
            revision: record.revision,
            status: record.status.as_str(),
            created_at: record.created,
            updated_at: record.updated,
            parent: record.parent.filter(|_| audience == Audience::Secret),
            seq: record.version.0,
        }
    }
}

/// A run as it stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunBody {
    #[serde(flatten)]
    summary: RunSummary,
    /// What it waits for.
    pending: Pending,
    /// What it has cost.
    #[schema(value_type = UsageBody)]
    usage: Usage,
    /// The last words of the model.
    text: Option<String>,
    /// Why the run ended, or why the model stopped last: `stop`, `length`, `tool-calls`, `max-steps`, …
    finish_reason: Option<String>,
    /// What went wrong; for backends only.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What a run has cost.
#[derive(ToSchema)]
#[schema(as = Usage, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the kernel's usage")]
pub(crate) struct UsageBody {
    /// Tokens read.
    input_tokens: u64,
    /// Tokens written, reasoning included.
    output_tokens: u64,
    /// Of those written, how many were reasoning.
    reasoning_tokens: Option<u64>,
    /// Of those read, how many came from the vendor's cache.
    cached_tokens: Option<u64>,
}

/// What a run waits for.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Pending {
    /// Client calls that are open.
    calls: Vec<PendingCall>,
    /// Questions that nobody has answered.
    approvals: Vec<PendingApproval>,
    /// Calls that wait for a moment or a signal; for backends only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pauses: Vec<PendingPause>,
}

/// A call that waits for a moment or a signal.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingPause {
    /// Which.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// The tool.
    tool_name: String,
    /// When it ends whatever happens.
    #[schema(value_type = schema::Time)]
    until: Time,
    /// Whether `POST /v1/calls/{call}/signal` ends it.
    signal: bool,
}

/// A client call that is open.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingCall {
    /// Which.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// The tool.
    tool_name: String,
    /// What to run it with.
    #[schema(value_type = schema::Any)]
    input: Option<Json>,
    /// When it is given up.
    #[schema(value_type = Option<schema::Time>)]
    deadline: Option<Time>,
    /// Who holds it.
    #[schema(value_type = Option<ClaimBody>)]
    claim: Option<Claim>,
}

/// Who holds a call.
#[derive(ToSchema)]
#[schema(as = Claim)]
#[expect(dead_code, reason = "describes the kernel's claim")]
pub(crate) struct ClaimBody {
    /// The name the client chose.
    holder: String,
    /// When the call is offered again.
    #[schema(value_type = schema::Time)]
    until: Time,
}

/// A question that nobody has answered.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingApproval {
    /// Where to send the decision.
    #[schema(value_type = schema::ApprovalId)]
    approval_id: ApprovalId,
    /// Which call.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// The tool.
    tool_name: String,
    /// Exactly what will run, when the reader may see it.
    #[schema(value_type = schema::Any)]
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Json>,
    /// When silence becomes a no.
    #[schema(value_type = schema::Time)]
    expires_at: Time,
}

impl RunBody {
    /// The run as `audience` may see it.
    pub fn of(record: RunRecord, log: &[Entry], audience: Audience) -> Self {
        let mut run = Self {
            summary: RunSummary::of(record, audience),
            pending: Pending::default(),
            usage: Usage::default(),
            text: None,
            finish_reason: None,
            error: None,
        };
        for event in log.iter().flat_map(|entry| &entry.events) {
            if let Some(seen) = view(event, audience) {
                run.take(&seen);
            }
        }
        // Without a deadline nobody may execute it yet: a person has to decide first.
        run.pending.calls.retain(|call| call.deadline.is_some());
        run
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::TextEnd(said) => self.text = Some(said.text.clone()),
            Event::ToolInputAvailable(asked) if asked.placement == Placement::Client => {
                self.pending.calls.push(PendingCall {
                    tool_call_id: asked.tool_call_id,
                    tool_name: asked.tool_name.to_string(),
                    input: asked.input.clone(),
                    deadline: asked.deadline,
                    claim: None,
                });
            }
            Event::ToolApprovalRequest(asked) => self.pending.approvals.push(PendingApproval {
                approval_id: asked.approval_id,
                tool_call_id: asked.tool_call_id,
                tool_name: asked.tool_name.to_string(),
                input: asked.input.clone(),
                expires_at: asked.expires_at,
            }),
            Event::ToolApprovalResponse(answer) => {
                self.pending
                    .approvals
                    .retain(|asked| asked.approval_id != answer.approval_id);
                if let Some(call) = self.pending.call(answer.tool_call_id) {
                    call.input = answer.input.clone().or(call.input.take());
                    call.deadline = answer.deadline.or(call.deadline);
                }
            }
            Event::ToolExecuting(begun) => {
                self.pending.pauses.extend(begun.pause.map(|pause| PendingPause {
                    tool_call_id: begun.tool_call_id,
                    tool_name: begun.tool_name.to_string(),
                    until: pause.until,
                    signal: pause.signal,
                }));
                if let Some(call) = self.pending.call(begun.tool_call_id) {
                    call.claim = begun.claim.clone();
                }
            }
            Event::ToolReleased(released) => {
                if let Some(call) = self.pending.call(released.tool_call_id) {
                    call.claim = None;
                }
            }
            Event::ToolOutputAvailable(ended) => self.pending.settle(ended.tool_call_id),
            Event::ToolOutputError(ended) => self.pending.settle(ended.tool_call_id),
            Event::ToolOutputDenied(ended) => self.pending.settle(ended.tool_call_id),
            Event::StepFinish(step) => {
                self.usage.input_tokens += step.usage.input_tokens;
                self.usage.output_tokens += step.usage.output_tokens;
                self.usage.reasoning_tokens += step.usage.reasoning_tokens;
                self.usage.cached_tokens += step.usage.cached_tokens;
                self.finish_reason = word(&step.reason);
            }
            Event::RunFinish(ended) => {
                self.usage = ended.usage;
                self.finish_reason = word(&ended.reason);
                self.error = ended.error.clone();
            }
            Event::RunStart(_)
            | Event::Said(_)
            | Event::StepStart(_)
            | Event::StepRetry(_)
            | Event::TextStart(_)
            | Event::TextDelta(_)
            | Event::ReasoningStart(_)
            | Event::ReasoningDelta(_)
            | Event::ReasoningEnd(_)
            | Event::ToolInputStart(_)
            | Event::ToolInputDelta(_)
            | Event::ToolInputAvailable(_)
            | Event::ToolProgress(_)
            | Event::RunStatus(_)
            | Event::Notification(_) => {}
        }
    }
}

impl Pending {
    fn call(&mut self, id: CallId) -> Option<&mut PendingCall> {
        self.calls.iter_mut().find(|call| call.tool_call_id == id)
    }
    fn settle(&mut self, id: CallId) {
        self.calls.retain(|call| call.tool_call_id != id);
        self.approvals.retain(|asked| asked.tool_call_id != id);
        self.pauses.retain(|pause| pause.tool_call_id != id);
    }
}

/// A reason as it is written in events.
fn word(reason: &impl Serialize) -> Option<String> {
    serde_json::to_value(reason).ok()?.as_str().map(str::to_owned)
}
