//! An answer to a question that a tool asked in the middle of a call, and the silence that becomes a cancel.

use super::approve::ended;
use super::{Rejected, Run};
use crate::call::{Call, CallState, ErrorCode};
use crate::event::{Event, ToolQuestion, ToolQuestionResponse};
use crate::id::QuestionId;
use crate::problem::Problem;
use crate::question::{Action, Ask, QUESTION_EXPIRY, Question, Response, ResponseRecord};
use crate::schema::{Profile, Validator};
use crate::time::Time;
use crate::tool::Decider;

/// What whoever answers is told when nobody did in time.
const EXPIRED: &str = "nobody answered the question in time";

impl Run {
    /// What an answer causes, or why it is not taken. Whether `by` may answer was asked before: members of the space and
    /// backends may.
    pub(super) fn respond(
        &self,
        id: QuestionId,
        response: Response,
        by: &Decider,
    ) -> Result<Event, Rejected> {
        let call = self.call(id.call).ok_or(Rejected::Unknown)?;
        let asked = call.questions.get(id).ok_or(Rejected::Unknown)?;
        match (&asked.response, &call.state) {
            (Some(record), _) => return Err(answered(record, &response)),
            (None, CallState::Settled(settled)) => {
                return Err(match ended(call, settled) {
                    gone @ Rejected::Gone { .. } => gone,
                    _ => Rejected::Gone {
                        code: ErrorCode::Unavailable,
                        message: "the call has ended without the answer".into(),
                    },
                });
            }
            (None, _) => check(&asked.question, &response)?,
        }
        let Response { action, content } = response;
        let response = ToolQuestionResponse::of(&call.tool, id, action, content, by.entity(), false);
        Ok(response.into())
    }
}

fn answered(record: &ResponseRecord, response: &Response) -> Rejected {
    match record.answered {
        true if record.response == *response => Rejected::Repeated,
        true => Rejected::Different,
        false => Rejected::Gone {
            code: ErrorCode::Timeout,
            message: EXPIRED.into(),
        },
    }
}

/// Checks that an answer is one that the question asks for.
fn check(question: &ToolQuestion, response: &Response) -> Result<(), Rejected> {
    let wrong = |words: &str| Rejected::Invalid(vec![Problem::new("/content", words)]);
    match (response.action, &question.schema, &response.content) {
        (Action::Accept, Some(schema), Some(content)) => {
            let value = content.read().map_err(|error| wrong(&error.to_string()))?;
            let schema = Validator::compile(schema, Profile::Client, "").map_err(Rejected::Invalid)?;
            schema
                .verify(&value)
                .map_err(|misfit| Rejected::from(misfit).within("/content"))
        }
        (Action::Accept, Some(_), None) => Err(wrong("must match the question's schema, and is missing")),
        (Action::Accept, None, Some(_)) => Err(wrong("must be left out, this question has no form")),
        (Action::Decline | Action::Cancel, _, Some(_)) => {
            Err(wrong("must be left out unless the action is \"accept\""))
        }
        (Action::Accept, None, None) | (Action::Decline | Action::Cancel, _, None) => Ok(()),
    }
}

/// The events that ask questions of a call, less those that it waits for already.
pub(super) fn ask(call: &Call, questions: Vec<Question>, now: Time) -> Vec<Event> {
    let is_delegated = matches!(call.state, CallState::Delegated { .. });
    let new = questions
        .into_iter()
        .filter(|question| !is_delegated || !call.questions.has(&question.key));
    let numbered = (call.questions.asked().len() as u32..).zip(new);
    let asked = numbered.map(|(number, question)| {
        let Question {
            key,
            message,
            ask,
            timeout,
        } = question;
        let id = QuestionId {
            call: call.tool.call,
            number,
        };
        let (schema, url) = match ask {
            Ask::Form { schema } => (Some(schema), None),
            Ask::Url { url } => (None, Some(url)),
        };
        let expires_at = now.after(timeout.unwrap_or(QUESTION_EXPIRY));
        ToolQuestion::of(&call.tool, id, Some(key), message, schema, url, expires_at).into()
    });
    asked.collect()
}

/// The cancels of the questions of a call that nobody has answered in time.
pub(super) fn expired(call: &Call, now: Time) -> Vec<Event> {
    let open = call.questions.open();
    let late = open.filter(|question| question.expires_at <= now);
    let cancels = late.map(|question| {
        let id = question.question_id;
        ToolQuestionResponse::of(&call.tool, id, Action::Cancel, None, None, true).into()
    });
    cancels.collect()
}
