//! What tools ask people in the middle of a call, and the answers.

use axum::extract::State;
use axum::response::Response as Answered;
use serde::Serialize;
use toolgate_engine::intake::Responded;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BadBody, BadQuery, Missing, Refused, Settled};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::wait::Wait;
use toolgate_http::wire::{wire, words};
use toolgate_http::{Shared, schema};
use toolgate_kernel::event::{Event, ToolQuestion};
use toolgate_kernel::id::{CallId, QuestionId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Action, Response};
use toolgate_kernel::time::Time;
use toolgate_kernel::view::view;
use utoipa::ToSchema;

use super::asking::{self, AskedIn, Asking, StatusWord};
use crate::snapshot::RunBody;
use crate::waited::{Given, answer_after};

words! {
    /// What somebody does with a question.
    ActionWord {
        /// Answers it.
        Accept = "accept",
        /// Refuses to answer it.
        Decline = "decline",
        /// Leaves it without a decision.
        Cancel = "cancel",
    }
}

impl From<ActionWord> for Action {
    fn from(word: ActionWord) -> Self {
        match word {
            ActionWord::Accept => Self::Accept,
            ActionWord::Decline => Self::Decline,
            ActionWord::Cancel => Self::Cancel,
        }
    }
}

/// What was done with a question.
#[derive(ToSchema)]
#[schema(as = QuestionAction, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes the kernel's action")]
pub(crate) enum ActionSchema {
    Accept,
    Decline,
    Cancel,
}

wire! {
    /// An answer to a question.
    AnswerQuestion {
        /// What is done with it.
        action "action": ActionWord,
        /// What is filled in, matching the question's schema; with `accept` of a question that has one, and never else.
        content "content": Option<Json>,
    }
}

/// An answer is stored. The same answer again gets the same receipt.
#[derive(Serialize, ToSchema)]
#[schema(as = AnsweredQuestion)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RespondedBody {
    /// Id of the question.
    #[schema(value_type = schema::QuestionId)]
    question_id: QuestionId,
    /// Id of the tool call.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// Its run.
    #[schema(value_type = schema::RunId)]
    run_id: RunId,
    /// What was done with the question.
    #[schema(value_type = ActionSchema)]
    action: Action,
    /// The place of the answer.
    seq: u64,
    /// When it was stored.
    #[schema(value_type = schema::Time)]
    time: Time,
}

impl From<Responded> for RespondedBody {
    fn from(responded: Responded) -> Self {
        Self {
            question_id: responded.question_id,
            tool_call_id: responded.tool_call_id,
            run_id: responded.run_id,
            action: responded.action,
            seq: responded.seq.0,
            time: responded.time,
        }
    }
}

/// An answer is stored; with the run when that was waited for.
#[derive(Serialize, ToSchema)]
pub(crate) struct AnsweredQuestionAndRun {
    #[serde(flatten)]
    responded: RespondedBody,
    /// The run once it has ended or waits again: of a child run's call, the run at the top.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunBody>,
}

/// Answers a question that a tool asks in the middle of a call.
///
/// The call goes on when all its questions are answered. With `prefer: wait=30` the answer has the run too once that has
/// ended or waits again, if that is within 30 seconds.
#[utoipa::path(
    post, path = "/v1/questions/{question}", operation_id = "answer_question", tag = "questions",
    params(
        ("question" = inline(schema::QuestionId), Path),
        ("wait" = Option<String>, Query, pattern = "^[0-9]+(ms|s|m)?$", description = "How long to wait for the run, such as `30s`."),
        ("prefer" = Option<String>, Header, description = "The same in seconds: `wait=30`."),
    ),
    request_body = AnswerQuestion,
    responses(
        (status = 200, description = "Stored; with the run, when that was waited for.", body = AnsweredQuestionAndRun),
        (status = 202, description = "Stored, and the run is under way after the wait.", body = RespondedBody),
        BadBody, Missing, Settled, Refused,
    ),
)]
pub(crate) async fn respond(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(question): At<QuestionId>,
    wait: Wait,
    body: Body<AnswerQuestion>,
) -> Result<Answered, Refusal> {
    let wait = wait.reserve(&door, &who)?;
    let run = question.call.run;
    let top = door.access.reach_top(&who, run, "question").await?;
    let by = door.access.decider(&who, top.space).await?;
    let AnswerQuestion { action, content } = body.value;
    let response = Response {
        action: action.into(),
        content,
    };
    let responded = door.engine.respond(question, response, by).await?;
    let given = Given {
        run,
        seq: responded.seq,
        place_above: &|state| Some(state.question(question)?.response.as_ref()?.seq),
    };
    let responded = RespondedBody::from(responded);
    let told = |responded, run| AnsweredQuestionAndRun {
        responded,
        run: Some(run),
    };
    answer_after(&door, wait, who, given, responded, told).await
}

/// A question of a tool that waits for an answer.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenQuestion)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuestionBody {
    /// Where to send the answer.
    #[schema(value_type = schema::QuestionId)]
    question_id: QuestionId,
    /// The call that asks.
    #[schema(value_type = schema::CallId)]
    tool_call_id: CallId,
    /// The tool.
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
    #[serde(flatten)]
    asked: AskedIn,
    /// When silence becomes a cancel.
    #[schema(value_type = schema::Time)]
    expires_at: Time,
}

/// A page of open questions, newest run first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuestionList {
    /// The questions.
    questions: Vec<QuestionBody>,
    /// What to give as `before` for the next page; null on the last. A page may be empty and not the last.
    #[schema(value_type = Option<schema::RunId>)]
    next_cursor: Option<RunId>,
}

/// The questions of tools that nobody has answered: a backend's all, a user's those of the spaces it is a member of.
#[utoipa::path(
    get, path = "/v1/questions", operation_id = "list_questions", tag = "questions",
    params(
        ("status" = inline(Option<StatusWord>), Query, description = "Only open ones are listed."),
        ("space" = inline(Option<schema::SpaceId>), Query, description = "In this space only."),
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Of this agent only."),
        ("before" = inline(Option<schema::RunId>), Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page.", body = QuestionList), BadQuery, Missing, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    Caller(who): Caller,
    query: Query,
) -> Result<Answer<QuestionList>, Refusal> {
    let told = |asking: Asking<'_>| {
        let questions = asking.open.questions.iter();
        let seen = questions.filter_map(|(time, asked)| QuestionBody::of(&asking, *time, asked));
        seen.collect()
    };
    let (questions, next_cursor) = asking::page(&door, &who, &query, told).await?;
    Ok(ok(QuestionList {
        questions,
        next_cursor,
    }))
}

impl QuestionBody {
    fn of(asking: &Asking<'_>, requested_at: Time, asked: &ToolQuestion) -> Option<Self> {
        let event = Event::from(asked.clone());
        let seen = view(&event, asking.reader)?;
        let Event::ToolQuestion(seen) = seen.into_owned() else {
            return None;
        };
        Some(Self {
            question_id: seen.question_id,
            tool_call_id: seen.tool_call_id,
            tool_name: seen.tool_name.to_string(),
            message: seen.message,
            schema: seen.schema,
            url: seen.url,
            asked: asking.place(requested_at),
            expires_at: seen.expires_at,
        })
    }
}
