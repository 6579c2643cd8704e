//! Tasks: their status, their artifacts, their history.

use serde_json::Value;

use crate::json::{Invalid, Members, Object, Violations, kind, parse};
use crate::message::{Message, expect_kind, read_parts};
use crate::part::Part;
use crate::{Dialect, Metadata};

/// Where a task is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TaskState {
    /// Nothing is known of it (`unknown` in 0.3).
    Unspecified,
    /// Accepted, not begun.
    Submitted,
    /// Under way.
    Working,
    /// Interrupted: the client owes something.
    InputRequired,
    /// Interrupted: the client must sign in somewhere.
    AuthRequired,
    /// Ended well.
    Completed,
    /// Ended by an error.
    Failed,
    /// Ended by the client.
    Canceled,
    /// The agent declined it.
    Rejected,
}

/// Every state.
pub const TASK_STATES: [TaskState; 9] = [
    TaskState::Unspecified,
    TaskState::Submitted,
    TaskState::Working,
    TaskState::InputRequired,
    TaskState::AuthRequired,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Canceled,
    TaskState::Rejected,
];

impl TaskState {
    /// Whether nothing can happen to the task any more.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected
        )
    }

    /// Whether the task waits for its client.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// The state's name on the wire.
    pub fn name(self, dialect: Dialect) -> &'static str {
        let (v1, v03) = match self {
            Self::Unspecified => ("TASK_STATE_UNSPECIFIED", "unknown"),
            Self::Submitted => ("TASK_STATE_SUBMITTED", "submitted"),
            Self::Working => ("TASK_STATE_WORKING", "working"),
            Self::InputRequired => ("TASK_STATE_INPUT_REQUIRED", "input-required"),
            Self::AuthRequired => ("TASK_STATE_AUTH_REQUIRED", "auth-required"),
            Self::Completed => ("TASK_STATE_COMPLETED", "completed"),
            Self::Failed => ("TASK_STATE_FAILED", "failed"),
            Self::Canceled => ("TASK_STATE_CANCELED", "canceled"),
            Self::Rejected => ("TASK_STATE_REJECTED", "rejected"),
        };
        match dialect {
            Dialect::V1 => v1,
            Dialect::V03 => v03,
        }
    }

    /// The state of that name.
    pub fn named(name: &str, dialect: Dialect) -> Option<Self> {
        TASK_STATES.into_iter().find(|state| state.name(dialect) == name)
    }

    pub(crate) fn read(value: Value, at: String, bad: &Violations, dialect: Dialect) -> Self {
        let state = value.as_str().and_then(|name| Self::named(name, dialect));
        state.unwrap_or_else(|| {
            let names = TASK_STATES.map(|state| state.name(dialect)).join(", ");
            let seen = match &value {
                Value::String(name) => format!("{:?}", name.chars().take(64).collect::<String>()),
                other => kind(other).to_owned(),
            };
            bad.add(at, format!("must be one of {names}, got {seen}"));
            Self::Unspecified
        })
    }
}

/// A task's status at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskStatus {
    /// Where the task is.
    pub state: TaskState,
    /// What the agent says of it.
    pub message: Option<Message>,
    /// Since when, as RFC 3339.
    pub timestamp: Option<String>,
}

/// What a task has made.
#[derive(Clone, PartialEq, Debug)]
pub struct Artifact {
    /// Its id within the task.
    pub artifact_id: String,
    /// A name for people.
    pub name: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// What it holds. Never empty in an artifact that was read.
    pub parts: Vec<Part>,
    /// What extensions say of it.
    pub metadata: Option<Metadata>,
    /// Extensions that it uses, by URI.
    pub extensions: Vec<String>,
}

/// A task.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    /// Its id, made by the server.
    pub id: String,
    /// Conversation that it belongs to.
    pub context_id: String,
    /// Where it is.
    pub status: TaskStatus,
    /// What it has made. Empty is left out.
    pub artifacts: Vec<Artifact>,
    /// What was said. Empty is left out.
    pub history: Vec<Message>,
    /// What extensions say of it.
    pub metadata: Option<Metadata>,
}

