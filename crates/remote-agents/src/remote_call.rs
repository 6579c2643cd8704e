//! One call of a remote agent, from its message to its outcome.

mod shown;

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};
use toolgate_a2a::message::{Message, Role};
use toolgate_a2a::part::Part;
use toolgate_a2a::request::{Configuration, SendMessage};
use toolgate_a2a::stream::StreamResponse;
use toolgate_a2a::task::{Task, TaskState, TaskStatus};
use toolgate_egress::Secrets;
use toolgate_engine::clock::Clock;
use toolgate_engine::tools::{CallContext, CallFailure, Called, Delegation};
use toolgate_engine::workspace::Workspace;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Action, Answer, Question};

use crate::config::AgentConfig;
use crate::open_streams::{OpenStream, OpenStreams};
use crate::outcome;
use crate::question;
use crate::remote::{Remote, RemoteError};
use crate::task_handle::TaskHandle;

/// How often a request is tried that did not reach the agent, and the first wait in between; it doubles each time.
const ATTEMPTS_MAX: u32 = 4;
const BACKOFF: Duration = Duration::from_millis(500);
/// How soon a task is looked at again that is not followed by a stream, unless the engine says later.
const POLL: Duration = Duration::from_millis(500);
/// How soon a task is looked at again that waits for a person: the agent may give it up.
const POLL_ASKED: Duration = Duration::from_secs(60);
/// How long a look at a task follows its stream.
const WATCH: Duration = Duration::from_secs(45);
/// Most pieces of progress that one look tells.
const PROGRESS_MAX: usize = 500;
/// How often an agent may ask for more.
const ROUNDS_MAX: u32 = 50;
/// Longest time that a call waits for its task to be cancelled.
const CANCEL_MAX: Duration = Duration::from_secs(10);

/// A call of a remote agent.
pub(crate) struct RemoteCall<'a> {
    pub config: &'a AgentConfig,
    pub remote: Remote,
    /// Secrets that were sent and may come back.
    pub secrets: Secrets,
    /// What the card says of credentials, for whoever has to set them.
    pub credentials: Vec<String>,
    pub streams: &'a OpenStreams,
    pub workspace: &'a Workspace,
    pub clock: &'a dyn Clock,
    pub context: &'a CallContext,
}

/// The first event that answers a message, and the stream that goes on after it.
type First = (StreamResponse, Option<OpenStream>);

