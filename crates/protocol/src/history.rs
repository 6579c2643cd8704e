//! What a client says was said before.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::message::Part;

/// A turn that a client says was said before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Earlier {
    /// By a person.
    User(Vec<Part>),
    /// By the model.
    Assistant(Vec<EarlierPart>),
}

/// A piece of what the model said before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EarlierPart {
    /// Text.
    Text(String),
    /// A call and what it gave.
    Call {
        /// Name of the tool.
        name: Arc<str>,
        /// Input of the call.
        input: Json,
        /// Output of the tool.
        output: Json,
        /// Whether that is an error.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
}

impl Earlier {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        match self {
            Self::User(parts) => parts.iter().map(Part::bytes).sum(),
            Self::Assistant(parts) => parts.iter().map(EarlierPart::bytes).sum(),
        }
    }
}

impl EarlierPart {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Call {
                name, input, output, ..
            } => name.len() + input.as_str().len() + output.as_str().len(),
        }
    }
}
