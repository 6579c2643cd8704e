//! A call that its server has made a task of: asked after until it ends.

use std::time::Duration;

use serde_json::{Map, Value};
use toolgate_engine::tools::{CallFailure, Called, Delegation};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::question::{Answer as Said, Question};
use toolgate_mcp::{CallError, TaskHandle, TaskState};

use crate::asked::{self, Task};
use crate::rounds::ANSWERED_MAX;
use crate::server_call::{ServerCall, asks_without_end};
use crate::supervisor::Patience;

/// How often a task is asked about, unless its server says otherwise, and the bounds of what it may say.
const POLL: Duration = Duration::from_secs(2);
const POLL_MIN: Duration = Duration::from_millis(500);
const POLL_MAX: Duration = Duration::from_secs(60);

impl ServerCall<'_> {
    /// Asks where a task stands, with the answers that it waited for.
    pub async fn poll(
        &self,
        id: &str,
        given: Map<String, Value>,
        answers: &[Said],
    ) -> Result<Called, CallFailure> {
        let again = |given: Map<String, Value>| self.polls(&TaskHandle::new(id), given, Vec::new());
        // The task goes on without us: what matters is whether it is there when we are back.
        let Ok(lease) = self.handle().lease(Patience::Wait).await else {
            return Ok(again(given));
        };
        let mut responses = asked::responses(answers);
        responses.extend(given.clone());
        if !responses.is_empty() {
            match lease.caller.answer_task(id, responses).await {
                Ok(()) => {}
                Err(CallError::Gone | CallError::Unreached) if answers.is_empty() => return Ok(again(given)),
                Err(error) => return Err(self.lost(error)),
            }
        }
        let state = match lease.caller.task(id).await {
            Ok(state) => state,
            Err(CallError::Gone | CallError::Unreached) => return Ok(again(given)),
            Err(error) => return Err(self.lost(error)),
        };
        match state {
            TaskState::Working(task) => Ok(self.polls(&task, given, Vec::new())),
            TaskState::InputRequired(task, mut requests) => {
                let call = self.context.call;
                // What was just answered may still be listed: the server needs a moment.
                requests.retain(|(key, _)| {
                    let is_answered = answers.iter().any(|answer| answer.key == *key);
                    !is_answered && !self.inner.rounds.has_answered(call, key)
                });
                let (questions, now_given) = self.answered(requests).await?;
                if !now_given.is_empty() {
                    // At once: the task that the engine stores stays the same.
                    if !self.inner.rounds.answered(call, now_given.keys()) {
                        return Err(CallFailure::failed(asks_without_end(ANSWERED_MAX as u32)));
                    }
                    match lease.caller.answer_task(id, now_given).await {
                        Ok(()) | Err(CallError::Gone | CallError::Unreached) => {}
                        Err(error) => return Err(self.lost(error)),
                    }
                }
                Ok(self.polls(&task, given, questions))
            }
            TaskState::Completed(result) => self.complete(result).await,
            TaskState::Failed(words) => Err(CallFailure::failed(words)),
            TaskState::Cancelled => Err(CallFailure::failed(
                "the MCP server cancelled the task of this call",
            )),
        }
    }

    pub fn polls(&self, task: &TaskHandle, given: Map<String, Value>, questions: Vec<Question>) -> Called {
        if let Some(message) = &task.message {
            self.context.tell(&self.secrets.hide(message));
        }
        let wanted = task.poll_interval_ms.map_or(POLL, Duration::from_millis);
        let next = Task::Poll {
            id: task.id.clone(),
            given,
        };
        Called::Delegated(Delegation {
            task: next.text(),
            check_at: Some(self.now().after(wanted.clamp(POLL_MIN, POLL_MAX))),
            questions,
        })
    }

    /// The server cannot be asked about its own task: one that was started again has forgotten it.
    fn lost(&self, error: CallError) -> CallFailure {
        match error {
            CallError::Failed(words) => CallFailure::new(
                ErrorCode::Interrupted,
                format!(
                    "the MCP server {:?} has lost the task of this call ({words}): what it had done by then is unknown",
                    self.configured.name
                ),
            ),
            error => self.broken(error),
        }
    }
}