impl RemoteCall<'_> {
    /// Sends the first message.
    pub async fn begin(&self, input: &Json, reads_json: bool) -> Result<Called, CallFailure> {
        let parts = parts(input.to_value(), reads_json);
        // The same however often it is sent, also after a crash: an agent that keeps ids does it once.
        let message = Message::new(self.context.call.to_string(), Role::User, parts);
        self.hidden(self.begun(message).await)
    }

    async fn begun(&self, message: Message) -> Result<Called, CallFailure> {
        let (first, stream) = self.sent(message).await.map_err(|error| self.failure(error))?;
        self.first(first, stream, None).await
    }

    /// Goes on with a task that was begun.
    pub async fn resume(&self, handle: TaskHandle, answers: &[Answer]) -> Result<Called, CallFailure> {
        let came = match answers
            .iter()
            .find(|answer| answer.key == question::key(handle.round))
        {
            Some(answer) => self.answer(handle, answer).await,
            None => self.look(handle).await,
        };
        self.hidden(came)
    }

    /// Asks how far the task is, and follows its stream for a while where there is one.
    async fn look(&self, handle: TaskHandle) -> Result<Called, CallFailure> {
        if let Some(stream) = self.streams.take(self.context.call)
            && let Some(stream) = self.watched(stream).await
        {
            self.streams.keep(self.context.call, stream);
            return Ok(self.goes_on(&handle));
        }
        let task = match self.remote.task(&handle.id).await {
            Ok(task) => task,
            Err(error) => return self.untold(error, &handle),
        };
        if !is_under_way(&task.status, &handle) || !self.remote.endpoint.streams {
            return self.came(task, handle).await;
        }
        self.tell_status(&task.status);
        let Some(stream) = self.subscribed(&handle).await else {
            return Ok(self.goes_on(&handle));
        };
        if let Some(stream) = self.watched(stream).await {
            self.streams.keep(self.context.call, stream);
            return Ok(self.goes_on(&handle));
        }
        match self.remote.task(&handle.id).await {
            Ok(task) => self.came(task, handle).await,
            Err(error) => self.untold(error, &handle),
        }
    }

    async fn subscribed(&self, handle: &TaskHandle) -> Option<OpenStream> {
        let permit = self.streams.permit(self.context.share()).await?;
        // An agent that cannot be followed can still be asked.
        let events = self.remote.subscribe(&handle.id).await.ok()?;
        Some(OpenStream::new(events, permit))
    }

    /// Tells what comes on a stream for as long as a look may take. None when there is something to ask the agent about:
    /// the task has stopped, or the stream has.
    async fn watched(&self, mut stream: OpenStream) -> Option<OpenStream> {
        let until = Instant::now() + WATCH;
        let mut told = 0;
        loop {
            let event = match timeout_at(until, stream.events.next()).await {
                Err(_) => return Some(stream),
                Ok(Ok(Some(event))) => event,
                Ok(Ok(None) | Err(_)) => return None,
            };
            let stops = |state: TaskState| state.is_terminal() || state.is_interrupted();
            if event.state().is_some_and(stops) {
                return None;
            }
            told += 1;
            if told <= PROGRESS_MAX {
                self.tell(&event);
            }
        }
    }

    /// Tells the agent what a person answered.
    async fn answer(&self, handle: TaskHandle, answer: &Answer) -> Result<Called, CallFailure> {
        let mut tried = 0;
        let task = loop {
            tried += 1;
            match self.remote.task(&handle.id).await {
                Ok(task) => break task,
                Err(RemoteError::NotSent(_) | RemoteError::Lost(_)) if tried < ATTEMPTS_MAX => {
                    sleep(BACKOFF * (1 << tried)).await;
                }
                Err(error) => return Err(self.failure(error)),
            }
        };
        let id = format!("{}.{}", self.context.call, handle.round + 1);
        let next = handle.after_answer(&task.status);
        if !task.status.state.is_interrupted() || has_message(&task, &id) {
            // It has read the answer before, or goes on without one.
            return self.came(task, next).await;
        }
        let part = match (answer.action, task.status.state) {
            (Action::Cancel, _) | (Action::Decline, TaskState::AuthRequired) => {
                return Err(self.given_up(&handle).await);
            }
            // The agent learns of a sign-in by itself.
            (Action::Accept, TaskState::AuthRequired) => return Ok(self.goes_on(&next)),
            (Action::Accept | Action::Decline, _) => question::reply(&task.status, answer),
        };
        let mut message = Message::new(id.as_str(), Role::User, vec![part]);
        message.task_id = Some(handle.id.clone());
        message.context_id = Some(handle.context.clone()).filter(|context| !context.is_empty());
        match self.sent(message).await {
            Ok((first, stream)) => self.first(first, stream, Some(next)).await,
            Err(lost @ RemoteError::Lost(_)) => match self.remote.task(&handle.id).await {
                Ok(task) if !task.status.state.is_interrupted() || has_message(&task, &id) => {
                    self.came(task, next).await
                }
                Ok(_) | Err(_) => Err(self.failure(lost)),
            },
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Nobody answers, so the task has no use any more.
    async fn given_up(&self, handle: &TaskHandle) -> CallFailure {
        self.cancel(handle).await;
        CallFailure::new(
            ErrorCode::Denied,
            "nobody gave the remote agent what it asked for, and its task was cancelled",
        )
    }

    async fn cancel(&self, handle: &TaskHandle) {
        // Best effort: the agent may have ended by itself, or be away.
        let _ = tokio::time::timeout(CANCEL_MAX, self.remote.cancel(&handle.id)).await;
    }

    /// Sends a message; again where it cannot have arrived, or where its id makes that harmless.
    async fn sent(&self, message: Message) -> Result<First, RemoteError> {
        let mut tried = 0;
        loop {
            tried += 1;
            let error = match self.send_once(&message).await {
                Ok(first) => return Ok(first),
                Err(error) => error,
            };
            let helps = match &error {
                RemoteError::NotSent(_) => true,
                RemoteError::Lost(_) => self.config.repeats,
                _ => false,
            };
            if !helps || tried >= ATTEMPTS_MAX {
                return Err(error);
            }
            self.context
                .tell("the remote agent cannot be reached; trying again in a moment");
            sleep(BACKOFF * (1 << (tried - 1))).await;
        }
    }

    async fn send_once(&self, message: &Message) -> Result<First, RemoteError> {
        let mut request = SendMessage::new(message.clone());
        if self.remote.endpoint.streams
            && let Some(permit) = self.streams.permit(self.context.share()).await
        {
            let mut events = self.remote.send_streaming(&request).await?;
            let first = events.next().await?;
            let first =
                first.ok_or_else(|| RemoteError::Lost("its stream ended before it said anything".into()))?;
            return Ok((first, Some(OpenStream::new(events, permit))));
        }
        request.configuration = Configuration {
            return_immediately: true,
            ..Configuration::default()
        };
        Ok((self.remote.send(&request).await?, None))
    }

    /// What the first event after a message comes to. The task that it names is stored before anything else happens.
    async fn first(
        &self,
        event: StreamResponse,
        stream: Option<OpenStream>,
        handle: Option<TaskHandle>,
    ) -> Result<Called, CallFailure> {
        let (id, context) = match &event {
            StreamResponse::Message(message) => return self.complete(message.parts.clone()).await,
            StreamResponse::Task(task) => (&task.id, &task.context_id),
            StreamResponse::StatusUpdate(update) => (&update.task_id, &update.context_id),
            StreamResponse::ArtifactUpdate(update) => (&update.task_id, &update.context_id),
        };
        let begun = || TaskHandle::new(self.context.call, self.remote.endpoint.clone(), id, context);
        let handle = match handle {
            Some(handle) => handle,
            None => begun().map_err(CallFailure::failed)?,
        };
        let stops = |state: TaskState| state.is_terminal() || state.is_interrupted();
        match (event.state().is_some_and(stops), event) {
            (true, StreamResponse::Task(task)) => self.came(task, handle).await,
            (true, _) => match self.remote.task(&handle.id).await {
                Ok(task) => self.came(task, handle).await,
                Err(error) => self.untold(error, &handle),
            },
            (false, event) => {
                self.tell(&event);
                if let Some(stream) = stream {
                    self.streams.keep(self.context.call, stream);
                }
                Ok(self.goes_on(&handle))
            }
        }
    }

    /// What a task comes to as it stands.
    async fn came(&self, task: Task, handle: TaskHandle) -> Result<Called, CallFailure> {
        let status = &task.status;
        match status.state {
            _ if is_under_way(status, &handle) => {
                self.tell_status(status);
                Ok(self.goes_on(&handle))
            }
            TaskState::InputRequired if handle.round >= ROUNDS_MAX => {
                self.cancel(&handle).await;
                let words =
                    format!("the remote agent asked for more {ROUNDS_MAX} times, and the call was given up");
                Err(CallFailure::failed(words))
            }
            TaskState::InputRequired => Ok(self.asks(&handle, question::input(status, handle.round))),
            TaskState::AuthRequired => match question::sign_in(status, handle.round) {
                Some(question) => Ok(self.asks(&handle, question)),
                None => {
                    self.cancel(&handle).await;
                    let words = question::words(status, "it does not say for what");
                    Err(CallFailure::unavailable(format!(
                        "the remote agent needs an authorization that it gives no page for, and its task was cancelled: {words}"
                    )))
                }
            },
            TaskState::Completed => self.complete(outcome::parts_of(task)).await,
            TaskState::Failed => Err(CallFailure::failed(format!(
                "the remote agent failed: {}",
                question::words(status, "it does not say why")
            ))),
            TaskState::Rejected => Err(CallFailure::failed(format!(
                "the remote agent rejected the task: {}",
                question::words(status, "it does not say why")
            ))),
            TaskState::Canceled => Err(CallFailure::failed(
                "the remote agent's task was cancelled at its end",
            )),
            TaskState::Unspecified | TaskState::Submitted | TaskState::Working => Ok(self.goes_on(&handle)),
        }
    }

    async fn complete(&self, parts: Vec<Part>) -> Result<Called, CallFailure> {
        drop(self.streams.take(self.context.call));
        let parts = parts.into_iter().map(|part| self.without_secrets(part)).collect();
        let output = outcome::output(parts, self.config, self.workspace, self.context).await?;
        Ok(Called::Output(output.into()))
    }

    fn goes_on(&self, handle: &TaskHandle) -> Called {
        let pause = match self.remote.endpoint.streams {
            true => Duration::ZERO,
            false => POLL,
        };
        Called::Delegated(Delegation {
            task: handle.text(),
            check_at: Some(self.clock.now().after(pause)),
            questions: Vec::new(),
        })
    }

    fn asks(&self, handle: &TaskHandle, question: Question) -> Called {
        Called::Delegated(Delegation {
            task: handle.text(),
            check_at: Some(self.clock.now().after(POLL_ASKED)),
            questions: vec![question],
        })
    }

    /// What a look comes to when the agent does not say how far the task is.
    fn untold(&self, error: RemoteError, handle: &TaskHandle) -> Result<Called, CallFailure> {
        if error.is_unknown_task() {
            return Err(CallFailure::new(
                ErrorCode::Interrupted,
                "the remote agent no longer knows the task of this call: what it had done by then is unknown",
            ));
        }
        let passes = match &error {
            RemoteError::NotSent(_) | RemoteError::Lost(_) => true,
            RemoteError::Told(error) => error.kind == toolgate_a2a::error::ErrorKind::Internal,
            RemoteError::NotPermitted(_) | RemoteError::Unauthorized(_) | RemoteError::Malformed(_) => false,
        };
        match passes {
            // The task goes on without us: what matters is whether it is there when the agent is back.
            true => Ok(Called::Delegated(Delegation::later(
                &handle.text(),
                self.clock.now(),
            ))),
            false => Err(self.failure(error)),
        }
    }

    fn failure(&self, error: RemoteError) -> CallFailure {
        let words = error.to_string();
        match error {
            RemoteError::NotSent(_) => CallFailure::unavailable(format!(
                "the remote agent cannot be reached, and the message was not sent: {words}"
            )),
            RemoteError::NotPermitted(_) => CallFailure::new(ErrorCode::PermissionDenied, words),
            RemoteError::Lost(_) => CallFailure::new(
                ErrorCode::Interrupted,
                format!("the message may have reached the remote agent, and what it did is unknown: {words}"),
            ),
            RemoteError::Unauthorized(_) => {
                let asked = match self.credentials.is_empty() {
                    true => "its card does not say which it wants".to_owned(),
                    false => format!("its card asks for {}", self.credentials.join(", ")),
                };
                CallFailure::unavailable(format!(
                    "the remote agent did not take the message, {words}; {asked}; the author of this tool sets them in \
                     \"headers\" of its execution"
                ))
            }
            RemoteError::Told(_) | RemoteError::Malformed(_) => {
                CallFailure::failed(format!("the remote agent gave no result: {words}"))
            }
        }
    }
}

fn is_under_way(status: &TaskStatus, handle: &TaskHandle) -> bool {
    match status.state {
        TaskState::Unspecified | TaskState::Submitted | TaskState::Working => true,
        TaskState::InputRequired | TaskState::AuthRequired => handle.is_answered(status),
        TaskState::Completed | TaskState::Failed | TaskState::Canceled | TaskState::Rejected => false,
    }
}

fn has_message(task: &Task, id: &str) -> bool {
    task.history.iter().any(|message| message.message_id == id)
}

/// The input as a message: `message` (or `prompt`) as text, everything else as JSON.
fn parts(input: Value, reads_json: bool) -> Vec<Part> {
    let Value::Object(mut members) = input else {
        return vec![Part::text(input.to_string())];
    };
    let mut parts = Vec::new();
    for name in ["message", "prompt"] {
        if parts.is_empty() && members.get(name).is_some_and(Value::is_string) {
            let text = members.remove(name);
            parts.push(Part::text(
                text.as_ref().and_then(Value::as_str).unwrap_or_default(),
            ));
        }
    }
    if !members.is_empty() || parts.is_empty() {
        let rest = Value::Object(members);
        parts.push(match reads_json {
            true => Part::data(rest),
            false => Part::text(rest.to_string()),
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_input_is_text_and_what_else_there_is_is_json() {
        let rest = json!({"unit": "C"});
        assert_eq!(parts(json!({"message": "Hi"}), true), [Part::text("Hi")]);
        assert_eq!(parts(json!({"prompt": "Hi"}), true), [Part::text("Hi")]);
        assert_eq!(
            parts(json!({"message": "Hi", "unit": "C"}), true),
            [Part::text("Hi"), Part::data(rest.clone())]
        );
        assert_eq!(parts(rest.clone(), true), [Part::data(rest)]);
        assert_eq!(
            parts(json!({"unit": "C"}), false),
            [Part::text(r#"{"unit":"C"}"#)]
        );
        assert_eq!(parts(json!({}), true), [Part::data(json!({}))]);
    }
}
