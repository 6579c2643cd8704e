//! One call of a tool of a server, from its turn to its outcome.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_engine::tools::{CallContext, CallFailure, Called, Delegation};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Answer as Said, Question};
use toolgate_kernel::time::Time;
use toolgate_mcp::{
    Answer, Asked, CallError, CallRequest, InputRequired, Progress, Step, TaskHandle, TaskState, ToolResult,
};

use crate::asked::{self, Sorted, Task};
use crate::live::Stand;
use crate::oauth::Identity;
use crate::outcome::{self, Promise};
use crate::servers::Inner;
use crate::snapshot::{Configured, PinnedTool};
use crate::supervisor::{Handle, Lease, Patience};

/// How often a task is asked about, unless its server says otherwise, and the bounds of what it may say.
const POLL: Duration = Duration::from_secs(2);
const POLL_MIN: Duration = Duration::from_millis(500);
const POLL_MAX: Duration = Duration::from_secs(60);
/// How long a server that only wants to be asked again is left alone, times the number of rounds.
const AGAIN: Duration = Duration::from_secs(2);
/// How often a call is made again for a server that wants more each time.
const ROUNDS_MAX: u32 = 50;
/// How often a call that waits for a person on this node is looked at.
const LIVE_CHECK: Duration = Duration::from_secs(60);

/// A call of one tool.
pub(crate) struct ServerCall<'a> {
    pub inner: &'a Arc<Inner>,
    pub configured: &'a Configured,
    pub pinned: &'a PinnedTool,
    pub promise: Promise,
    pub context: &'a CallContext,
}

