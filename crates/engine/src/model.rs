//! The seam to language models.

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
    /// Which model, and how.
    pub model: ModelSpec,
    /// The system prompt.
    pub instructions: Arc<str>,
    /// The conversation so far. Shared: history is not copied for every step.
    pub turns: Vec<Arc<Turn>>,
    /// What the model may call, in a fixed order.
    pub tools: Arc<[OfferedTool]>,
    /// Whether it may, must or must not.
    pub tool_choice: ToolChoice,
}

/// A piece of a reply as it arrives. Slots number the calls of one reply in order of appearance, from 0,
/// without gaps; an adapter never passes on a vendor's index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delta<'a> {
    /// More text.
    Text(&'a str),
    /// More reasoning.
    Reasoning(&'a str),
    /// The vendor's signature of the reasoning so far; ends that reasoning part.
    ReasoningSignature(&'a str),
    /// A call began; its name is known and final.
    CallStart {
        /// Which.
        slot: u32,
        /// The tool's name.
        name: &'a str,
    },
    /// More of a call's input, as JSON text. What all of them give together may be malformed: that is
    /// for the pipeline to say, not for the adapter.
    CallInput {
        /// Which.
        slot: u32,
        /// The text.
        text: &'a str,
    },
    /// What the vendor wants back with a call.
    CallSignature {
        /// Which.
        slot: u32,
        /// The text.
        signature: &'a str,
    },
}

/// Takes the pieces of a reply.
pub trait ReplySink: Send {
    /// One piece, in order.
    fn delta(&mut self, delta: Delta<'_>);
    /// What has arrived so far may be shown: called once per network read, not once per piece.
    fn flush(&mut self);
}

/// How a whole reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Why the model stopped.
    pub reason: FinishReason,
    /// What it cost; zero where the vendor does not say.
    pub usage: Usage,
}

/// Why there is no whole reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What happened; never a key.
    pub message: String,
    /// What to do about it.
    pub kind: ModelErrorKind,
    /// The vendor asked to wait this long.
    pub retry_after: Option<Duration>,
}

/// What to do about a failed reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// Ask again: overloaded, rate limited, cut, unreachable.
    Retryable,
    /// Asking again gives the same: bad request, bad key, unknown model.
    Final,
}

/// A model, or all the models of all vendors behind one.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks, and gives the pieces to `sink` as they arrive. Dropping the future closes the connection.
    /// Retries by itself only while nothing has been given to `sink`.
    async fn reply(&self, ask: &Ask, sink: &mut dyn ReplySink) -> Result<Ending, ModelError>;
    /// What this vendor is sent of these tools, as it stands in a request; none of a vendor that is sent nothing.
    fn definitions(&self, vendor: Provider, tools: &[OfferedTool]) -> Option<Json>;
}
