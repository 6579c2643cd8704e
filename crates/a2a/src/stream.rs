//! What a stream carries, what a message is answered with, and what a push notification holds.

use serde_json::Value;

use crate::json::{Invalid, Members, Object, Violations, parse};
use crate::message::{Message, expect_kind};
use crate::task::{Artifact, Task, TaskState, TaskStatus};
use crate::{Dialect, Metadata};

/// One event of a stream; also the body of a push notification. A response to `SendMessage` is a task or a message.
#[derive(Clone, PartialEq, Debug)]
pub enum StreamResponse {
    /// The task as it is now.
    Task(Task),
    /// An answer without a task.
    Message(Message),
    /// The task's status has changed.
    StatusUpdate(StatusUpdate),
    /// An artifact was made or has grown.
    ArtifactUpdate(ArtifactUpdate),
}

/// A change of a task's status.
#[derive(Clone, PartialEq, Debug)]
pub struct StatusUpdate {
    /// The task.
    pub task_id: String,
    /// Its conversation.
    pub context_id: String,
    /// Its status from now on.
    pub status: TaskStatus,
    /// What extensions say of the change.
    pub metadata: Option<Metadata>,
    /// Of 0.3: no event follows on this stream. 1.0 closes the stream instead and has no such member.
    pub is_final: bool,
}

/// A new artifact, or a piece of one.
#[derive(Clone, PartialEq, Debug)]
pub struct ArtifactUpdate {
    /// The task.
    pub task_id: String,
    /// Its conversation.
    pub context_id: String,
    /// The artifact, or the parts that come behind those it has.
    pub artifact: Artifact,
    /// The parts are appended to the artifact of the same id; otherwise they replace it.
    pub append: bool,
    /// The artifact is complete.
    pub last_chunk: bool,
    /// What extensions say of the change.
    pub metadata: Option<Metadata>,
}

impl StreamResponse {
    /// Reads an event. In 0.3 it is told by its `kind`, in 1.0 by the one member of the wrapper.
    pub fn from_json(value: Value, dialect: Dialect) -> Result<Self, Invalid> {
        let read = parse(value, "", |value, at, bad| match dialect {
            Dialect::V1 => Self::read_v1(value, at, bad),
            Dialect::V03 => Self::read_v03(value, at, bad),
        })?;
        Ok(read.expect("an event without problems was read"))
    }

    /// Writes the event.
    pub fn to_json(&self, dialect: Dialect) -> Value {
        let (name, value) = match self {
            Self::Task(task) => ("task", task.to_json(dialect)),
            Self::Message(message) => ("message", message.to_json(dialect)),
            Self::StatusUpdate(update) => ("statusUpdate", update.to_json(dialect)),
            Self::ArtifactUpdate(update) => ("artifactUpdate", update.to_json(dialect)),
        };
        match dialect {
            Dialect::V1 => Members::new().with(name, value).value(),
            Dialect::V03 => value,
        }
    }

    /// Task that the event is about; none for a message outside of tasks.
    pub fn task_id(&self) -> Option<&str> {
        match self {
            Self::Task(task) => Some(&task.id),
            Self::Message(message) => message.task_id.as_deref(),
            Self::StatusUpdate(update) => Some(&update.task_id),
            Self::ArtifactUpdate(update) => Some(&update.task_id),
        }
    }

    /// State of the task after this event, where the event tells it.
    pub fn state(&self) -> Option<TaskState> {
        match self {
            Self::Task(task) => Some(task.status.state),
            Self::StatusUpdate(update) => Some(update.status.state),
            Self::Message(_) | Self::ArtifactUpdate(_) => None,
        }
    }

