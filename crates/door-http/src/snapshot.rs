//! A run as it stands: the JSON form of its [`RunState`].

use std::sync::Arc;

use serde::Serialize;
use toolgate_engine::store::{RunRecord, RunTree, StoreError};
use toolgate_http::{Shared, schema};
use toolgate_kernel::call::CallState;
use toolgate_kernel::event::{Claim, Usage};
use toolgate_kernel::id::{ApprovalId, CallId, EntityId, QuestionId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::run::RunState;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Decider;
use utoipa::ToSchema;

use crate::decisions::{self, DecisionBody};

/// A run's row.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunSummary {
    /// Id of the run.
    #[schema(value_type = schema::RunId)]
    id: RunId,
    /// Space whose log has the run's events.
    #[schema(value_type = schema::SpaceId)]
    space_id: SpaceId,
    /// Agent of the run.
    #[schema(value_type = schema::AgentName)]
    agent: AgentName,
    /// Revision of the agent that the run follows.
    revision: u32,
    /// Status of the run.
    #[schema(value_type = schema::Status)]
    status: &'static str,
    /// When the run was created.
    #[schema(value_type = schema::Time)]
    created_at: Time,
    /// When its last event was stored.
    #[schema(value_type = schema::Time)]
    updated_at: Time,
    /// The call that started it, for a child run; for backends only.
    #[schema(value_type = Option<schema::CallId>)]
    parent: Option<CallId>,
    /// The tool that the run is one call of, which no model wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// Place of its last event.
    seq: u64,
    /// The run at the top of its tree, itself when no call started it; for backends only.
    #[schema(value_type = Option<schema::RunId>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    root_id: Option<RunId>,
    /// The user whose message started it; for backends only, missing when a backend started it.
    #[schema(value_type = Option<schema::EntityId>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<EntityId>,
    /// How its first message begins; for backends only.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Arc<str>>,
    /// Tokens that it has used, without those of its child runs; for backends only.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
}

impl RunSummary {
    pub fn of(record: RunRecord, is_backend: bool) -> Self {
        Self {
            id: record.id,
            space_id: record.space,
            agent: record.agent,
            revision: record.revision,
            status: record.status.as_str(),
            created_at: record.created,
            updated_at: record.updated,
            parent: record.parent.filter(|_| is_backend),
            tool: record.tool.map(|tool| tool.to_string()),
            seq: record.version.0,
            root_id: is_backend.then_some(record.root),
            user_id: record.user.filter(|_| is_backend),
            title: record.title.filter(|_| is_backend),
            tokens: is_backend.then_some(record.tokens),
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
    /// Calls, approvals and questions that the run waits for.
    pending: Pending,
    /// Decisions of people on its calls, and the consents that its calls run by, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    decisions: Vec<DecisionBody>,
    /// Tokens that the run itself has used so far.
    #[schema(value_type = UsageBody)]
    usage: Usage,
    /// Tokens that the run and all child runs below it have used so far; of a root run.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_usage: Option<TotalUsage>,
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
    /// The vendor has reported none, at least for a part: it was estimated from bytes.
    estimated: Option<bool>,
}

/// What a root run and all child runs below it have cost together.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TotalUsage {
    /// Tokens, read and written.
    tokens: u64,
    /// Child runs at any depth; for backends only.
    #[serde(skip_serializing_if = "Option::is_none")]
    child_runs: Option<u32>,
}

/// What a run waits for.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Pending {
    /// Client calls that are open.
    calls: Vec<PendingCall>,
    /// Approvals that nobody has decided on.
    approvals: Vec<PendingApproval>,
    /// Questions of tools that nobody has answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    questions: Vec<PendingQuestion>,
    /// Calls that wait for a moment or a signal; for backends only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pauses: Vec<PendingPause>,
}

/// A call that waits for a moment or a signal.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingPause {
    /// Id of the tool call.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// Name of the tool.
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
    /// Id of the tool call.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// Name of the tool.
    tool_name: String,
    /// What the client that brought the tool calls it, where the run had to rename it.
    #[serde(skip_serializing_if = "Option::is_none")]
    given_name: Option<String>,
    /// What to run it with.
    #[schema(value_type = schema::Any)]
    input: Option<Json>,
    /// When it is given up.
    #[schema(value_type = Option<schema::Time>)]
    deadline: Option<Time>,
    /// Client that holds the claim.
    #[schema(value_type = Option<ClaimBody>)]
    claim: Option<Claim>,
    /// The agent of the child run that asks, when it is not the run itself.
    #[schema(value_type = Option<schema::AgentName>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
}

/// A client's claim on a call.
#[derive(ToSchema)]
#[schema(as = Claim)]
#[expect(dead_code, reason = "describes the kernel's claim")]
pub(crate) struct ClaimBody {
    /// The name the client chose.
    holder: String,
    /// When the call is offered again.
    #[schema(value_type = schema::Time)]
    until: Time,
    /// The user that it belongs to; backends alone see it.
    #[schema(value_type = Option<schema::EntityId>)]
    by: Option<EntityId>,
}

