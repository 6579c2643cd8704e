//! Events in the vocabulary of the AI SDK: the one mapping that the UI message stream and the chat history share.
//! Both see redacted events, so the stand-ins for what is withheld are chosen here.

use std::sync::Arc;

use toolgate_kernel::event::{
    Event, RunFinish, ToolApprovalRequest, ToolApprovalResponse, ToolQuestion, ToolQuestionResponse, ToolRef,
};
use toolgate_kernel::history::Earlier;
use toolgate_kernel::id::MessageId;
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Message;
use toolgate_kernel::tool::Placement;

/// What a client is told of a tool that failed when it may not know why.
pub(crate) const ERROR_WITHHELD: &str = "the tool failed";

/// What an event means for a UI message.
pub(crate) enum UiEvent<'a> {
    /// A message of a person.
    Message(&'a Message),
    /// What a client told when the chat was new.
    Told(&'a [Earlier]),
    StepStart,
    /// What the step has streamed is void.
    StepRetry,
    StepFinish,
    PartStart(PartKind, &'a Arc<str>),
    PartDelta(PartKind, &'a Arc<str>, &'a str),
    /// The whole text of a part.
    PartEnd(PartKind, &'a Arc<str>, &'a str),
    InputStart(ToolRef),
    InputDelta(ToolRef, &'a str),
    Input(CallInput<'a>),
    ApprovalRequest(&'a ToolApprovalRequest),
    ApprovalResponse(&'a ToolApprovalResponse),
    /// A tool asks people something in the middle of a call.
    Question(&'a ToolQuestion),
    /// It has its answer.
    QuestionResponse(&'a ToolQuestionResponse),
    Progress(ToolRef, Option<&'a Json>),
    /// A call has its outcome.
    Settled(ToolRef, UiOutcome<'a>),
    RunFinish(&'a RunFinish),
    /// Nothing that a message shows.
    Other,
}

/// A part of a message that holds words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Text,
    Reasoning,
}

impl PartKind {
    /// The `type` of the part, and the first half of the type of its chunks.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
        }
    }
}

/// The whole input of a call.
pub(crate) struct CallInput<'a> {
    pub tool: ToolRef,
    /// None where it is withheld.
    pub input: Option<&'a Json>,
    /// A client may execute it now.
    pub is_offered: bool,
}

/// How a call ended, in the words that the AI SDK has for it.
pub(crate) enum UiOutcome<'a> {
    /// The output; none where it is withheld.
    Output(Option<&'a Json>),
    Error(&'a str),
    /// A person said no, and why.
    Denied(Option<&'a str>),
}

impl<'a> UiEvent<'a> {
    pub fn of(event: &'a Event) -> Self {
        use PartKind::{Reasoning, Text};
        match event {
            Event::Said(e) => Self::Message(&e.message),
            Event::StepStart(_) => Self::StepStart,
            Event::StepRetry(_) => Self::StepRetry,
            Event::StepFinish(_) => Self::StepFinish,
            Event::TextStart(e) => Self::PartStart(Text, &e.id),
            Event::TextDelta(e) => Self::PartDelta(Text, &e.id, &e.delta),
            Event::TextEnd(e) => Self::PartEnd(Text, &e.id, &e.text),
            Event::ReasoningStart(e) => Self::PartStart(Reasoning, &e.id),
            Event::ReasoningDelta(e) => Self::PartDelta(Reasoning, &e.id, &e.delta),
            Event::ReasoningEnd(e) => Self::PartEnd(Reasoning, &e.id, &e.text),
            Event::ToolInputStart(e) => Self::InputStart(e.tool()),
            Event::ToolInputDelta(e) => Self::InputDelta(e.tool(), &e.input_text_delta),
            Event::ToolInputAvailable(e) => Self::Input(CallInput {
                tool: e.tool(),
                input: e.input.as_ref(),
                is_offered: e.deadline.is_some(),
            }),
            Event::ToolApprovalRequest(e) => Self::ApprovalRequest(e),
            Event::ToolApprovalResponse(e) => Self::ApprovalResponse(e),
            Event::ToolQuestion(e) => Self::Question(e),
            Event::ToolQuestionResponse(e) => Self::QuestionResponse(e),
            Event::ToolProgress(e) => Self::Progress(e.tool(), e.progress.as_ref()),
            Event::ToolOutputAvailable(e) => Self::Settled(e.tool(), UiOutcome::Output(e.output.as_ref())),
            Event::ToolOutputError(e) => {
                let words = e.error_text.as_deref().unwrap_or(ERROR_WITHHELD);
                Self::Settled(e.tool(), UiOutcome::Error(words))
            }
            Event::ToolOutputDenied(e) => Self::Settled(e.tool(), UiOutcome::Denied(e.reason.as_deref())),
            Event::RunFinish(e) => Self::RunFinish(e),
            Event::Told(e) => Self::Told(&e.turns),
            // A child run's question reads as one of the run at the top.
            Event::ChildCall(e) => Self::of(&e.event),
            Event::RunStart(_)
            | Event::CallRequest(_)
            | Event::ContextCut(_)
            | Event::ToolSampling(_)
            | Event::ToolExecuting(_)
            | Event::ToolReleased(_)
            | Event::RunStatus(_)
            | Event::Notification(_)
            | Event::Opaque(_) => Self::Other,
        }
    }
}

/// Whether the call runs on the gateway's side, which the AI SDK calls `providerExecuted`: a client leaves it alone.
pub(crate) fn is_ours(tool: &ToolRef) -> bool {
    tool.placement != Placement::Client
}

/// The id of the answer to a message: the same whenever it is told.
pub(crate) fn answer_id(message: MessageId) -> String {
    message.to_string().replacen("msg_", "answer_", 1)
}
