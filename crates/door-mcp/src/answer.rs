//! What a run is in the words of MCP: the result of a call, or a task.

use std::time::Duration;

use rmcp::model::{
    CallToolResult, ContentBlock, DetailedTask, InputRequests, JsonObject, MetaObject, Task, TaskPayload,
};
use serde_json::{Value, json};
use toolgate_kernel::call::{CallState, Outcome};
use toolgate_kernel::event::Status;
use toolgate_kernel::json::Json;

use crate::following::Look;
use crate::questions::Question;
use crate::visitor::{Abilities, RUN_META, SPACE_META};

/// How often a client should ask after a task.
const POLL: Duration = Duration::from_secs(1);
/// JSON-RPC code of a run that failed without a call that could say why.
const INTERNAL_ERROR: i32 = -32603;

/// How the output of a call is given to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// Whether the tool has a schema of its output.
    pub structured: bool,
    /// Whether the client takes any JSON as structured content, and not objects alone.
    pub any_json: bool,
}

impl Form {
    /// The form for a client, of a tool that has a schema of its output or none.
    pub fn new(structured: bool, abilities: Abilities) -> Self {
        Self {
            structured,
            any_json: abilities.modern,
        }
    }
}

impl Look {
    /// The result of a run that has ended; none while it has not.
    pub fn result(&self, form: Form) -> Option<CallToolResult> {
        let end = self.state.end()?;
        let result = match self.record.tool {
            Some(_) => self.call_result(form, end.error.as_deref()),
            None => self.answer_result(end.status, end.error.as_deref()),
        };
        Some(self.named(result))
    }

    /// What the call of the run gave, if it has.
    pub fn output(&self) -> Option<&Json> {
        match (&self.record.tool, self.outcome()) {
            (Some(_), Some(Outcome::Output(output))) => Some(output),
            _ => None,
        }
    }

    /// The run as a task; `result` is that of a run that has ended.
    pub fn task(&self, result: Option<CallToolResult>, abilities: Abilities) -> DetailedTask {
        let payload = match (result, self.state.status()) {
            (Some(_), Status::Cancelled) => TaskPayload::Cancelled,
            (Some(result), _) => completed(&result),
            (None, Status::WaitingApproval) => match self.questions(abilities) {
                none if none.is_empty() => TaskPayload::Working,
                input_requests => TaskPayload::InputRequired { input_requests },
            },
            (None, _) => TaskPayload::Working,
        };
        let task = Task::new(
            self.record.id.to_string(),
            payload.status(),
            self.record.created.to_string(),
            self.record.updated.to_string(),
        );
        let task = task
            .with_poll_interval_ms(POLL.as_millis() as u64)
            .with_status_message(words(self.state.status()));
        DetailedTask::new(task, payload)
    }

    /// What the run asks people, for whoever of them calls.
    pub fn questions(&self, abilities: Abilities) -> InputRequests {
        let open = Question::open(&self.state, &self.reader, abilities).into_iter();
        open.map(|question| (question.key(), question.request()))
            .collect()
    }

    fn call_result(&self, form: Form, why: Option<&str>) -> CallToolResult {
        match self.outcome() {
            Some(Outcome::Output(output)) => output_result(output, form),
            Some(Outcome::Error { code, message }) => failure(&format!("{}: {message}", code.as_str())),
            None => failure(why.unwrap_or("the run ended before the call was made")),
        }
    }

    /// How the call of the run was settled.
    fn outcome(&self) -> Option<&Outcome> {
        match &self.state.calls().first()?.state {
            CallState::Settled(settled) => Some(&settled.outcome),
            _ => None,
        }
    }

    fn answer_result(&self, status: Status, why: Option<&str>) -> CallToolResult {
        match status {
            Status::Completed => {
                let answer = self.state.answer();
                let mut result = CallToolResult::success(vec![ContentBlock::text(answer.clone())]);
                let space = self.record.space.to_string();
                result.structured_content = Some(json!({ "answer": answer, "space": space }));
                result
            }
            _ => failure(why.unwrap_or(words(status))),
        }
    }

    /// The result with the ids by which the run and its space can be read.
    fn named(&self, mut result: CallToolResult) -> CallToolResult {
        let ids = [
            (RUN_META, self.record.id.to_string()),
            (SPACE_META, self.record.space.to_string()),
        ];
        let ids = ids.map(|(name, id)| (name.to_owned(), Value::from(id)));
        result.meta = Some(MetaObject(ids.into_iter().collect()));
        result
    }
}

/// The result of a call that failed, in words for the model.
pub(crate) fn failure(words: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(words)])
}

/// Where a run stands, in words for people.
pub(crate) fn words(status: Status) -> &'static str {
    match status {
        Status::Queued => "waits to be picked up",
        Status::Running => "is at work",
        Status::WaitingTool => "waits for a client to execute the tool",
        Status::WaitingApproval => "waits for somebody to approve the call or to answer a question",
        Status::WaitingTime => "waits for a moment or a signal",
        Status::Completed => "has ended",
        Status::Failed => "has failed",
        Status::Cancelled => "was cancelled",
    }
}

fn output_result(output: &Json, form: Form) -> CallToolResult {
    let value = output.to_value();
    let text = match &value {
        Value::String(text) => text.clone(),
        _ => output.as_str().to_owned(),
    };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    if form.structured && (form.any_json || value.is_object()) {
        result.structured_content = Some(value);
    }
    result
}

fn completed(result: &CallToolResult) -> TaskPayload {
    match serde_json::to_value(result) {
        Ok(Value::Object(result)) => TaskPayload::Completed { result },
        _ => {
            let error = json!({ "code": INTERNAL_ERROR, "message": "the result cannot be written" });
            let error = error.as_object().cloned().unwrap_or_else(JsonObject::new);
            TaskPayload::Failed { error }
        }
    }
}