    fn read_v1(value: Value, at: String, bad: &Violations) -> Option<Self> {
        let mut object = Object::new(value, at, bad);
        let dialect = Dialect::V1;
        let task = object.inner("task", |value, at, bad| Task::read(value, at, bad, dialect));
        let message = object.inner("message", |value, at, bad| Message::read(value, at, bad, dialect));
        let status = object.inner("statusUpdate", |value, at, bad| {
            StatusUpdate::read(value, at, bad, dialect)
        });
        let artifact = object.inner("artifactUpdate", |value, at, bad| {
            ArtifactUpdate::read(value, at, bad, dialect)
        });
        let found = [
            task.map(Self::Task),
            message.map(Self::Message),
            status.map(Self::StatusUpdate),
            artifact.map(Self::ArtifactUpdate),
        ];
        let mut found = found.into_iter().flatten();
        let (first, second) = (found.next(), found.next());
        if first.is_none() || second.is_some() {
            object.bad_here("must hold exactly one of task, message, statusUpdate and artifactUpdate");
        }
        first
    }

    fn read_v03(value: Value, at: String, bad: &Violations) -> Option<Self> {
        let dialect = Dialect::V03;
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
        Some(match kind {
            "task" => Self::Task(Task::read(value, at, bad, dialect)),
            "message" => Self::Message(Message::read(value, at, bad, dialect)),
            "status-update" => Self::StatusUpdate(StatusUpdate::read(value, at, bad, dialect)),
            "artifact-update" => Self::ArtifactUpdate(ArtifactUpdate::read(value, at, bad, dialect)),
            _ => {
                bad.add("kind", "must be task, message, status-update or artifact-update");
                return None;
            }
        })
    }
}

impl StatusUpdate {
    fn to_json(&self, dialect: Dialect) -> Value {
        let (kind, is_final) = match dialect {
            Dialect::V1 => (None, None),
            Dialect::V03 => (Some("status-update"), Some(self.is_final)),
        };
        Members::new()
            .with_some("kind", kind)
            .with("taskId", self.task_id.as_str())
            .with("contextId", self.context_id.as_str())
            .with("status", self.status.to_json(dialect))
            .with_some("final", is_final)
            .with_metadata(self.metadata.as_ref())
            .value()
    }

    fn read(value: Value, at: String, bad: &Violations, dialect: Dialect) -> Self {
        let mut object = Object::new(value, at, bad);
        expect_kind(&mut object, dialect, "status-update");
        let status = object.need("status", |value, at, bad| {
            TaskStatus::read(value, at, bad, dialect)
        });
        Self {
            task_id: object.need_text("taskId"),
            context_id: object.text("contextId").unwrap_or_default(),
            status: status.unwrap_or(TaskStatus::of(TaskState::Unspecified)),
            metadata: object.metadata("metadata"),
            is_final: dialect == Dialect::V03 && object.flag("final") == Some(true),
        }
    }
}

impl ArtifactUpdate {
    fn to_json(&self, dialect: Dialect) -> Value {
        let kind = (dialect == Dialect::V03).then_some("artifact-update");
        Members::new()
            .with_some("kind", kind)
            .with("taskId", self.task_id.as_str())
            .with("contextId", self.context_id.as_str())
            .with("artifact", self.artifact.to_json(dialect))
            .with_some("append", self.append.then_some(true))
            .with_some("lastChunk", self.last_chunk.then_some(true))
            .with_metadata(self.metadata.as_ref())
            .value()
    }

    fn read(value: Value, at: String, bad: &Violations, dialect: Dialect) -> Self {
        let mut object = Object::new(value, at, bad);
        expect_kind(&mut object, dialect, "artifact-update");
        let artifact = object.need("artifact", |value, at, bad| {
            Artifact::read(value, at, bad, dialect)
        });
        Self {
            task_id: object.need_text("taskId"),
            context_id: object.text("contextId").unwrap_or_default(),
            artifact: artifact.unwrap_or_else(|| Artifact::new("", Vec::new())),
            append: object.flag("append").unwrap_or_default(),
            last_chunk: object.flag("lastChunk").unwrap_or_default(),
            metadata: object.metadata("metadata"),
        }
    }
}
