//! The events of a run: what is stored, streamed and listed. Every door translates these and nothing else.
//!
//! A durable event is stored before anyone sees it. A transient one (a delta, a part's start, progress) is
//! streamed live, kept in memory for the current step, and folded into the durable event that ends its part.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

mod opaque;

pub use opaque::Opaque;
use opaque::Tag;

use crate::agent::ModelName;
use crate::call::ErrorCode;
use crate::history::Earlier;
use crate::id::{ApprovalId, CallId, EntityId, MessageId, RunId, SpaceId};
use crate::json::Json;
use crate::message::Message;
use crate::name::{AgentName, ToolName};
use crate::time::Time;
use crate::tool::{ClientTool, Placement};

/// Version of the stored form. An older one is upgraded when it is read; see `tests/samples`.
pub const FORMAT: u32 = 1;

/// A place in a space's stream: strictly increasing, the same for list, stream and the SSE `id:`.
///
/// Durable events stand at multiples of [`Seq::STRIDE`]; transient ones count up from the durable event
/// before them, in steps of [`Seq::LANES`]. So a cursor that points at a delta stays right when the deltas are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Room for transient events between two durable ones. Keeps a number exact in a JSON reader that has
    /// only doubles for nine thousand million durable events per space.
    pub const STRIDE: u64 = 1_000_000;
    /// Runs of one space that may stream at once: the transient events of each stand in a lane of its own, so
    /// that nodes which stream different runs cannot give the same number twice. Divides [`Seq::STRIDE`], and
    /// leaves tens of thousands of places per lane between two durable events.
    pub const LANES: u64 = 16;

    /// The place of the `index`-th durable event of a space, counted from 1.
    pub fn durable(index: u64) -> Self {
        Self(index * Self::STRIDE)
    }
    /// Which durable event this is, or follows.
    pub fn index(self) -> u64 {
        self.0 / Self::STRIDE
    }
}

/// Events that were stored together: all of them or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The space whose stream they stand in.
    pub space: SpaceId,
    /// The run they belong to; none for a message that starts no run.
    pub run: Option<RunId>,
    /// Place of the first; the others follow at [`Seq::STRIDE`].
    pub first: Seq,
    /// When they were stored.
    pub time: Time,
    /// Never empty, all durable.
    pub events: Vec<Event>,
}

impl Entry {
    /// Each event with its place.
    pub fn placed(&self) -> impl Iterator<Item = (Seq, &Event)> {
        self.events
            .iter()
            .enumerate()
            .map(|(i, event)| (Seq(self.first.0 + i as u64 * Seq::STRIDE), event))
    }
    /// The first event that this version has to know to drive the run, and does not.
    pub fn beyond(&self) -> Option<&Opaque> {
        self.events.iter().find_map(|event| match event {
            Event::Opaque(event) if !event.ignorable => Some(event),
            _ => None,
        })
    }
    /// Place of the last event.
    pub fn last(&self) -> Seq {
        Seq(self.first.0 + (self.events.len() as u64 - 1) * Seq::STRIDE)
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted, not yet picked up.
    Queued,
    /// The model or a tool on the gateway's side is at work.
    Running,
    /// Only client tools are open.
    WaitingTool,
    /// A person has to decide.
    WaitingApproval,
    /// A durable pause.
    WaitingTime,
    /// Ended with an answer.
    Completed,
    /// Ended without one.
    Failed,
    /// Ended because somebody asked.
    Cancelled,
}

impl Status {
    /// Every status that is not final.
    pub const OPEN: [Self; 5] = [
        Self::Queued,
        Self::Running,
        Self::WaitingTool,
        Self::WaitingApproval,
        Self::WaitingTime,
    ];

    /// As it is written in JSON and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingTool => "waiting_tool",
            Self::WaitingApproval => "waiting_approval",
            Self::WaitingTime => "waiting_time",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
    /// The status that `text` names.
    pub fn parse(text: &str) -> Option<Self> {
        use Status::*;
        [
            Queued,
            Running,
            WaitingTool,
            WaitingApproval,
            WaitingTime,
            Completed,
            Failed,
            Cancelled,
        ]
        .into_iter()
        .find(|status| status.as_str() == text)
    }
    /// Nothing more will happen.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Why the model stopped, one enum for every vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// It had said all.
    Stop,
    /// It ran out of output tokens.
    Length,
    /// A filter of the vendor's stopped it.
    ContentFilter,
    /// It asked for tools.
    ToolCalls,
    /// It failed.
    Error,
    /// A reason we do not know.
    Other,
}

/// Tokens of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Of those written, how many were reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// Of those read, how many came from the vendor's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
}

