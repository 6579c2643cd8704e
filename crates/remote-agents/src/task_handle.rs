//! How the task of a remote agent is found again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolgate_a2a::task::TaskStatus;
use toolgate_kernel::id::CallId;

use crate::endpoint::Endpoint;

/// Longest id of a task or a conversation that is kept.
const ID_BYTES_MAX: usize = 1_024;

/// A task of a remote agent. Stored with the run as an opaque text: a look at the task gives the same one back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskHandle {
    /// The call that it was begun for.
    pub call: CallId,
    /// Where it was begun.
    pub endpoint: Endpoint,
    pub id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// How often the agent was answered.
    pub round: u32,
    /// The status that was answered last. An agent that still shows it has not read the answer yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<String>,
}

impl TaskHandle {
    /// A task that was just begun. The error says why it cannot be kept.
    pub fn new(call: CallId, endpoint: Endpoint, id: &str, context: &str) -> Result<Self, String> {
        if id.is_empty() || id.len() > ID_BYTES_MAX || context.len() > ID_BYTES_MAX {
            return Err(format!(
                "it gave a task whose id has no bytes, or more than {ID_BYTES_MAX}"
            ));
        }
        Ok(Self {
            call,
            endpoint,
            id: id.to_owned(),
            context: context.to_owned(),
            round: 0,
            answered: None,
        })
    }

    /// As the engine keeps it.
    pub fn text(&self) -> Arc<str> {
        serde_json::to_string(self).expect("a handle is JSON").into()
    }

    /// From what the engine kept.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The same task, after the question in `status` was answered.
    pub fn after_answer(&self, status: &TaskStatus) -> Self {
        Self {
            round: self.round + 1,
            answered: mark(status),
            ..self.clone()
        }
    }

    /// Whether `status` is the one that was answered last.
    pub fn is_answered(&self, status: &TaskStatus) -> bool {
        self.answered.is_some() && self.answered == mark(status)
    }
}

/// What tells a status from an earlier one of the same state; none when it says nothing of itself.
fn mark(status: &TaskStatus) -> Option<String> {
    let message = status.message.as_ref().map(|message| message.message_id.as_str());
    match (message, &status.timestamp) {
        (None, None) => None,
        (message, timestamp) => {
            let mark = format!(
                "{} {}",
                message.unwrap_or_default(),
                timestamp.as_deref().unwrap_or_default()
            );
            Some(crate::card::cut(&mark, ID_BYTES_MAX / 4))
        }
    }
}
