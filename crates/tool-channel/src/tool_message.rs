//! A tool event as it travels on the channel.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::Payload;

/// What happened to a tool, or what a client wants to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ToolEventType {
    /// The agent proposes a tool, or offers a call to clients that can execute it.
    ToolProposed,
    /// Somebody accepts a proposal.
    ToolAccepted,
    /// Somebody rejects a proposal, or gives a claimed call back.
    ToolRejected,
    /// The tool runs, or a client claims the call and tells how far it is.
    ToolExecuting,
    /// The tool gave an output.
    ToolCompleted,
    /// The tool failed.
    ToolError,
}

impl ToolEventType {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::ToolProposed,
        Self::ToolAccepted,
        Self::ToolRejected,
        Self::ToolExecuting,
        Self::ToolCompleted,
        Self::ToolError,
    ];

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolProposed => "TOOL_PROPOSED",
            Self::ToolAccepted => "TOOL_ACCEPTED",
            Self::ToolRejected => "TOOL_REJECTED",
            Self::ToolExecuting => "TOOL_EXECUTING",
            Self::ToolCompleted => "TOOL_COMPLETED",
            Self::ToolError => "TOOL_ERROR",
        }
    }
    /// The type of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// A tool event, in either direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolMessage {
    /// What happened.
    #[serde(rename = "type")]
    pub kind: ToolEventType,
    /// Name of the tool.
    pub tool_id: String,
    /// What there is to know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// When, in milliseconds since 1970.
    pub timestamp: u64,
    /// From a client: its name for this message; the answer repeats it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// From the gateway: the place of the event in the space, to come back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// A message that is made now.
pub fn create_tool_message(
    kind: ToolEventType,
    tool_id: impl Into<String>,
    payload: Option<Payload>,
) -> ToolMessage {
    // A clock before 1970 gives the beginning of time rather than a panic.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ToolMessage {
        kind,
        tool_id: tool_id.into(),
        payload,
        timestamp: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        id: None,
        seq: None,
    }
}

/// The message as JSON text.
pub fn serialize_message(message: &ToolMessage) -> String {
    serde_json::to_string(message).expect("a message has text keys")
}
