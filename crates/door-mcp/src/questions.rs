//! Questions of runs to people, as MCP's elicitations: an approval is a yes or a no, with another input where the tool's
//! terms let whoever decides change it; what a tool asks in the middle of a call is passed on as it is.

use rmcp::ErrorData;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
};
use serde::Deserialize;
use serde_json::Value;
use toolgate_access::Principal;
use toolgate_engine::intake::{Decision, IntakeError};
use toolgate_http::Shared;
use toolgate_kernel::call::{Call, CallState};
use toolgate_kernel::event::ToolQuestion;
use toolgate_kernel::id::{ApprovalId, QuestionId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Action, Response};
use toolgate_kernel::run::RunState;
use toolgate_kernel::tool::Decider;

use crate::problem;
use crate::visitor::Abilities;

/// Most bytes of an input that a question shows.
const SHOWN_BYTES_MAX: usize = 4 * 1024;

/// A question that the caller may answer.
pub(crate) enum Question {
    /// May this call run?
    Approval {
        approval: ApprovalId,
        tool: String,
        input: Option<Json>,
        may_edit: bool,
    },
    /// What a tool asks in the middle of a call: a form.
    Form {
        question: QuestionId,
        message: String,
        schema: ElicitationSchema,
    },
    /// The same: a page to visit.
    Page {
        question: QuestionId,
        message: String,
        url: String,
    },
}

impl Question {
    /// The open questions of a run, and of the runs below it, that this reader may answer and its client can ask. A
    /// form that MCP has no word for is left to others.
    pub fn open(state: &RunState, reader: &Decider, abilities: Abilities) -> Vec<Self> {
        let below = state.pending_below().map(|(_, call)| call);
        let calls = state.pending().chain(below);
        let open = calls.flat_map(|call| {
            let approval = Self::approval(call, reader);
            approval
                .into_iter()
                .chain(call.questions.open().filter_map(Self::asked))
        });
        let can_ask = |question: &Self| match question {
            Self::Approval { .. } | Self::Form { .. } => abilities.elicits,
            Self::Page { .. } => abilities.visits,
        };
        open.filter(can_ask).collect()
    }

    fn approval(call: &Call, reader: &Decider) -> Option<Self> {
        let CallState::AwaitsApproval { approval, .. } = &call.state else {
            return None;
        };
        let terms = call.approval_terms();
        terms.admit(reader).then(|| Self::Approval {
            approval: *approval,
            tool: call.tool.name.to_string(),
            input: call.shown_input().cloned(),
            may_edit: terms.may_edit(reader, call.is_seen_by_members()),
        })
    }

    fn asked(asked: &ToolQuestion) -> Option<Self> {
        let (question, message) = (asked.question_id, asked.message.clone());
        match (&asked.url, &asked.schema) {
            (Some(url), _) => Some(Self::Page {
                question,
                message,
                url: url.clone(),
            }),
            (None, Some(schema)) => Some(Self::Form {
                question,
                message,
                schema: ElicitationSchema::from_json_schema(schema.read().ok()?).ok()?,
            }),
            (None, None) => None,
        }
    }

    /// Names the question for the life of its run.
    pub fn key(&self) -> String {
        match self {
            Self::Approval { approval, .. } => approval.to_string(),
            Self::Form { question, .. } | Self::Page { question, .. } => question.to_string(),
        }
    }

    /// What the client's person is shown.
    pub fn params(&self) -> ElicitRequestParams {
        match self {
            Self::Approval {
                tool,
                input,
                may_edit,
                ..
            } => approval_form(tool, input.as_ref(), *may_edit),
            Self::Form { message, schema, .. } => ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: message.clone(),
                requested_schema: schema.clone(),
            },
            Self::Page {
                message,
                url,
                question,
            } => ElicitRequestParams::UrlElicitationParams {
                meta: None,
                message: message.clone(),
                url: url.clone(),
                elicitation_id: question.to_string(),
            },
        }
    }

    /// The same as a request in a result.
    pub fn request(&self) -> InputRequest {
        InputRequest::Elicitation(ElicitRequest::new(self.params()))
    }
}

