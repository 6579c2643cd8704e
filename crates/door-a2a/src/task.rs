//! A run as a task: the fold from its log to A2A's events, which are numbered from 1 and come out the same however often
//! the log is read. Streams, `GetTask`, lists and push notifications all tell what this says.

use std::collections::HashMap;

use toolgate_a2a::message::{Message, Role};
use toolgate_a2a::part::Part;
use toolgate_a2a::stream::{ArtifactUpdate, StatusUpdate, StreamResponse};
use toolgate_a2a::task::{Artifact, Task, TaskState, TaskStatus};
use toolgate_kernel::event::{EndReason, Entry, Event, RunFinish, Seq, Status};
use toolgate_kernel::id::{MessageId, RunId, SpaceId};
use toolgate_kernel::run::RunState;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::view;

use crate::conformance;
use crate::message::{Form, Origin, restored};
use crate::pause::{self, Asked, asked};

/// An event with its number, which is the `id:` on a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbered {
    /// Counted from 1 within the task, without a gap.
    pub number: u64,
    /// The event.
    pub event: StreamResponse,
}

/// A run as one reader sees it, folded from its log.
pub struct TaskFold {
    run: RunId,
    space: SpaceId,
    reader: Decider,
    state: RunState,
    number: u64,
    status: TaskStatus,
    artifacts: Vec<Artifact>,
    context: Option<String>,
    form: Form,
    /// Tools that the run calls something else than the client does.
    given_names: HashMap<String, String>,
    /// Whether it is a run of the conformance agent.
    is_scripted: bool,
}

impl TaskFold {
    /// A run of which nothing was read yet. `reader` is who the events are for: what it may not see is not in them.
    pub fn new(run: RunId, space: SpaceId, reader: Decider) -> Self {
        Self {
            run,
            space,
            reader,
            state: RunState::default(),
            number: 0,
            status: TaskStatus::of(TaskState::Submitted),
            artifacts: Vec::new(),
            context: None,
            form: Form::default(),
            given_names: HashMap::new(),
            is_scripted: false,
        }
    }

    /// Takes the next entry of the run's log, and gives the events that come of it.
    pub fn take(&mut self, entry: &Entry) -> Vec<Numbered> {
        let begins = self.number == 0;
        let mut events = Vec::new();
        for (seq, event) in entry
            .placed()
            .filter(|(seq, _)| *seq > self.state.seq())
            .collect::<Vec<_>>()
        {
            let reader = self.reader.clone();
            let Some(seen) = view(event, &reader) else {
                continue;
            };
            self.note(&seen);
            self.state.apply(&seen, seq, entry.time);
            if let Event::TextEnd(text) = &*seen {
                let part = match self.is_scripted {
                    true => conformance::part(&text.text),
                    false => Part::text(text.text.clone()),
                };
                let artifact = Artifact::new(text.id.to_string(), vec![part]);
                events.extend(self.put_artifact(artifact));
            }
        }
        let (state, asked) = self.now();
        if self.form == Form::Ag2 && state == TaskState::InputRequired {
            for call in calls(&asked) {
                if self
                    .artifacts
                    .iter()
                    .all(|known| known.artifact_id != call.call_id)
                {
                    events.extend(self.put_artifact(pause::ag2_artifact(call)));
                }
            }
        }
        let update = self.move_to(state, &asked, entry.time, begins);
        if begins {
            // Everything of the first entry is told by the task itself.
            self.number = 1;
            let event = StreamResponse::Task(self.task(None, true));
            return vec![Numbered { number: 1, event }];
        }
        events.extend(update);
        events
            .into_iter()
            .map(|event| {
                self.number += 1;
                Numbered {
                    number: self.number,
                    event,
                }
            })
            .collect()
    }

    /// The task as it stands: with the last `history` messages, all of them when it is none, and with its artifacts.
    pub fn task(&self, history: Option<u32>, artifacts: bool) -> Task {
        let (id, context) = (self.run.to_string(), self.context());
        let messages = self.state.messages();
        let kept = history.map_or(messages.len(), |history| history as usize);
        let messages = messages.iter().skip(messages.len().saturating_sub(kept));
        Task {
            history: messages
                .map(|record| restored(&record.message, &id, &context))
                .collect(),
            artifacts: match artifacts {
                true => self.artifacts.clone(),
                false => Vec::new(),
            },
            status: self.status.clone(),
            metadata: None,
            context_id: context,
            id,
        }
    }

    /// Number of the last event; 0 before the first.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// State of the task.
    pub fn task_state(&self) -> TaskState {
        self.status.state
    }

    /// Place of the last event of the log that was taken.
    pub fn seq(&self) -> Seq {
        self.state.seq()
    }

