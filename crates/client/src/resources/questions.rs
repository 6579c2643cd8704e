//! Questions of tools.

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_protocol::event::Seq;
use toolgate_protocol::id::{CallId, QuestionId, RunId, SpaceId};
use toolgate_protocol::question::Action;

use crate::client::Client;
use crate::error::Error;
use crate::http::RetryPolicy;

/// A question that a tool asks in the middle of a call and that nobody has answered.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenQuestion {
    /// The question's id, which the answer is sent to.
    pub question_id: QuestionId,
    /// The call that asks.
    pub tool_call_id: CallId,
    /// The tool's name.
    pub tool_name: String,
    /// What is asked, in words.
    pub message: String,
    /// JSON Schema of the answer's content, when a form is to be filled in.
    #[serde(default)]
    pub schema: Option<Value>,
    /// The page to visit instead.
    #[serde(default)]
    pub url: Option<String>,
    /// The space whose members may answer; absent in the `pending` of a run.
    #[serde(default)]
    pub space_id: Option<SpaceId>,
}

/// A page of open questions, newest run first.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionPage {
    /// The questions.
    pub questions: Vec<OpenQuestion>,
    /// What to give as `before` for the next page; none on the last.
    pub next_cursor: Option<RunId>,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuestionAnswer {
    action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Value>,
}

impl QuestionAnswer {
    /// Fills in the form. The content must match the question's schema.
    pub fn accept(content: Value) -> Self {
        Self {
            content: Some(content),
            ..Self::visited()
        }
    }
    /// Says that the page of the question was visited.
    pub fn visited() -> Self {
        Self {
            action: Action::Accept,
            content: None,
        }
    }
    /// Refuses to answer.
    pub fn decline() -> Self {
        Self {
            action: Action::Decline,
            content: None,
        }
    }
    /// Leaves the question without a decision.
    pub fn cancel() -> Self {
        Self {
            action: Action::Cancel,
            content: None,
        }
    }
}

/// The receipt of a stored answer. The same answer again gets the same receipt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnsweredQuestion {
    /// The question's id.
    pub question_id: QuestionId,
    /// The call that asked.
    pub tool_call_id: CallId,
    /// The run of the call.
    pub run_id: RunId,
    /// What was done with the question.
    pub action: Action,
    /// Position of the answer's event.
    pub seq: Seq,
}

/// Lists and answers questions of tools.
#[derive(Debug, Clone, Copy)]
pub struct Questions<'a> {
    pub(crate) client: &'a Client,
}

impl Questions<'_> {
    /// A page of the questions that nobody has answered: the newest, or those before a cursor.
    pub async fn list(&self, before: Option<RunId>) -> Result<QuestionPage, Error> {
        let open = ("status", "open".to_owned());
        let before = before.map(|before| ("before", before.to_string()));
        let query: Vec<_> = [open].into_iter().chain(before).collect();
        self.client.http().get("v1/questions", &query).await
    }
    /// Stores an answer. The first one wins; a different one fails with a conflict.
    pub async fn answer(
        &self,
        question: QuestionId,
        answer: &QuestionAnswer,
    ) -> Result<AnsweredQuestion, Error> {
        let path = format!("v1/questions/{question}");
        let http = self.client.http();
        http.send(Method::POST, &path, answer, RetryPolicy::Long).await
    }
}