/// Asks whether a call may run.
fn approval_form(tool: &str, input: Option<&Json>, may_edit: bool) -> ElicitRequestParams {
    let shown = input.map_or("{}", Json::as_str);
    let shown = match shown.len() > SHOWN_BYTES_MAX {
        true => format!("{} …", &shown[..shown.floor_char_boundary(SHOWN_BYTES_MAX)]),
        false => shown.to_owned(),
    };
    let mut form = ElicitationSchema::builder()
        .required_bool_with("approve", |field| {
            field
                .title("Approve")
                .description("Whether the tool may run with this input.")
        })
        .optional_string_with("reason", |field| {
            field
                .title("Reason")
                .description("With a no: why. The caller is told.")
        });
    if may_edit {
        form = form.optional_string_with("input", |field| {
            field
                .title("Input")
                .description("With a yes: another input to run with, as JSON.")
        });
    }
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("May the tool {tool} run with this input? {shown}"),
        requested_schema: form.build().expect("every required member is there"),
    }
}

/// What a person filled in.
#[derive(Deserialize)]
struct Filled {
    approve: bool,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    input: Option<String>,
}

/// The decision that an answer to an approval holds; none when the person put the question aside.
fn decision(answer: &ElicitResult) -> Result<Option<Decision>, ErrorData> {
    match answer.action {
        ElicitationAction::Accept => {}
        ElicitationAction::Decline => return Ok(Some(Decision::Deny(None))),
        _ => return Ok(None),
    }
    let content = answer.content.clone().unwrap_or(Value::Null);
    let filled: Filled = serde_json::from_value(content).map_err(|error| {
        let words = format!("the answer does not fit its form: {error}; expected {{\"approve\": true}}");
        ErrorData::invalid_params(words, None)
    })?;
    if !filled.approve {
        return Ok(Some(Decision::Deny(filled.reason)));
    }
    let input = filled.input.filter(|text| !text.trim().is_empty());
    let input = input.map(Json::parse).transpose().map_err(|error| {
        ErrorData::invalid_params(format!("the changed input is not JSON: {error}"), None)
    })?;
    Ok(Some(Decision::Approve(input)))
}

/// An answer to what a tool asks, in the tool's words.
fn response(answer: &ElicitResult) -> Response {
    let action = match answer.action {
        ElicitationAction::Accept => Action::Accept,
        ElicitationAction::Decline => Action::Decline,
        _ => Action::Cancel,
    };
    let content = answer.content.as_ref().filter(|_| action == Action::Accept);
    Response {
        action,
        content: content.map(Json::from),
    }
}

/// Takes the answer to one question of a run, or of a run below it. An answer that comes too late, or again, changes
/// nothing and is no error. False when the person put an approval aside, which leaves it to others.
pub(crate) async fn take(
    door: &Shared,
    who: &Principal,
    run: RunId,
    key: &str,
    answer: &ElicitResult,
) -> Result<bool, ErrorData> {
    let unknown = || ErrorData::invalid_params(format!("the task asks nothing named {key:?}"), None);
    let approval: Option<ApprovalId> = key.parse().ok();
    let question: Option<QuestionId> = key.parse().ok();
    let asking = approval.map(|id| id.run).or(question.map(|id| id.call.run));
    let top = door
        .access
        .reach_top(who, asking.ok_or_else(unknown)?, "question")
        .await;
    let top = top.map_err(problem::fault)?;
    if top.run != run {
        return Err(unknown());
    }
    let by = door
        .access
        .decider(who, top.space)
        .await
        .map_err(problem::store)?;
    let taken = match (approval, question) {
        (Some(approval), _) => match decision(answer)? {
            Some(decision) => door.engine.decide(approval, decision, by).await.map(drop),
            None => return Ok(false),
        },
        (None, Some(question)) => door
            .engine
            .respond(question, response(answer), by)
            .await
            .map(drop),
        (None, None) => return Err(unknown()),
    };
    match taken {
        Ok(()) => Ok(true),
        Err(
            IntakeError::DecidedOtherwise { .. }
            | IntakeError::RespondedOtherwise { .. }
            | IntakeError::Gone { .. }
            | IntakeError::Ended(_),
        ) => Ok(true),
        Err(error) => Err(problem::fault(error)),
    }
}
