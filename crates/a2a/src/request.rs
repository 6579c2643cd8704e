//! What the operations are asked with.

use serde_json::Value;

use crate::json::{Invalid, Members, Object, Violations, parse};
use crate::message::Message;
use crate::push::PushConfig;
use crate::task::TaskState;
use crate::{Dialect, Metadata};

/// `SendMessage` and `SendStreamingMessage`.
#[derive(Clone, PartialEq, Debug)]
pub struct SendMessage {
    /// The message.
    pub message: Message,
    /// How to answer it.
    pub configuration: Configuration,
    /// What extensions say of the request.
    pub metadata: Option<Metadata>,
}

/// How a message is to be answered.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Configuration {
    /// Media types that the client reads; empty for any.
    pub accepted_output_modes: Vec<String>,
    /// Where changes of the task are posted to.
    pub push: Option<PushConfig>,
    /// How many messages of the history to answer with; none for the server's choice.
    pub history_length: Option<u32>,
    /// Answer at once instead of waiting for the task to end or to pause (`blocking: false` in 0.3).
    pub return_immediately: bool,
}

/// `GetTask`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetTask {
    /// The task.
    pub id: String,
    /// How many messages of the history to answer with; none for the server's choice.
    pub history_length: Option<u32>,
}

/// `ListTasks`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListTasks {
    /// Only tasks of this conversation.
    pub context_id: Option<String>,
    /// Only tasks in this state.
    pub status: Option<TaskState>,
    /// How many tasks to answer with.
    pub page_size: Option<i32>,
    /// Where the last page ended.
    pub page_token: Option<String>,
    /// How many messages of each history to answer with.
    pub history_length: Option<u32>,
    /// Only tasks whose status is at least as new as this moment, as RFC 3339.
    pub status_timestamp_after: Option<String>,
    /// Answer with the artifacts too.
    pub include_artifacts: bool,
}

/// A task by its id: `CancelTask`, `SubscribeToTask`, and of 0.3 what names only a task.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskById {
    /// The task.
    pub id: String,
    /// What extensions say of the request.
    pub metadata: Option<Metadata>,
}

/// One push notification configuration, or all of a task: `Get`, `List` and `DeleteTaskPushNotificationConfig`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushConfigOf {
    /// The task.
    pub task_id: String,
    /// The configuration.
    pub id: Option<String>,
}

impl SendMessage {
    /// A message with nothing said of how to answer it.
    pub fn new(message: Message) -> Self {
        Self {
            message,
            configuration: Configuration::default(),
            metadata: None,
        }
    }

    /// Reads the parameters.
    pub fn from_json(value: Value, dialect: Dialect) -> Result<Self, Invalid> {
        parse(value, "", |value, at, bad| {
            let mut object = Object::new(value, at, bad);
            let message = object.need("message", |value, at, bad| Message::read(value, at, bad, dialect));
            let configuration = object.inner("configuration", |value, at, bad| {
                Configuration::read(value, at, bad, dialect)
            });
            let metadata = object.metadata("metadata");
            message.map(|message| Self {
                message,
                configuration: configuration.unwrap_or_default(),
                metadata,
            })
        })
        .map(|read| read.expect("a request without problems has a message"))
    }

    /// Writes the parameters.
    pub fn to_json(&self, dialect: Dialect) -> Value {
        let configuration = self.configuration.to_json(dialect);
        let is_empty = configuration
            .as_object()
            .is_some_and(|members| members.is_empty());
        Members::new()
            .with("message", self.message.to_json(dialect))
            .with_some("configuration", (!is_empty).then_some(configuration))
            .with_metadata(self.metadata.as_ref())
            .value()
    }
}

impl Configuration {
    fn read(value: Value, at: String, bad: &Violations, dialect: Dialect) -> Self {
        let mut object = Object::new(value, at, bad);
        let push = match dialect {
            Dialect::V1 => "taskPushNotificationConfig",
            Dialect::V03 => "pushNotificationConfig",
        };
        let return_immediately = match dialect {
            Dialect::V1 => object.flag("returnImmediately") == Some(true),
            Dialect::V03 => object.flag("blocking") == Some(false),
        };
        Self {
            accepted_output_modes: object.texts("acceptedOutputModes"),
            push: object.inner(push, |value, at, bad| PushConfig::read(value, at, bad, dialect)),
            history_length: object.count("historyLength"),
            return_immediately,
        }
    }

