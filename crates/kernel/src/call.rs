//! One use of a tool: its state, its one outcome, and what a late or second answer is told.

use std::sync::Arc;

use crate::event::{ChildStatus, Claim, Pause, Seq, Status, ToolApprovalRequest, ToolRef};
use crate::id::{ApprovalId, RunId};
use crate::json::Json;
use crate::question::Questions;
use crate::time::Time;
use crate::tool::{ApprovalTerms, ConsentRef, Tool};

pub use toolgate_protocol::call::ErrorCode;

/// Outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// With an output.
    Output(Json),
    /// Without one.
    Error {
        /// Why, for programs.
        code: ErrorCode,
        /// Why, in words.
        message: String,
    },
}

impl Outcome {
    /// An error with this code and text.
    pub fn error(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Error {
            code,
            message: message.into(),
        }
    }
}

/// A call and where it stands.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool, as the call's events name it.
    pub tool: ToolRef,
    /// The definition it runs by; none when the model asked for a tool that is not there, and for readers of a log,
    /// who do not know the tools.
    pub definition: Option<Arc<Tool>>,
    /// What it runs with: the model's input, or what a person made of it. None where the reader may not see it.
    pub input: Option<Json>,
    /// What the vendor wants back with it.
    pub signature: Option<String>,
    /// The remembered yes that it runs by, where nobody was asked.
    pub consent: Option<ConsentRef>,
    /// The question to a person whether it may run, if there was one.
    pub asked: Option<Arc<ToolApprovalRequest>>,
    /// What its tool asked people in the middle of it.
    pub questions: Questions,
    /// How often whoever runs it had the run's model asked.
    pub samplings: u32,
    /// The task that it goes on with when it next runs, for a delegated call whose questions were all answered.
    pub resumes: Option<Handle>,
    /// How often it was handed on to somebody else, or taken back: what comes of a look at an earlier leg is void.
    pub leg: u32,
    /// Since when it could be executed: waiting for a person's yes counts not, nor does waiting for answers.
    pub since: Time,
    /// State of the call.
    pub state: CallState,
}

impl Call {
    /// What it runs with; `null` where the reader may not see it.
    pub fn input(&self) -> Json {
        self.input.clone().unwrap_or_else(Json::null)
    }
    /// Whether the reader may know that it ran, and no more: its input and what it gave are withheld.
    pub fn is_redacted(&self) -> bool {
        self.input.is_none()
    }
    /// The input as far as the reader may see it: who may decide on a call is shown what it asks for.
    pub fn shown_input(&self) -> Option<&Json> {
        let asked = self.asked.as_ref().and_then(|asked| asked.input.as_ref());
        self.input.as_ref().or(asked)
    }
    /// Whether every member of the space sees what it reads and writes.
    pub fn is_seen_by_members(&self) -> bool {
        self.tool.is_seen_by_members()
    }
    /// The terms of the question whether it may run. One of before there were terms asks for consent.
    pub fn approval_terms(&self) -> ApprovalTerms {
        let terms = self.asked.as_ref().and_then(|asked| asked.terms.clone());
        terms.unwrap_or_default()
    }
    /// When its tool's time is used up, if nobody is asked anything from now on.
    pub fn deadline(&self) -> Time {
        let timeout = self.definition.as_ref().map(|tool| tool.timeout);
        self.since.after(timeout.unwrap_or_default())
    }
    /// The task of a source that has this call, or that it goes on with.
    pub fn task(&self) -> Option<&Handle> {
        let handle = match &self.state {
            CallState::Delegated { handle, .. } => Some(handle),
            CallState::Ready | CallState::Executing => self.resumes.as_ref(),
            CallState::AwaitsApproval { .. }
            | CallState::Paused(_)
            | CallState::Open { .. }
            | CallState::Settled(_) => None,
        };
        handle.filter(|handle| matches!(handle, Handle::Task { .. }))
    }
    /// Whether it has its outcome.
    pub fn is_settled(&self) -> bool {
        matches!(self.state, CallState::Settled(_))
    }
    /// Notes where the event is stored that settled it.
    pub(crate) fn note_place(&mut self, seq: Seq) {
        if let CallState::Settled(settled) = &mut self.state {
            settled.seq = seq;
        }
    }
}

/// State of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallState {
    /// A person has to decide.
    AwaitsApproval {
        /// Id of the approval.
        approval: ApprovalId,
        /// When silence becomes a no.
        expires_at: Time,
    },
    /// On the gateway's side, free to run.
    Ready,
    /// On the gateway's side, under way; after a crash this tells that it may have happened.
    Executing,
    /// Somebody else carries it on. It is not due: the run may leave memory until it is told of the end, or until
    /// `check_at`.
    Delegated {
        /// Names who carries the call on.
        handle: Handle,
        /// When the run must look again, before the tool's timeout; none when it is told of the end.
        check_at: Option<Time>,
        /// Whom it waits for, while that is a person or a client, and since when.
        asks: Option<(Asks, Time)>,
    },
    /// On the gateway's side, waiting for a moment or a signal.
    Paused(Pause),
    /// On the client's side, offered or held.
    Open {
        /// When it is given up; none until the offer is stored.
        deadline: Time,
        /// Client that holds the claim.
        claim: Option<Claim>,
    },
    /// Ended; for ever.
    Settled(Settled),
}

/// Whom a delegated call waits for: its timeout does not count meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// The person or the client whom its child run asks.
    Child(ChildStatus),
    /// People who answer its own questions.
    People,
}

impl Asks {
    /// What a run waits for that waits for this.
    pub fn status(self) -> Status {
        match self {
            Self::Child(child) => child.status,
            Self::People => Status::WaitingApproval,
        }
    }
}

impl CallState {
    /// Whether the call waits for a person or a client.
    pub fn asks(&self) -> bool {
        match self {
            Self::AwaitsApproval { .. } | Self::Open { .. } | Self::Delegated { asks: Some(_), .. } => true,
            Self::Ready
            | Self::Executing
            | Self::Delegated { asks: None, .. }
            | Self::Paused(_)
            | Self::Settled(_) => false,
        }
    }
}

/// Who carries on a delegated call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Handle {
    /// A child run.
    Run(RunId),
    /// Work that a tool source has under way elsewhere: an MCP task, a remote A2A task.
    Task {
        /// The source that knows the task.
        source: Arc<str>,
        /// The source's own name for it; opaque to everyone else.
        task: Arc<str>,
    },
}

/// The one outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The call's outcome.
    pub outcome: Outcome,
    /// Whether the executor said so itself, or it was decided without it (deadline, cancel, a new message).
    pub answered: bool,
    /// What whoever uses the tool should know, as that it is deprecated; never with an error.
    pub warning: Option<String>,
    /// The place of the event that settled it; 0 until it is stored.
    pub seq: Seq,
    /// When it was stored.
    pub time: Time,
}