    /// What the log says of the run.
    pub(crate) fn state(&self) -> &RunState {
        &self.state
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn reader(&self) -> &Decider {
        &self.reader
    }

    /// Whether the run has taken this message.
    pub(crate) fn has(&self, message: MessageId) -> bool {
        self.state.message(message).is_some()
    }

    /// What the client calls the conversation.
    pub fn context(&self) -> String {
        self.context.clone().unwrap_or_else(|| self.space.to_string())
    }

    /// Whether a piece of a text may be shown before the text is complete.
    pub(crate) fn shows_pieces(&self, text: &str) -> bool {
        !(self.is_scripted && text.starts_with('{'))
    }

    /// A piece of an artifact that is still being written: it has no number, and the numbered event replaces it.
    pub(crate) fn chunk(&self, id: &str, text: String, append: bool) -> StreamResponse {
        StreamResponse::ArtifactUpdate(ArtifactUpdate {
            append,
            last_chunk: false,
            ..self.artifact_update(Artifact::new(id, vec![Part::text(text)]))
        })
    }

    /// Notes what the state does not keep.
    fn note(&mut self, event: &Event) {
        match event {
            Event::RunStart(start) => {
                self.is_scripted = conformance::is_scripted(&start.agent);
                let renamed = start.client_tools.iter().filter_map(|tool| {
                    let given = tool.given_name.as_ref()?;
                    Some((tool.name.to_string(), given.to_string()))
                });
                self.given_names.extend(renamed);
            }
            Event::Said(said) => {
                if let Some(origin) = Origin::read(&said.message) {
                    self.context = origin.context_id.or(self.context.take());
                    self.form = origin.form.unwrap_or(self.form);
                }
            }
            _ => {}
        }
    }

    /// Where the task is, and what it asks for.
    fn now(&self) -> (TaskState, Vec<Asked>) {
        if let Some(end) = self.state.end() {
            return (final_state(end), Vec::new());
        }
        match self.state.status() {
            Status::Queued => (TaskState::Submitted, Vec::new()),
            status if status.asks() => {
                let given = |name: &str| {
                    self.given_names
                        .get(name)
                        .cloned()
                        .unwrap_or_else(|| name.to_owned())
                };
                let asked = asked(&self.state, &self.reader, given);
                // A run whose child was just answered says a moment later that it goes on.
                match asked.is_empty() {
                    true => (TaskState::Working, asked),
                    false => (TaskState::InputRequired, asked),
                }
            }
            _ => (TaskState::Working, Vec::new()),
        }
    }

    /// Changes the status; gives the event when it is another one.
    fn move_to(
        &mut self,
        state: TaskState,
        asked: &[Asked],
        time: Time,
        begins: bool,
    ) -> Option<StreamResponse> {
        let id = format!("{}-{}", self.run, self.number + 1);
        let message = match (state, self.state.end()) {
            (TaskState::InputRequired, _) => pause::message(id, asked, self.form),
            (TaskState::Failed, Some(end)) => Some(Message::new(id, Role::Agent, vec![why(end)])),
            _ => None,
        };
        let parts = |message: &Option<Message>| message.as_ref().map(|message| message.parts.clone());
        let is_same = self.status.state == state && parts(&self.status.message) == parts(&message);
        if is_same && !begins {
            return None;
        }
        let message = message.map(|message| Message {
            task_id: Some(self.run.to_string()),
            context_id: Some(self.context()),
            ..message
        });
        self.status = TaskStatus {
            state,
            message,
            timestamp: Some(time.to_string()),
        };
        Some(StreamResponse::StatusUpdate(StatusUpdate {
            task_id: self.run.to_string(),
            context_id: self.context(),
            status: self.status.clone(),
            metadata: None,
            is_final: state.is_terminal(),
        }))
    }

    fn put_artifact(&mut self, artifact: Artifact) -> Option<StreamResponse> {
        let update = self.artifact_update(artifact.clone());
        let known = self
            .artifacts
            .iter_mut()
            .find(|known| known.artifact_id == artifact.artifact_id);
        match known {
            Some(known) => *known = artifact,
            None => self.artifacts.push(artifact),
        }
        Some(StreamResponse::ArtifactUpdate(update))
    }

    fn artifact_update(&self, artifact: Artifact) -> ArtifactUpdate {
        ArtifactUpdate {
            task_id: self.run.to_string(),
            context_id: self.context(),
            artifact,
            append: false,
            last_chunk: true,
            metadata: None,
        }
    }
}

fn calls(asked: &[Asked]) -> impl Iterator<Item = &toolgate_a2a::client_tools::ToolCall> {
    asked.iter().filter_map(|asked| match asked {
        Asked::Call(call) => Some(call),
        Asked::Approval { .. } | Asked::Question { .. } | Asked::Others(_) => None,
    })
}

fn final_state(end: &RunFinish) -> TaskState {
    match end.status {
        // The model's vendor would not answer.
        Status::Completed if end.reason == EndReason::ContentFilter => TaskState::Rejected,
        Status::Completed => TaskState::Completed,
        Status::Cancelled => TaskState::Canceled,
        Status::Failed
        | Status::Queued
        | Status::Running
        | Status::WaitingTool
        | Status::WaitingApproval
        | Status::WaitingTime => TaskState::Failed,
    }
}

/// Why a run failed: what backends may know, and words without detail for others.
fn why(end: &RunFinish) -> Part {
    let words = match (&end.error, end.reason) {
        (Some(error), _) => error.clone(),
        (None, EndReason::ModelError) => "The model could not be asked.".to_owned(),
        (None, EndReason::Limit | EndReason::MaxSteps) => "A limit of the task was reached.".to_owned(),
        (None, EndReason::InvalidOutput) => "The answer does not match its schema.".to_owned(),
        (None, EndReason::ToolError) => "The call gave no output.".to_owned(),
        (None, EndReason::Stop | EndReason::Length | EndReason::ContentFilter | EndReason::Cancelled) => {
            "The task failed.".to_owned()
        }
    };
    Part::text(words)
}