impl ServerCall<'_> {
    /// Makes the call.
    pub async fn begin(&self, input: &Json) -> Result<Called, CallFailure> {
        self.hidden(self.call(self.request(input), 0).await).await
    }

    /// What came of it, without the secrets that the server was given and may repeat to people and models.
    async fn hidden(&self, came: Result<Called, CallFailure>) -> Result<Called, CallFailure> {
        let secrets = &self.inner.settings(self.context.project).await?.secrets;
        match came {
            Ok(Called::Delegated(mut delegation)) => {
                for question in &mut delegation.questions {
                    question.message = secrets.hide(&question.message);
                }
                Ok(Called::Delegated(delegation))
            }
            Ok(output) => Ok(output),
            Err(failure) => Err(CallFailure::new(failure.code, secrets.hide(&failure.message))),
        }
    }

    /// Goes on with a call that was delegated.
    pub async fn resume(&self, input: &Json, task: &str, answers: &[Said]) -> Result<Called, CallFailure> {
        let task =
            Task::read(task).ok_or_else(|| CallFailure::failed("the task of this call cannot be read"))?;
        self.hidden(self.go_on(input, task, answers).await).await
    }

    async fn go_on(&self, input: &Json, task: Task, answers: &[Said]) -> Result<Called, CallFailure> {
        match task {
            Task::Live { round, .. } => self.go_on_live(round, answers).await,
            Task::Again { state, given, round } => {
                let mut responses = asked::responses(answers);
                responses.extend(given);
                let request = CallRequest {
                    input_responses: Some(responses).filter(|responses| !responses.is_empty()),
                    request_state: state,
                    ..self.request(input)
                };
                self.call(request, round).await
            }
            Task::Poll { id, given } => self.poll(&id, given, answers).await,
        }
    }

    fn request(&self, input: &Json) -> CallRequest {
        CallRequest {
            tool: self.pinned.tool.clone(),
            arguments: match input.to_value() {
                Value::Object(arguments) => Some(arguments),
                _ => None,
            },
            ..CallRequest::default()
        }
    }

    async fn call(&self, request: CallRequest, round: u32) -> Result<Called, CallFailure> {
        let handle = self.handle();
        let bytes = request
            .arguments
            .as_ref()
            .map_or(0, |arguments| json!(arguments).to_string().len());
        let turn = handle.turns.turn(self.context.share(), bytes).await;
        let _turn = turn.map_err(|_| self.busy())?;
        let lease = self.lease(&handle).await?;
        let settings = self.inner.settings(self.context.project).await?;
        let mut open = lease
            .caller
            .open(request)
            .await
            .map_err(|error| self.not_begun(error))?;
        loop {
            match open.next().await {
                Step::Progress(progress) => {
                    (self.context.progress)(settings.secrets.hide_in(told(progress)).into())
                }
                Step::Asked(asked) if asked.method == "sampling/createMessage" => self.sample(asked).await,
                Step::Asked(asked) => {
                    let question =
                        asked::question(key(0), asked.params.clone()).map_err(CallFailure::failed)?;
                    if !self.inner.live.keep(self.context.call, open, asked, lease) {
                        return Err(self.busy());
                    }
                    return Ok(self.waits_live(0, Some(question)));
                }
                Step::Done(done) => return self.done(done, round).await,
            }
        }
    }

    async fn done(&self, done: Result<Answer, CallError>, round: u32) -> Result<Called, CallFailure> {
        match done {
            Ok(Answer::Complete(result)) => self.complete(result).await,
            Ok(Answer::InputRequired(asks)) => self.asks(asks, round).await,
            Ok(Answer::Task(task)) => Ok(self.polls(&task, Map::new(), Vec::new())),
            Err(error) => Err(self.broken(error)),
        }
    }

    async fn complete(&self, result: ToolResult) -> Result<Called, CallFailure> {
        let secrets = &self.inner.settings(self.context.project).await?.secrets;
        if result.is_error {
            return Err(CallFailure::failed(secrets.hide(&result.failure())));
        }
        let output = outcome::output(result, self.promise, &self.inner.workspace, self.context).await;
        // A server was given secrets and may repeat them.
        Ok(Called::Output(secrets.hide_in(output).into()))
    }

    /// The server wants something first; the call is made again with it.
    async fn asks(&self, asks: InputRequired, round: u32) -> Result<Called, CallFailure> {
        if round >= ROUNDS_MAX {
            let words =
                format!("the MCP server asked for more {ROUNDS_MAX} times, and the call was given up");
            return Err(CallFailure::failed(words));
        }
        let round = round + 1;
        let Sorted {
            questions,
            mut given,
            sampling,
        } = asked::sorted(asks.requests).map_err(CallFailure::failed)?;
        for (key, params) in sampling {
            given.insert(key, self.sampled(params).await.map_err(CallFailure::failed)?);
        }
        let nobody_asked = questions.is_empty();
        let pause = match given.is_empty() {
            true => AGAIN * round,
            false => Duration::ZERO,
        };
        let task = Task::Again {
            state: asks.request_state,
            given,
            round,
        };
        Ok(Called::Delegated(Delegation {
            task: task.text(),
            check_at: nobody_asked.then(|| self.now().after(pause.min(POLL_MAX))),
            questions,
        }))
    }

    /// Asks where a task stands, with the answers that it waited for.
    async fn poll(
        &self,
        id: &str,
        given: Map<String, Value>,
        answers: &[Said],
    ) -> Result<Called, CallFailure> {
        let again = |given: Map<String, Value>| {
            let task = TaskHandle {
                id: id.to_owned(),
                poll_interval_ms: None,
                message: None,
            };
            self.polls(&task, given, Vec::new())
        };
        // The task goes on without us: what matters is whether it is there when we are back.
        let Ok(lease) = self.handle().lease(Patience::Wait).await else {
            return Ok(again(given));
        };
        let mut responses = asked::responses(answers);
        responses.extend(given.clone());
        if !responses.is_empty() {
            match lease.caller.answer_task(id, responses).await {
                Ok(()) => {}
                Err(CallError::Gone) if answers.is_empty() => return Ok(again(given)),
                Err(error) => return Err(self.broken(error)),
            }
        }
        let state = match lease.caller.task(id).await {
            Ok(state) => state,
            Err(CallError::Gone) => return Ok(again(Map::new())),
            Err(error) => return Err(self.broken(error)),
        };
        match state {
            TaskState::Working(task) => Ok(self.polls(&task, Map::new(), Vec::new())),
            TaskState::InputRequired(task, requests) => {
                let Sorted {
                    questions,
                    mut given,
                    sampling,
                } = asked::sorted(requests).map_err(CallFailure::failed)?;
                for (key, params) in sampling {
                    given.insert(key, self.sampled(params).await.map_err(CallFailure::failed)?);
                }
                // What was just answered may still be listed: the server needs a moment.
                let is_new = |question: &Question| answers.iter().all(|answer| answer.key != question.key);
                let questions = questions.into_iter().filter(is_new).collect();
                Ok(self.polls(&task, given, questions))
            }
            TaskState::Completed(result) => self.complete(result).await,
            TaskState::Failed(words) => Err(CallFailure::failed(words)),
            TaskState::Cancelled => Err(CallFailure::failed(
                "the MCP server cancelled the task of this call",
            )),
        }
    }

    fn polls(&self, task: &TaskHandle, given: Map<String, Value>, questions: Vec<Question>) -> Called {
        if let Some(message) = &task.message {
            self.context.tell(message);
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

    async fn go_on_live(&self, round: u32, answers: &[Said]) -> Result<Called, CallFailure> {
        let Some(live) = self.inner.live.get(self.context.call) else {
            return Err(CallFailure::new(
                ErrorCode::Interrupted,
                "the gateway was restarted while the MCP server waited for an answer: what it had done by then is unknown",
            ));
        };
        let stand = match answers.iter().find(|answer| answer.key == key(round)) {
            Some(answer) => {
                live.answer(round, asked::response(answer)).await;
                live.beyond(round).await
            }
            None => live.now(),
        };
        match stand {
            Stand::Asks { round: at, params } if at > round => {
                let question = asked::question(key(at), params).map_err(CallFailure::failed)?;
                Ok(self.waits_live(at, Some(question)))
            }
            Stand::Asks { .. } | Stand::Working => Ok(self.waits_live(round, None)),
            Stand::Ended(done) => {
                // What it gave is stored from here on.
                self.inner.live.end(self.context.call);
                self.done(done, 0).await
            }
        }
    }

    fn waits_live(&self, round: u32, question: Option<Question>) -> Called {
        Called::Delegated(Delegation {
            task: Task::Live {
                call: self.context.call,
                round,
            }
            .text(),
            check_at: Some(self.now().after(LIVE_CHECK)),
            questions: question.into_iter().collect(),
        })
    }

    async fn sample(&self, asked: Asked) {
        // Dropping the question declines it.
        if let Ok(result) = self.sampled(asked.params.clone()).await {
            asked.answer(result);
        }
    }

    async fn sampled(&self, params: Value) -> Result<Value, String> {
        match &self.inner.sampler {
            Some(sampler) if self.configured.config.sampling => {
                sampler.sample(self.context.project, params).await
            }
            Some(_) | None => Err(format!(
                "the MCP server {:?} wants a model asked, which it may not: `sampling` in its configuration permits it",
                self.configured.name
            )),
        }
    }

    fn handle(&self) -> Handle {
        let (project, key) = (self.context.project, &self.pinned.server);
        self.inner.pool.handle(self.inner, project, key, self.configured)
    }

    async fn lease(&self, handle: &Handle) -> Result<Lease, CallFailure> {
        handle.lease(Patience::Wait).await.map_err(|reason| {
            CallFailure::unavailable(format!(
                "the MCP server {:?} of this tool is not available, and the call was not made: {reason}",
                self.configured.name
            ))
        })
    }

    fn now(&self) -> Time {
        self.inner.clock.now()
    }

    fn busy(&self) -> CallFailure {
        CallFailure::new(
            ErrorCode::LimitExceeded,
            format!(
                "too many calls of the MCP server {:?} wait already, and the call was not made; try again in a moment",
                self.configured.name
            ),
        )
    }

    fn not_begun(&self, error: CallError) -> CallFailure {
        match error {
            CallError::Gone => CallFailure::unavailable(format!(
                "the MCP server {:?} of this tool has just ended, and the call was not made; it is started again",
                self.configured.name
            )),
            CallError::NeedsAuthorization(_) => self.unsigned(),
            error => CallFailure::failed(error.to_string()),
        }
    }

    /// The server has refused the gateway's token, so it has done nothing.
    fn unsigned(&self) -> CallFailure {
        let identity = Identity {
            project: self.context.project,
            server: self.pinned.server.clone(),
        };
        self.inner.noted(&identity, true);
        CallFailure::unavailable(format!(
            "a person must sign in to the MCP server {:?} of this tool first; the call was not made",
            self.configured.name
        ))
    }

    fn broken(&self, error: CallError) -> CallFailure {
        match error {
            CallError::Gone => CallFailure::new(
                ErrorCode::Interrupted,
                format!(
                    "the MCP server {:?} ended while the call ran: what it had done by then is unknown",
                    self.configured.name
                ),
            ),
            CallError::NeedsAuthorization(_) => self.unsigned(),
            error => CallFailure::failed(error.to_string()),
        }
    }
}

/// The name of a question of a live call.
fn key(round: u32) -> String {
    format!("ask-{round}")
}

fn told(progress: Progress) -> Value {
    let mut told = json!({ "progress": progress.progress });
    if let Some(total) = progress.total {
        told["total"] = total.into();
    }
    if let Some(message) = progress.message {
        told["status"] = message.into();
    }
    told
}
