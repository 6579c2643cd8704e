//! One call of a tool without a model: a run of one step, through the same pipeline as the calls of a model.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use toolgate_engine::feed::Scope;
use toolgate_engine::intake::{Answer as Answers, Post, RequestedCall, UnderWay};
use toolgate_engine::store::RunRecord;
use toolgate_http::answer::ok;
use toolgate_http::body::Body;
use toolgate_http::caller::Caller;
use toolgate_http::client_tools::ClientTools;
use toolgate_http::describe::{BadBody, Contended, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::run_state::CountedState;
use toolgate_http::wait::{Awaited, OpenWait, Rested, Since, Wait};
use toolgate_http::wire::{AnyObject, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::call::{CallState, Outcome};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{CallId, MessageId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Message;
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::problem::Problem;
use toolgate_kernel::run::RunState;
use utoipa::ToSchema;
use uuid::Uuid;

use super::messages::{Repeatable, checked};
use crate::snapshot::Pending;
use crate::waited::answer_unfinished;

/// How long a call is waited for when its caller does not say.
const WAIT_DEFAULT: Duration = Duration::from_secs(30);

wire! {
    /// A call of a tool.
    CallTool {
        /// The arguments, as the tool's parameters say; none is `{}`.
        arguments "arguments": Option<AnyObject>,
        /// Whose tools and grants; otherwise those of the space's agent, or of the project's `default`.
        agent "agent": Option<AgentName>,
        /// Where; otherwise in a space that is made for this call. A user names one.
        space "space": Option<SpaceId>,
        /// The same as `space`.
        space_id "spaceId": Option<SpaceId>,
        /// Tools that the caller executes itself.
        client_tools "clientTools": Option<ClientTools>,
    }
    at most one of [space "space", space_id "spaceId"]
}

/// A call as it stands.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolCall)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCallBody {
    /// The run that is this call.
    #[schema(value_type = schema::RunId)]
    run_id: RunId,
    /// Id of the tool call.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// Space of the run.
    #[schema(value_type = schema::SpaceId)]
    space_id: SpaceId,
    /// Status of the run: `completed` when the call gave an output, `failed` when it gave an error.
    #[schema(value_type = schema::Status)]
    status: &'static str,
    /// What the tool gave: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Any>)]
    output: Option<Json>,
    /// The author's message on a deprecated tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// Why there is no output.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallErrorBody>,
    /// Who or what the call waits for, when it has not settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<Pending>,
}

/// Why a call gave no output.
#[derive(Serialize, ToSchema)]
#[schema(as = CallError)]
pub(crate) struct CallErrorBody {
    /// For programs: `PERMISSION_DENIED`, `TIMEOUT`, `EXECUTION_FAILED`, …
    code: String,
    /// In words.
    message: String,
}

/// Calls a tool, without a model.
///
/// The call is a run of one step, so permissions, prerequisites, limits, approvals, clients and crashes are the same as for
/// a call of a model. Waits for the call, 30 seconds unless `prefer: wait=N` says otherwise; answers early when it waits for
/// an approval, an answer or a moment.
#[utoipa::path(
    post, path = "/v1/tools/{name}/call", operation_id = "call_tool", tag = "tools",
    params(
        ("name" = String, Path, description = "Name of the tool."),
        ("wait" = Option<String>, Query, pattern = "^[0-9]+(ms|s|m)?$", description = "How long to wait for the call, such as `10s`; `30s` unless said otherwise."),
        ("prefer" = Option<String>, Header, description = "The same in seconds: `wait=10`."),
        ("idempotency-key" = inline(Option<schema::IdempotencyKey>), Header, description = "Makes a repeated request harmless for a day."),
    ),
    request_body = CallTool,
    responses(
        (status = 200, description = "The call has settled: its output, or its error.", body = ToolCallBody),
        (status = 202, description = "The call is under way, or waits for somebody.", body = ToolCallBody),
        BadBody, Contended, Missing, Refused,
    ),
)]
pub(crate) async fn call(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(tool): At<ToolName>,
    wait: Wait,
    request: Repeatable,
    body: Body<CallTool>,
) -> Result<Response, Refusal> {
    let Body { value: body, bytes } = body;
    let idempotency = request.idempotency(&who, &bytes, None);
    // Not in memory while somebody waits.
    drop(bytes);
    let input = body
        .arguments
        .map_or_else(|| serde_json::json!({}).into(), |given| given.0);
    door.settings.content.check_arguments(&input)?;
    let space = body.space.or(body.space_id);
    match (space, &who.user) {
        (Some(space), Some(_)) => door.access.reach_space(&who, space).await?,
        (None, Some(_)) => {
            let words = "is required: with a public key a tool is called in a space that you are a member of";
            return Err(Refusal::invalid(vec![Problem::new("/spaceId", words)]));
        }
        (_, None) => {}
    }
    let wait = wait.or(&door, WAIT_DEFAULT).reserve(&door, &who)?;
    let wait = wait.expect("a call is waited for unless its caller says otherwise");
    let post = Post {
        user_token: who.user_token(),
        project: who.project,
        starter: who.starter(),
        charged: who.entity().into(),
        space,
        message: Message {
            sender: who.sender(),
            ..Message::new(MessageId::new(Uuid::now_v7()), who.entity(), Vec::new())
        },
        answer: body.agent.map_or(Answers::Default, Answers::Agent),
        client_tools: checked(&door, &who, body.client_tools).await?,
        categories: None,
        makes_space: false,
        under_way: UnderWay::Join,
        history: Vec::new(),
        told: Vec::new(),
        call: Some(RequestedCall { tool, input }),
        idempotency,
    };
    let posted = door.engine.post(post).await?;
    let run = posted.run_id.expect("a call is a run");
    door.access.remember(who.project, run, posted.space_id);
    let events = door.engine.subscribe(Scope::Run(run), posted.seq).await?;
    let awaited = Awaited {
        who,
        run,
        space: posted.space_id,
        since: Since::Now,
        is_rest: ended_or_asks_people,
    };
    match wait.rest(&door, &awaited, events).await? {
        Some(Rested { record, state, .. }) => Ok(answer(&wait, &record, &state)),
        None => unfinished(&door, &wait, &awaited).await,
    }
}