impl Usage {
    /// All of them.
    pub fn total(self) -> u64 {
        self.input_tokens + self.output_tokens
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}
fn is_false(b: &bool) -> bool {
    !*b
}

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
            Self::RunStart(_)
            | Self::Said(_)
            | Self::StepStart(_)
            | Self::StepRetry(_)
            | Self::TextEnd(_)
            | Self::ReasoningEnd(_)
            | Self::ToolInputAvailable(_)
            | Self::ToolApprovalRequest(_)
            | Self::ToolApprovalResponse(_)
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

macro_rules! body {
    ($(#[$doc:meta])* $name:ident { $( $(#[$fdoc:meta])* $field:ident : $ty:ty ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $( $(#[$fdoc])* pub $field: $ty, )* }
    };
}

/// The fields that every event of a tool carries.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRef {
    /// Which call.
    pub call: CallId,
    /// The name the model used; may be unknown.
    pub name: Arc<str>,
    /// Where it runs.
    pub placement: Placement,
    /// The tool opted in to being seen by public principals.
    pub shown: bool,
}

macro_rules! tool_body {
    ($(#[$doc:meta])* $name:ident { $( $(#[$fdoc:meta])* $field:ident : $ty:ty ),* $(,)? }) => {
        body! {
            $(#[$doc])*
            $name {
                /// Which call.
                tool_call_id: CallId,
                /// The name the model used.
                tool_name: Arc<str>,
                /// Where the tool runs.
                placement: Placement,
                /// The tool opted in to being seen by public principals.
                #[serde(default, skip_serializing_if = "is_false")]
                shown: bool,
                $( $(#[$fdoc])* $field: $ty, )*
            }
        }
        impl $name {
            /// The event of `tool` with these fields.
            #[allow(clippy::too_many_arguments, reason = "one per field")]
            pub fn of(tool: &ToolRef, $( $field: $ty ),*) -> Self {
                Self {
                    tool_call_id: tool.call,
                    tool_name: tool.name.clone(),
                    placement: tool.placement,
                    shown: tool.shown,
                    $( $field, )*
                }
            }
            /// Which tool it speaks of.
            pub fn tool(&self) -> ToolRef {
                ToolRef {
                    call: self.tool_call_id,
                    name: self.tool_name.clone(),
                    placement: self.placement,
                    shown: self.shown,
                }
            }
        }
    };
}

/// What a run at the top and all below it may use up together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// Tokens, read and written.
    pub tokens: u64,
    /// Runs below the one at the top.
    pub descendants: u32,
}
body! {
    /// A run began.
    RunStart {
        /// Whose configuration it follows.
        agent: AgentName,
        /// Which revision of it, for the whole run.
        revision: u32,
        /// The model it asks.
        model: ModelName,
        /// The agent's own entity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entity: Option<EntityId>,
        /// The call that started it, for a child run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<CallId>,
        /// How many runs stand above it.
        #[serde(default)]
        depth: u32,
        /// The agent's prompt tool that this run answers, if it answers one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        behind: Option<ToolName>,
        /// What the run at the top may use up: its tokens, and the runs below it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Budget>,
        /// Tools that the caller brought.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        client_tools: Vec<ClientTool>,
        /// Of the agent's client tools only those of these categories, and those of none; absent for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        categories: Option<Vec<String>>,
        /// What the client says was said before, for an agent that takes its word.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        history: Vec<Earlier>,
        /// Hash of every tool definition the run started with, by name.
        tools: Json,
        /// The version of every tool that has one, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        tool_versions: BTreeMap<ToolName, String>,
    }
}
body! {
    /// Somebody said something.
    Said {
        /// What, and who.
        message: Message,
    }
}
body! {
    /// The model is asked.
    StepStart {
        /// Counted from 1.
        step: u32,
    }
}
body! {
    /// The step broke midway and is asked again.
    StepRetry {
        /// Which step.
        step: u32,
        /// How often it was tried, this one included.
        attempt: u32,
        /// What went wrong; for secret principals only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Not before this moment.
        not_before: Time,
    }
}
body! {
    /// A text part began.
    TextStart {
        /// Names the part within the run.
        id: Arc<str>,
    }
}
body! {
    /// More text.
    TextDelta {
        /// Names the part.
        id: Arc<str>,
        /// The new words.
        delta: String,
    }
}
body! {
    /// The whole text part.
    TextEnd {
        /// Names the part.
        id: Arc<str>,
        /// All of it.
        text: String,
    }
}
body! {
    /// A reasoning part began.
    ReasoningStart {
        /// Names the part.
        id: Arc<str>,
    }
}
body! {
    /// More reasoning.
    ReasoningDelta {
        /// Names the part.
        id: Arc<str>,
        /// The new words.
        delta: String,
    }
}
body! {
    /// The whole reasoning part.
    ReasoningEnd {
        /// Names the part.
        id: Arc<str>,
        /// All of it.
        text: String,
        /// What the vendor wants back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    }
}
tool_body! {
    /// The model began to ask for a tool.
    ToolInputStart {}
}
tool_body! {
    /// More of the input.
    ToolInputDelta {
        /// JSON text.
        input_text_delta: String,
    }
}
tool_body! {
    /// The model asks for a tool.
    ToolInputAvailable {
        /// The whole input; a JSON string when the model's text was not JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Json>,
        /// When a client call is given up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
        /// What the vendor wants back with the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    }
}
tool_body! {
    /// A person has to decide.
    ToolApprovalRequest {
        /// Where to send the decision.
        approval_id: ApprovalId,
        /// Exactly what will run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Json>,
        /// When silence becomes a no.
        expires_at: Time,
    }
}
tool_body! {
    /// A person decided, or the question expired.
    ToolApprovalResponse {
        /// Which question.
        approval_id: ApprovalId,
        /// Yes or no.
        approved: bool,
        /// The reason that was given, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The input as the person changed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Json>,
        /// Who decided, where it was an entity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EntityId>,
        /// Nobody decided in time.
        #[serde(default, skip_serializing_if = "is_false")]
        expired: bool,
        /// When a client call, now free to run, is given up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
    }
}
/// Who executes a client call, and until when without another word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// A name the client chose for itself: a tab, a process.
    pub holder: String,
    /// When the call is offered again.
    pub until: Time,
}
/// What a durable pause waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// When it ends whatever happens.
    pub until: Time,
    /// A signal from outside ends it; that none comes is an error.
    #[serde(default, skip_serializing_if = "is_false")]
    pub signal: bool,
}
/// Work on a call that a tool source has under way elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteTask {
    /// The source that knows the task.
    pub source: Arc<str>,
    /// The source's own name for it; opaque to everyone else.
    pub task: Arc<str>,
    /// When the source must be asked again; none when it tells of the end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_at: Option<Time>,
}
tool_body! {
    /// The call is under way.
    ToolExecuting {
        /// The client that holds it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claim: Option<Claim>,
        /// The run that executes it, for a call that starts another agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<RunId>,
        /// What it waits for, for a durable pause.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pause: Option<Pause>,
        /// The task that carries it on outside the gateway; for secret principals only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<RemoteTask>,
    }
}
tool_body! {
    /// The call is offered again.
    ToolReleased {}
}
tool_body! {
    /// How far a long call is.
    ToolProgress {
        /// Whatever the tool says of itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<Json>,
    }
}
tool_body! {
    /// The call gave an output.
    ToolOutputAvailable {
        /// The output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Json>,
        /// What whoever uses the tool should know, as that it is deprecated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
    }
}
tool_body! {
    /// The call gave none.
    ToolOutputError {
        /// Why, for programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<ErrorCode>,
        /// Why, in words the model can act on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_text: Option<String>,
    }
}
tool_body! {
    /// A person said no.
    ToolOutputDenied {
        /// The reason that was given, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
}
body! {
    /// The model's reply is whole.
    StepFinish {
        /// Which step.
        step: u32,
        /// Why the model stopped.
        reason: FinishReason,
        /// What it cost.
        usage: Usage,
    }
}
body! {
    /// The run moved.
    RunStatus {
        /// Where to.
        status: Status,
    }
}
/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The model had said all.
    Stop,
    /// The model ran out of output tokens.
    Length,
    /// A filter of the vendor's.
    ContentFilter,
    /// `loop.maxSteps` was reached.
    MaxSteps,
    /// A limit of the run was reached.
    Limit,
    /// The model could not be asked.
    ModelError,
    /// The answer does not have the form that it must have.
    InvalidOutput,
    /// Somebody asked for it.
    Cancelled,
}
body! {
    /// The run ended.
    RunFinish {
        /// The final status.
        status: Status,
        /// Why the run ended.
        reason: EndReason,
        /// All steps together.
        usage: Usage,
        /// What went wrong, in words; for secret principals only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    }
}
body! {
    /// Something for the members of the space.
    Notification {
        /// What it is about.
        title: String,
        /// More of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        /// The message it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<MessageId>,
    }
}
