//! A conversation as a model sees it, independent of vendors.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::CallId;
use crate::json::Json;
use crate::message::Part;
use crate::name::ToolName;

/// One turn of the conversation, as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// Message of a user or another agent.
    User(Vec<Part>),
    /// Reply of the model. Its calls are followed by their results in the next turn.
    Assistant(Vec<Said>),
    /// The results of the calls of the turn before, in call order.
    Results(Vec<CallResult>),
}

/// A part of the model's reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Text.
    Text(String),
    /// Reasoning, sent back to a vendor that signs it.
    Reasoning {
        /// Text of the reasoning.
        text: String,
        /// The vendor's signature.
        signature: Option<String>,
    },
    /// A tool call.
    Call {
        /// Id that the gateway assigned; at most 40 characters of `[a-z0-9_]`.
        id: CallId,
        /// Tool name that the model used.
        name: Arc<str>,
        /// Arguments: an object, unless the model wrote something else.
        input: Json,
        /// The vendor's signature of the call, sent back with it.
        signature: Option<String>,
    },
}

/// Result of a call, as the model reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// Id of the call.
    pub id: CallId,
    /// Tool name that the model used.
    pub name: Arc<str>,
    /// The output, `{"output", "warning"}` of a deprecated tool, or the text of an error.
    pub output: Json,
    /// Whether it is an error.
    pub is_error: bool,
}

/// A tool definition that is sent to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// Name of the tool.
    pub name: ToolName,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of its input.
    pub parameters: Json,
}

/// Whether the model may, must or must not use tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// The model decides; the default.
    #[default]
    Auto,
    /// It must call at least one tool.
    Required,
    /// It must not call tools.
    None,
    /// It must call this tool.
    Tool(ToolName),
}
