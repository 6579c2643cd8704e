//! The events of a run: what is stored, streamed and listed. Every door translates these and nothing else.
//!
//! A durable event is stored before anyone sees it. A transient one (a delta, a part's start, progress) is
//! streamed live, kept in memory for the current step, and folded into the durable event that ends its part.

use serde::Serialize;
use serde_json::value::RawValue;

#[macro_use]
mod body;
mod entry;
#[cfg(test)]
mod marked;
mod memory;
mod opaque;
mod person;
mod status;
mod tool_body;

pub use body::*;
pub use entry::{Entry, Seq};
pub use opaque::Opaque;
use opaque::Tag;
pub use person::{REMOVED, nobody};
pub use status::{EndReason, FinishReason, Status, Usage};
pub use tool_body::*;

use crate::id::CallId;

/// Version of the stored form. An older one is upgraded when it is read; see `tests/samples` of the kernel.
pub const FORMAT: u32 = 1;

macro_rules! events {
    ($(#[$doc:meta])* pub enum Event { $( $(#[$vdoc:meta])* $name:ident = $tag:literal ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "type")]
        pub enum Event {
            $( $(#[$vdoc])* #[serde(rename = $tag)] $name($name), )*
            /// Something that only a newer version knows.
            #[serde(untagged)]
            Opaque(Opaque),
        }

        impl Event {
            /// Its name on the wire and in the store.
            pub fn kind(&self) -> &str {
                match self {
                    $( Self::$name(_) => $tag, )*
                    Self::Opaque(event) => &event.kind,
                }
            }
            /// Reads one event in the current format.
            pub fn read(raw: &RawValue) -> Result<Self, serde_json::Error> {
                Self::read_as(FORMAT, raw)
            }
            /// Reads one event that was stored in `format`; one of a newer version is kept as it is. The tag is read
            /// first because raw JSON cannot pass through serde's own tagged enums.
            pub fn read_as(format: u32, raw: &RawValue) -> Result<Self, serde_json::Error> {
                let tag: Tag<'_> = serde_json::from_str(raw.get())?;
                match tag.kind.as_ref() {
                    $( $tag if format <= FORMAT => serde_json::from_str(raw.get()).map(Self::$name), )*
                    _ => Opaque::keep(format, tag, raw).map(Self::Opaque),
                }
            }
        }
        /// Every event, with a mark in every member.
        #[cfg(test)]
        pub(crate) fn every_marked() -> Vec<Event> {
            vec![ $( <$name as marked::Marked>::marked().into(), )* ]
        }
        $( impl From<$name> for Event { fn from(body: $name) -> Self { Self::$name(body) } } )*
    };
}

events! {
    /// Something that happened in a run or a space.
    pub enum Event {
        /// A run began.
        RunStart = "run-start",
        /// Somebody said something.
        Said = "message",
        /// What a client says was said before the space began.
        Told = "history",
        /// Somebody asks for one call of a tool, without a model.
        CallRequest = "call-request",
        /// From here on the model is given less of what was said.
        ContextCut = "context-cut",
        /// The model is asked.
        StepStart = "step-start",
        /// The step broke midway and is asked again: what it streamed is void.
        StepRetry = "step-retry",
        /// Transient: a text part began.
        TextStart = "text-start",
        /// Transient: more text.
        TextDelta = "text-delta",
        /// The whole text part.
        TextEnd = "text-end",
        /// Transient: a reasoning part began.
        ReasoningStart = "reasoning-start",
        /// Transient: more reasoning.
        ReasoningDelta = "reasoning-delta",
        /// The whole reasoning part.
        ReasoningEnd = "reasoning-end",
        /// Transient: the model began to ask for a tool.
        ToolInputStart = "tool-input-start",
        /// Transient: more of the input, as JSON text.
        ToolInputDelta = "tool-input-delta",
        /// The model asks for a tool; for a client tool, the offer to execute it.
        ToolInputAvailable = "tool-input-available",
        /// A person has to decide.
        ToolApprovalRequest = "tool-approval-request",
        /// A person decided, or the question expired.
        ToolApprovalResponse = "tool-approval-response",
        /// The tool asks people something in the middle of the call.
        ToolQuestion = "tool-question",
        /// Somebody answered such a question, or it expired.
        ToolQuestionResponse = "tool-question-response",
        /// Whoever runs the call had the run's model asked.
        ToolSampling = "tool-sampling",
        /// The call is under way, or a client claimed it.
        ToolExecuting = "tool-executing",
        /// The client that held the call went away: it is offered again.
        ToolReleased = "tool-released",
        /// Transient: how far a long call is.
        ToolProgress = "tool-progress",
        /// The call gave an output.
        ToolOutputAvailable = "tool-output-available",
        /// The call gave none.
        ToolOutputError = "tool-output-error",
        /// A person said no.
        ToolOutputDenied = "tool-output-denied",
        /// The model's reply is whole.
        StepFinish = "step-finish",
        /// The run moved.
        RunStatus = "run-status",
        /// The run ended.
        RunFinish = "run-finish",
        /// Something for the members of the space.
        Notification = "notification",
        /// A call of a child run that asks somebody, told in the log of the run at the top.
        ChildCall = "child-call",
    }
}

impl Event {
    /// Whether it is stored, or only streamed.
    pub fn is_durable(&self) -> bool {
        match self {
            Self::TextStart(_)
            | Self::TextDelta(_)
            | Self::ReasoningStart(_)
            | Self::ReasoningDelta(_)
            | Self::ToolInputStart(_)
            | Self::ToolInputDelta(_)
            | Self::ToolProgress(_) => false,
            Self::ChildCall(e) => e.event.is_durable(),
            Self::RunStart(_)
            | Self::Said(_)
            | Self::Told(_)
            | Self::CallRequest(_)
            | Self::ContextCut(_)
            | Self::StepStart(_)
            | Self::StepRetry(_)
            | Self::TextEnd(_)
            | Self::ReasoningEnd(_)
            | Self::ToolInputAvailable(_)
            | Self::ToolApprovalRequest(_)
            | Self::ToolApprovalResponse(_)
            | Self::ToolQuestion(_)
            | Self::ToolQuestionResponse(_)
            | Self::ToolSampling(_)
            | Self::ToolExecuting(_)
            | Self::ToolReleased(_)
            | Self::ToolOutputAvailable(_)
            | Self::ToolOutputError(_)
            | Self::ToolOutputDenied(_)
            | Self::StepFinish(_)
            | Self::RunStatus(_)
            | Self::RunFinish(_)
            | Self::Notification(_)
            | Self::Opaque(_) => true,
        }
    }
    /// What a run began with, if this says so.
    pub fn run_start(&self) -> Option<&RunStart> {
        match self {
            Self::RunStart(start) => Some(start),
            _ => None,
        }
    }
    /// The call that it speaks of.
    pub fn tool_call(&self) -> Option<CallId> {
        match self {
            Self::ToolInputStart(e) => Some(e.tool_call_id),
            Self::ToolInputDelta(e) => Some(e.tool_call_id),
            Self::ToolInputAvailable(e) => Some(e.tool_call_id),
            Self::ToolApprovalRequest(e) => Some(e.tool_call_id),
            Self::ToolApprovalResponse(e) => Some(e.tool_call_id),
            Self::ToolQuestion(e) => Some(e.tool_call_id),
            Self::ToolQuestionResponse(e) => Some(e.tool_call_id),
            Self::ToolSampling(e) => Some(e.tool_call_id),
            Self::ToolExecuting(e) => Some(e.tool_call_id),
            Self::ToolReleased(e) => Some(e.tool_call_id),
            Self::ToolProgress(e) => Some(e.tool_call_id),
            Self::ToolOutputAvailable(e) => Some(e.tool_call_id),
            Self::ToolOutputError(e) => Some(e.tool_call_id),
            Self::ToolOutputDenied(e) => Some(e.tool_call_id),
            Self::RunStart(_)
            | Self::Said(_)
            | Self::Told(_)
            | Self::CallRequest(_)
            | Self::ContextCut(_)
            | Self::StepStart(_)
            | Self::StepRetry(_)
            | Self::TextStart(_)
            | Self::TextDelta(_)
            | Self::TextEnd(_)
            | Self::ReasoningStart(_)
            | Self::ReasoningDelta(_)
            | Self::ReasoningEnd(_)
            | Self::StepFinish(_)
            | Self::RunStatus(_)
            | Self::RunFinish(_)
            | Self::Notification(_)
            | Self::ChildCall(_)
            | Self::Opaque(_) => None,
        }
    }
    /// The call that it settles.
    pub fn settles(&self) -> Option<CallId> {
        match self {
            Self::ToolOutputAvailable(e) => Some(e.tool_call_id),
            Self::ToolOutputError(e) => Some(e.tool_call_id),
            Self::ToolOutputDenied(e) => Some(e.tool_call_id),
            _ => None,
        }
    }
}
