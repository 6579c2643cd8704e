//! What a model is asked, in a form that no vendor owns.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::CallId;
use crate::json::Json;
use crate::message::Part;
use crate::name::ToolName;

/// One turn of the conversation, as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// Somebody spoke.
    User(Vec<Part>),
    /// The model spoke. Its calls are followed by their results in the next turn.
    Assistant(Vec<Said>),
    /// The results of the calls of the turn before, in call order.
    Results(Vec<CallResult>),
}

/// A piece of what the model said.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Words.
    Text(String),
    /// Reasoning, to be given back to a vendor that signs it.
    Reasoning {
        /// The words.
        text: String,
        /// The vendor's signature.
        signature: Option<String>,
    },
    /// A use of a tool.
    Call {
        /// Our id; at most 40 characters of `[a-z0-9_]`.
        id: CallId,
        /// The name the model used.
        name: Arc<str>,
        /// A JSON value; an object unless the model wrote something else.
        input: Json,
        /// What the vendor wants back with the call.
        signature: Option<String>,
    },
}

/// What a call gave, as the model reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// Which call.
    pub id: CallId,
    /// The name the model used.
    pub name: Arc<str>,
    /// The output, `{"output", "warning"}` of a tool that should not be used any more, or
    /// `{"error": {"code", "message"}}`.
    pub output: Json,
    /// Whether it is an error.
    pub is_error: bool,
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// What to call it.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// JSON Schema of its input.
    pub parameters: Json,
}

/// Whether the model may, must or must not use tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// At least one.
    Required,
    /// None.
    None,
    /// This one.
    Tool(ToolName),
}