    fn to_json(&self, dialect: Dialect) -> Value {
        let members = Members::new()
            .with_list("acceptedOutputModes", self.accepted_output_modes.iter().cloned())
            .with_some("historyLength", self.history_length);
        let push = self.push.as_ref().map(|push| push.within_configuration(dialect));
        match dialect {
            Dialect::V1 => members
                .with_some("taskPushNotificationConfig", push)
                .with_some("returnImmediately", self.return_immediately.then_some(true)),
            Dialect::V03 => members
                .with_some("pushNotificationConfig", push)
                .with_some("blocking", self.return_immediately.then_some(false)),
        }
        .value()
    }
}

impl GetTask {
    /// Reads the parameters; they are the same in both dialects.
    pub fn from_json(value: Value) -> Result<Self, Invalid> {
        parse(value, "", |value, at, bad| {
            let mut object = Object::new(value, at, bad);
            Self {
                id: object.need_text("id"),
                history_length: object.count("historyLength"),
            }
        })
    }

    /// Writes the parameters.
    pub fn to_json(&self) -> Value {
        Members::new()
            .with("id", self.id.as_str())
            .with_some("historyLength", self.history_length)
            .value()
    }
}

impl ListTasks {
    /// Reads the parameters, which 1.0 alone has.
    pub fn from_json(value: Value) -> Result<Self, Invalid> {
        parse(value, "", |value, at, bad| {
            let mut object = Object::new(value, at, bad);
            let status = object.inner("status", |value, at, bad| {
                TaskState::read(value, at, bad, Dialect::V1)
            });
            Self {
                context_id: object.text("contextId").filter(|id| !id.is_empty()),
                status: status.filter(|status| *status != TaskState::Unspecified),
                page_size: object.integer("pageSize"),
                page_token: object.text("pageToken").filter(|token| !token.is_empty()),
                history_length: object.count("historyLength"),
                status_timestamp_after: object.text("statusTimestampAfter"),
                include_artifacts: object.flag("includeArtifacts").unwrap_or_default(),
            }
        })
    }

    /// Writes the parameters.
    pub fn to_json(&self) -> Value {
        let status = self.status.map(|status| status.name(Dialect::V1));
        Members::new()
            .with_some("contextId", self.context_id.as_deref())
            .with_some("status", status)
            .with_some("pageSize", self.page_size)
            .with_some("pageToken", self.page_token.as_deref())
            .with_some("historyLength", self.history_length)
            .with_some("statusTimestampAfter", self.status_timestamp_after.as_deref())
            .with_some("includeArtifacts", self.include_artifacts.then_some(true))
            .value()
    }
}

impl TaskById {
    /// Reads the parameters; they are the same in both dialects.
    pub fn from_json(value: Value) -> Result<Self, Invalid> {
        parse(value, "", |value, at, bad| {
            let mut object = Object::new(value, at, bad);
            Self {
                id: object.need_text("id"),
                metadata: object.metadata("metadata"),
            }
        })
    }

    /// Writes the parameters.
    pub fn to_json(&self) -> Value {
        Members::new()
            .with("id", self.id.as_str())
            .with_metadata(self.metadata.as_ref())
            .value()
    }
}

impl PushConfigOf {
    /// Reads the parameters: `taskId` and `id` in 1.0, `id` and `pushNotificationConfigId` in 0.3.
    pub fn from_json(value: Value, dialect: Dialect) -> Result<Self, Invalid> {
        let (task, config) = Self::names(dialect);
        parse(value, "", |value, at, bad| {
            let mut object = Object::new(value, at, bad);
            Self {
                task_id: object.need_text(task),
                id: object.text(config).filter(|id| !id.is_empty()),
            }
        })
    }

    /// Writes the parameters.
    pub fn to_json(&self, dialect: Dialect) -> Value {
        let (task, config) = Self::names(dialect);
        Members::new()
            .with(task, self.task_id.as_str())
            .with_some(config, self.id.as_deref())
            .value()
    }

    fn names(dialect: Dialect) -> (&'static str, &'static str) {
        match dialect {
            Dialect::V1 => ("taskId", "id"),
            Dialect::V03 => ("id", "pushNotificationConfigId"),
        }
    }
}