/// Whether a call has settled, or waits for what may take long. A client that is connected answers within the wait.
fn ended_or_asks_people(status: Status) -> bool {
    match status {
        Status::WaitingApproval | Status::WaitingTime => true,
        Status::Completed | Status::Failed | Status::Cancelled => true,
        Status::Queued | Status::Running | Status::WaitingTool => false,
    }
}

/// The call as it stands when its caller waits no longer.
async fn unfinished(door: &Shared, wait: &OpenWait, awaited: &Awaited) -> Result<Response, Refusal> {
    let Some(record) = door.engine.run(awaited.run).await? else {
        return Err(Refusal::not_found("run"));
    };
    let pass = door.access.admit(&awaited.who, awaited.space).await?;
    let state = CountedState::read(door, &awaited.who, awaited.run, pass.reader()).await?;
    Ok(answer(wait, &record, &state))
}

fn answer(wait: &OpenWait, record: &RunRecord, state: &RunState) -> Response {
    let settled = state.calls().first().and_then(|call| match &call.state {
        CallState::Settled(settled) => Some(settled),
        _ => None,
    });
    let (output, error) = match settled.map(|settled| &settled.outcome) {
        Some(Outcome::Output(output)) => (Some(output.clone()), None),
        Some(Outcome::Error { code, message }) => (None, Some((code.as_str().to_owned(), message.clone()))),
        // It ended before the call was written.
        None => (None, state.end().map(|end| not_made(end.error.as_deref()))),
    };
    let has_settled = output.is_some() || error.is_some();
    let body = ToolCallBody {
        run_id: record.id,
        tool_call_id: CallId {
            run: record.id,
            number: 0,
        },
        space_id: record.space,
        status: state.status().as_str(),
        output,
        warning: settled.and_then(|settled| settled.warning.clone()),
        error: error.map(|(code, message)| CallErrorBody { code, message }),
        pending: (!has_settled).then(|| Pending::of(state)),
    };
    match has_settled {
        true => (wait.applied(), ok(body)).into_response(),
        false => answer_unfinished(wait, record.id, body),
    }
}

fn not_made(why: Option<&str>) -> (String, String) {
    let words = why.unwrap_or("the run ended before the call was made");
    ("UNAVAILABLE".to_owned(), words.to_owned())
}
