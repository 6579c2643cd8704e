//! What requests and events say of a tool.

mod approvers;
mod voice;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::name::ToolName;

pub use approvers::{ApprovalTerms, Approvers, ConsentRef, Decider, Remember};
pub use voice::{Filled, Spoken, VARIABLE_CHARS_MAX, VOICE_CHARS_MAX, Values, Voice, VoiceText, in_output};

/// How long a client may take by default.
pub const CLIENT_DEADLINE: Duration = Duration::from_secs(600);
/// Longest time-out a definition may ask for.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// Where a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Inside the gateway.
    Server,
    /// In a sandboxed plugin.
    Plugin,
    /// On an MCP server.
    Mcp,
    /// On the client that holds the conversation.
    Client,
}

/// A definition that a caller brought with its request, kept in the run's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientTool {
    /// What the model calls it.
    pub name: ToolName,
    /// Description that the model is given.
    pub description: String,
    /// JSON Schema of the input.
    pub parameters: Json,
    /// JSON Schema of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// Deadline of an answer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Its author's number for this state of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Set when it should not be used any more; the words travel with the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// What the caller calls it, when the run had to call it something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_name: Option<ToolName>,
}
