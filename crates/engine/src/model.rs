//! The seam to language models.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use toolgate_kernel::agent::{ModelSpec, Provider};
use toolgate_kernel::event::{FinishReason, Usage};
use toolgate_kernel::json::Json;
use toolgate_kernel::prompt::{OfferedTool, ToolChoice, Turn};

/// One request to a model.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Model and its parameters.
    pub model: ModelSpec,
    /// The system prompt.
    pub instructions: Arc<str>,
    /// What is only true today: the date and the time zone. Apart from the instructions, which all conversations of
    /// the agent share and vendors cache; empty if there is nothing to say.
    pub today: Arc<str>,
    /// The conversation so far. Shared: history is not copied for every step.
    pub turns: Vec<Arc<Turn>>,
    /// Tools that the model may call, in a fixed order: vendors cache prompts by their prefix.
    pub tools: Arc<[OfferedTool]>,
    /// Whether the model may, must or must not call tools.
    pub tool_choice: ToolChoice,
}

impl Ask {
    /// The system prompt as one text.
    pub fn system(&self) -> Cow<'_, str> {
        match (&*self.instructions, &*self.today) {
            (instructions, "") => instructions.into(),
            ("", today) => today.into(),
            (instructions, today) => format!("{instructions}\n\n{today}").into(),
        }
    }
}

/// A piece of a reply as it arrives. Slots number the calls of one reply in order of appearance, from 0,
/// without gaps; an adapter never passes on a vendor's index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delta<'a> {
    /// Text delta.
    Text(&'a str),
    /// Reasoning delta.
    Reasoning(&'a str),
    /// The vendor's signature of the reasoning so far; ends that reasoning part.
    ReasoningSignature(&'a str),
    /// A call began; its name is known and final.
    CallStart {
        /// Slot of the call.
        slot: u32,
        /// Name of the tool.
        name: &'a str,
    },
    /// Delta of a call's input, as JSON text. The complete input may be malformed: the kernel reports
    /// that, not the adapter.
    CallInput {
        /// Slot of the call.
        slot: u32,
        /// Text of the delta or signature.
        text: &'a str,
    },
    /// Vendor's signature of a call, sent back with it in the next request.
    CallSignature {
        /// Slot of the call.
        slot: u32,
        /// Text of the delta or signature.
        signature: &'a str,
    },
}

impl Delta<'_> {
    /// Bytes that the model wrote for it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(words) | Self::Reasoning(words) => words.len(),
            Self::CallStart { name, .. } => name.len(),
            Self::CallInput { text, .. } => text.len(),
            Self::ReasoningSignature(_) | Self::CallSignature { .. } => 0,
        }
    }
}

/// Receiver of the pieces of a reply.
pub trait ReplySink: Send {
    /// Receives the next piece.
    fn delta(&mut self, delta: Delta<'_>);
    /// Publishes the pieces received so far: called once per network read, not once per piece.
    fn flush(&mut self);
}

/// End of a complete reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Why the model stopped.
    pub reason: FinishReason,
    /// Token counts; zero where the vendor reports none, which the engine estimates then.
    pub usage: Usage,
}

/// Why there is no complete reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// Description of the failure; never contains an API key.
    pub message: String,
    /// Whether a retry can help.
    pub kind: ModelErrorKind,
    /// Wait before the retry, if the vendor asks for one.
    pub retry_after: Option<Duration>,
    /// HTTP status that the vendor refused the request with, if it did.
    pub status: Option<u16>,
}

impl ModelError {
    /// A failure without a status or a wait.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            kind,
            retry_after: None,
            status: None,
        }
    }
}

/// Whether a failed request can be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// A retry may help: overloaded, rate limited, disconnected, unreachable.
    Retryable,
    /// A retry gives the same: bad request, bad key, unknown model.
    Final,
    /// The conversation does not fit the model's context window: a shorter one may.
    TooLong,
}

/// A model, or the models of all vendors behind one adapter.
#[async_trait]
pub trait Model: Send + Sync {
    /// Sends the request and passes the pieces to `sink` as they arrive. Dropping the future closes the connection.
    /// Retries by itself only while nothing was passed to `sink`.
    async fn reply(&self, ask: &Ask, sink: &mut dyn ReplySink) -> Result<Ending, ModelError>;
    /// The tool definitions in the format of the vendor's request; none if the vendor takes none.
    fn definitions(&self, vendor: Provider, tools: &[OfferedTool]) -> Option<Json>;
}