/// A question of a tool that nobody has answered.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingQuestion {
    /// Where to send the answer.
    #[schema(value_type = schema::QuestionId)]
    question_id: QuestionId,
    /// Id of the tool call.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// Name of the tool.
    tool_name: String,
    /// What is asked, in words.
    message: String,
    /// JSON Schema of the answer's content, when a form is to be filled in.
    #[schema(value_type = Option<schema::Any>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Json>,
    /// The page to visit instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// When silence becomes a cancel.
    #[schema(value_type = schema::Time)]
    expires_at: Time,
    /// The agent of the child run that asks, when it is not the run itself.
    #[schema(value_type = Option<schema::AgentName>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
}

/// An approval that nobody has decided on.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingApproval {
    /// Where to send the decision.
    #[schema(value_type = schema::ApprovalId)]
    approval_id: ApprovalId,
    /// Id of the tool call.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// Name of the tool.
    tool_name: String,
    /// Exactly what will run, when the reader may see it.
    #[schema(value_type = schema::Any)]
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Json>,
    /// What is said aloud to whoever decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    voice: Option<String>,
    /// When silence becomes a no.
    #[schema(value_type = schema::Time)]
    expires_at: Time,
    /// The agent of the child run that asks, when it is not the run itself.
    #[schema(value_type = Option<schema::AgentName>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
}

impl RunBody {
    /// The run as `reader` may see it, for whom `state` was folded; with what the runs below it have used.
    pub async fn read(
        door: &Shared,
        record: RunRecord,
        state: &RunState,
        reader: &Decider,
    ) -> Result<Self, StoreError> {
        let tree = match record.root == record.id {
            true => Some(door.engine.run_tree(record.id).await?),
            false => None,
        };
        Ok(Self::of(record, tree, state, reader))
    }

    /// The run as `reader` may see it, for whom `state` was folded.
    fn of(record: RunRecord, tree: Option<RunTree>, state: &RunState, reader: &Decider) -> Self {
        let end = state.end();
        let total_usage = tree.map(|tree| TotalUsage {
            tokens: tree.tokens,
            child_runs: (*reader == Decider::Backend).then_some(tree.descendants),
        });
        Self {
            summary: RunSummary::of(record, *reader == Decider::Backend),
            pending: Pending::of(state),
            decisions: decisions::of(state),
            usage: state.usage(),
            total_usage,
            text: state.text().map(str::to_owned),
            finish_reason: match end {
                Some(end) => word(&end.reason),
                None => state.finish_reason().and_then(|reason| word(&reason)),
            },
            error: end.and_then(|end| end.error.clone()),
        }
    }
}

impl Pending {
    pub fn of(state: &RunState) -> Self {
        let mut pending = Self::default();
        let own = state.pending().map(|call| (None, call));
        let below = state.pending_below().map(|(agent, call)| (Some(agent), call));
        for (agent, call) in own.chain(below) {
            let agent = agent.cloned();
            let questions = call.questions.open().map(|asked| PendingQuestion {
                question_id: asked.question_id,
                tool_call_id: asked.tool_call_id,
                tool_name: asked.tool_name.to_string(),
                message: asked.message.clone(),
                schema: asked.schema.clone(),
                url: asked.url.clone(),
                expires_at: asked.expires_at,
                agent: agent.clone(),
            });
            pending.questions.extend(questions);
            let (tool_call_id, tool_name) = (call.tool.call, call.tool.name.to_string());
            match &call.state {
                CallState::Open { deadline, claim } => pending.calls.push(PendingCall {
                    tool_call_id,
                    tool_name,
                    given_name: call.tool.given_name.as_deref().map(str::to_owned),
                    input: call.input.clone(),
                    deadline: Some(*deadline),
                    claim: claim.clone(),
                    agent,
                }),
                CallState::AwaitsApproval { approval, expires_at } => {
                    pending.approvals.push(PendingApproval {
                        approval_id: *approval,
                        tool_call_id,
                        tool_name,
                        input: call.shown_input().cloned(),
                        voice: call
                            .asked
                            .as_ref()
                            .and_then(|asked| Some(asked.voice.as_ref()?.text.clone())),
                        expires_at: *expires_at,
                        agent,
                    });
                }
                CallState::Paused(pause) => pending.pauses.push(PendingPause {
                    tool_call_id,
                    tool_name,
                    until: pause.until,
                    signal: pause.signal,
                }),
                CallState::Ready
                | CallState::Executing
                | CallState::Delegated { .. }
                | CallState::Settled(_) => {}
            }
        }
        pending
    }
}

/// A reason as it is written in events.
fn word(reason: &impl Serialize) -> Option<String> {
    serde_json::to_value(reason).ok()?.as_str().map(str::to_owned)
}