impl TaskStatus {
    /// A status without a message.
    pub fn of(state: TaskState) -> Self {
        Self {
            state,
            message: None,
            timestamp: None,
        }
    }

    /// Writes the status.
    pub fn to_json(&self, dialect: Dialect) -> Value {
        let message = self.message.as_ref().map(|message| message.to_json(dialect));
        Members::new()
            .with("state", self.state.name(dialect))
            .with_some("message", message)
            .with_some("timestamp", self.timestamp.as_deref())
            .value()
    }

    pub(crate) fn read(value: Value, at: String, bad: &Violations, dialect: Dialect) -> Self {
        let mut object = Object::new(value, at, bad);
        let state = object.need("state", |value, at, bad| TaskState::read(value, at, bad, dialect));
        Self {
            state: state.unwrap_or(TaskState::Unspecified),
            message: object.inner("message", |value, at, bad| Message::read(value, at, bad, dialect)),
            timestamp: object.text("timestamp"),
        }
    }
}

impl Artifact {
    /// An artifact that holds `parts`.
    pub fn new(artifact_id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            artifact_id: artifact_id.into(),
            name: None,
            description: None,
            parts,
            metadata: None,
            extensions: Vec::new(),
        }
    }

    /// Writes the artifact.
    pub fn to_json(&self, dialect: Dialect) -> Value {
        let parts = self.parts.iter().map(|part| part.to_json(dialect));
        Members::new()
            .with("artifactId", self.artifact_id.as_str())
            .with_some("name", self.name.as_deref())
            .with_some("description", self.description.as_deref())
            .with("parts", parts.collect::<Vec<_>>())
            .with_metadata(self.metadata.as_ref())
            .with_list("extensions", self.extensions.iter().cloned())
            .value()
    }

    pub(crate) fn read(value: Value, at: String, bad: &Violations, dialect: Dialect) -> Self {
        let mut object = Object::new(value, at, bad);
        Self {
            artifact_id: object.need_text("artifactId"),
            name: object.text("name"),
            description: object.text("description"),
            parts: read_parts(&mut object, dialect),
            metadata: object.metadata("metadata"),
            extensions: object.texts("extensions"),
        }
    }
}

impl Task {
    /// Reads a task.
    pub fn from_json(value: Value, dialect: Dialect) -> Result<Self, Invalid> {
        parse(value, "", |value, at, bad| Self::read(value, at, bad, dialect))
    }

    /// Writes the task.
    pub fn to_json(&self, dialect: Dialect) -> Value {
        let members = match dialect {
            Dialect::V1 => Members::new(),
            Dialect::V03 => Members::new().with("kind", "task"),
        };
        let artifacts = self.artifacts.iter().map(|artifact| artifact.to_json(dialect));
        members
            .with("id", self.id.as_str())
            .with("contextId", self.context_id.as_str())
            .with("status", self.status.to_json(dialect))
            .with_list("artifacts", artifacts)
            .with_list(
                "history",
                self.history.iter().map(|message| message.to_json(dialect)),
            )
            .with_metadata(self.metadata.as_ref())
            .value()
    }

    pub(crate) fn read(value: Value, at: String, bad: &Violations, dialect: Dialect) -> Self {
        let mut object = Object::new(value, at, bad);
        expect_kind(&mut object, dialect, "task");
        let status = object.need("status", |value, at, bad| {
            TaskStatus::read(value, at, bad, dialect)
        });
        Self {
            id: object.need_text("id"),
            // Absent on servers that keep no conversations.
            context_id: object.text("contextId").unwrap_or_default(),
            status: status.unwrap_or(TaskStatus::of(TaskState::Unspecified)),
            artifacts: object.list("artifacts", |value, at, bad| {
                Some(Artifact::read(value, at, bad, dialect))
            }),
            history: object.list("history", |value, at, bad| {
                Some(Message::read(value, at, bad, dialect))
            }),
            metadata: object.metadata("metadata"),
        }
    }
}
