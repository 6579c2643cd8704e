//! What arrives from outside, and what it is told.

use serde::Serialize;
use toolgate_kernel::agent::Starter;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::history::Earlier;
use toolgate_kernel::id::{ApprovalId, CallId, EntityId, MessageId, ProjectId, QuestionId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Message;
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::problem::Problem;
use toolgate_kernel::question::Action;
use toolgate_kernel::run::{Arrival, Rejected, Run};
use toolgate_kernel::schema::Misfit;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::ClientTool;

use crate::budget::{BudgetRefusal, Unpriced};
use crate::deliver::Fate;
use crate::quota::{QuotaError, QuotaExceeded};
use crate::store::StoreError;
use crate::user_tokens::UserToken;
use crate::{TooManyWait, decided, receipt, responded};

/// A message for a space, and the run it should wake.
#[derive(Debug, Clone)]
pub struct Post {
    /// The project that owns it.
    pub project: ProjectId,
    /// Who posts it: an agent that they may not start does not exist for them.
    pub starter: Starter,
    /// Whose quotas it counts against.
    pub charged: Charged,
    /// Where; none makes a space for this run alone.
    pub space: Option<SpaceId>,
    /// Make the space when it is not there.
    pub makes_space: bool,
    /// What. The same id again must be the same message of the same sender, and gets the same receipt.
    pub message: Message,
    /// Who answers: this agent, or the space's, or the project's `default`.
    pub answer: Answer,
    /// Tools that the caller brings; already validated. Others than those of the run under way end that run.
    pub client_tools: Vec<ClientTool>,
    /// Of the agent's client tools only those of these categories, and those of none.
    pub categories: Option<Vec<String>>,
    /// What the caller says was said before: for agents that take its word, and for a space that is new. A part of the
    /// request: with another history under the same key it is another request.
    pub history: Vec<Earlier>,
    /// The same, for a space that is new and nothing else: a repeated request need not bring it.
    pub told: Vec<Earlier>,
    /// What it does when the agent has a run under way in the space.
    pub under_way: UnderWay,
    /// A call that the run makes instead of answering: the message has no content then, and no model is asked. Such a
    /// run is beside the agent's own runs in the space, and no part of the conversation.
    pub call: Option<RequestedCall>,
    /// The token of the user who posts it, for tools that may pass it on. It is in memory only.
    pub user_token: Option<UserToken>,
    /// The key that makes a repeated request harmless, and the hash of the request. With it the message's id is
    /// remembered too: in this space it names this message and no other, for a day.
    pub idempotency: Option<(String, [u8; 32])>,
}

/// A call of a tool that somebody asks for, without a model.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedCall {
    /// The tool: one of the agent, one that the request brings, or for a backend any that the project has under this
    /// name. A user may call what it is shown: client tools, and those with `visibility: public`.
    pub tool: ToolName,
    /// The arguments.
    pub input: Json,
}

impl Post {
    /// Whether the idempotency key is the id of the message, chosen by the sender.
    pub fn is_known_by_message(&self) -> bool {
        let id = self.message.message_id.to_string();
        self.idempotency
            .as_ref()
            .is_some_and(|(key, _)| key.ends_with(&id))
    }
}

/// What a message does when the agent that answers has a run under way in its space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnderWay {
    /// It joins the run, and settles what the run waits for.
    #[default]
    Join,
    /// It is refused with [`PostError::RunUnderWay`], to be posted later.
    Wait,
    /// It joins this run and no other: refused with [`PostError::NotUnderWay`] when the run has ended, and with
    /// [`PostError::OtherTools`] when the message brings other tools than the run has.
    Only(RunId),
}

/// Whose quotas a message counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charged {
    /// Nobody's: a backend posts it.
    Nobody,
    /// Those of the user who posts it.
    User(EntityId),
    /// Those of the user who made the space, if one did: the gateway posts it itself.
    SpaceOwner,
}

impl From<Option<EntityId>> for Charged {
    fn from(user: Option<EntityId>) -> Self {
        user.map_or(Self::Nobody, Self::User)
    }
}

/// Which agent responds to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nobody.
    None,
    /// The space's agent, or the project's `default`.
    Default,
    /// This one.
    Agent(AgentName),
}

/// The message is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Posted {
    /// Id of the message.
    pub message_id: MessageId,
    /// The space of the message.
    pub space_id: SpaceId,
    /// The run that answers: a new one, or the one that was under way.
    pub run_id: Option<RunId>,
    /// A cursor from which everything the message caused is seen.
    pub seq: Seq,
    /// The same request was made before; nothing was done again.
    pub repeated: bool,
}

/// Why a message was not taken. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// There is no such space in the project.
    #[error("there is no such space")]
    NoSpace,
    /// There is no such agent in the project, or none that the caller may start.
    #[error("there is no agent named {0}")]
    NoAgent(AgentName),
    /// There is no such tool, or none that the caller may call: in words.
    #[error("{0}")]
    NoTool(String),
    /// The arguments of a requested call do not fit the tool.
    #[error("the arguments do not fit the tool")]
    Arguments(Misfit),
    /// A tool in the request clashes with one of the agent's, or breaks a rule.
    #[error("the request's tools are not acceptable")]
    Tools(Vec<Problem>),
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// The request tells a past, and the space has one of its own, which the agent goes by.
    #[error(
        "the space is there and this agent goes by its messages, so the history would not be used; leave it out, start \
         without a space, or use an agent with history: client"
    )]
    HistoryNotTaken,
    /// The message id was used for another message, or by another sender.
    #[error("the message id is taken by another message of this space, choose a new one")]
    MessageIdReused,
    /// Whoever the message counts against has used up a quota.
    #[error(transparent)]
    Quota(QuotaExceeded),
    /// A budget of the project, the user or the agent is used up.
    #[error("{0}")]
    Budget(Box<BudgetRefusal>),
    /// A budget of cost holds, and the model of the agent has no price.
    #[error(transparent)]
    Unpriced(Unpriced),
    /// The agent has a run under way in the space, which the message waits for.
    #[error("the agent has a run under way in the space: {0}")]
    RunUnderWay(RunId),
    /// The message was for a run that has ended.
    #[error("the run has ended: {0}")]
    NotUnderWay(RunId),
    /// The message was for a run that has other tools than it brings.
    #[error("the run has other tools, and keeps those that it began with: {0}")]
    OtherTools(RunId),
    /// Too many requests wait for their tools to be checked.
    #[error(transparent)]
    TooManyWait(TooManyWait),
    /// The gateway is going down or has too much to do.
    #[error("{0}")]
    Busy(String),
    /// The store failed; the request may be sent again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<QuotaError> for PostError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Exceeded(exceeded) => Self::Quota(exceeded),
            QuotaError::Store(error) => Self::Store(error),
        }
    }
}

/// A result of at most so many bytes is taken without asking for the project's limit, which is never less.
pub const RESULT_BYTES_UNCHECKED: usize = 1024;

/// What an executor says of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Submission {
    /// It gave this.
    Output(Json),
    /// It failed.
    Error(String),
}

impl Submission {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Output(output) => output.as_str().len(),
            Self::Error(message) => message.len(),
        }
    }
}

/// A result is stored. The same result again gets the same receipt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Id of the tool call.
    pub tool_call_id: CallId,
    /// Its run.
    pub run_id: RunId,
    /// The place of the event that settled it.
    pub seq: Seq,
    /// When it was stored.
    pub time: Time,
}

/// A decision is stored. The same decision again gets the same receipt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// Id of the approval.
    pub approval_id: ApprovalId,
    /// Id of the tool call.
    pub tool_call_id: CallId,
    /// Its run.
    pub run_id: RunId,
    /// Whether the call may run.
    pub approved: bool,
    /// Whether the yes stands for later calls too, until it is revoked.
    pub remembered: bool,
    /// The place of the decision.
    pub seq: Seq,
    /// When it was stored.
    pub time: Time,
}

/// An answer to a question is stored. The same answer again gets the same receipt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Responded {
    /// Id of the question.
    pub question_id: QuestionId,
    /// Id of the tool call.
    pub tool_call_id: CallId,
    /// Its run.
    pub run_id: RunId,
    /// What was done with the question.
    pub action: Action,
    /// The place of the answer.
    pub seq: Seq,
    /// When it was stored.
    pub time: Time,
}

/// A client holds a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Claimed {
    /// Id of the tool call.
    pub tool_call_id: CallId,
    /// Its run.
    pub run_id: RunId,
    /// Name of the tool.
    pub tool_name: String,
    /// What to run it with.
    pub input: Json,
    /// Client that holds the claim.
    pub holder: String,
    /// Until when without a heartbeat (claiming again).
    pub until: Time,
    /// When the call is given up whoever holds it.
    pub deadline: Time,
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Yes; with another input when given, which is validated again.
    Approve(Option<Json>),
    /// No, and why.
    Deny(Option<String>),
}

/// Why an arrival was not taken. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// No such call, approval, question or run.
    #[error("there is no such {0}")]
    Unknown(&'static str),
    /// The call runs on the gateway's side: nobody else may answer it.
    #[error("the call is not for a client to answer")]
    NotAClientCall,
    /// The call is for another member of the space.
    #[error("the call is offered to the member who asked for it, and to backends")]
    NotOffered,
    /// Others may decide on the call, not whoever did.
    #[error("you may see this question, and others may decide it: the tool names its approvers")]
    NotAnApprover,
    /// The call has not been approved yet.
    #[error("the call waits for approval")]
    NotApproved,
    /// It was settled with another value before.
    #[error("it was answered before with another value")]
    Conflict {
        /// The answer that holds.
        winner: Box<Receipt>,
    },
    /// The question was answered the other way before.
    #[error("it was decided before in another way")]
    DecidedOtherwise {
        /// The decision that holds.
        winner: Box<Decided>,
    },
    /// The tool's question was answered in another way before.
    #[error("it was answered before in another way")]
    RespondedOtherwise {
        /// The answer that holds.
        winner: Box<Responded>,
    },
    /// It was given up before this came.
    #[error("the call is no longer open: {message}")]
    Gone {
        /// Why: `TIMEOUT`, `CANCELLED`, `SUPERSEDED`, `DENIED`, …
        code: ErrorCode,
        /// Why, in words.
        message: String,
    },
    /// Another client holds the call.
    #[error("{holder} holds the call until {until}")]
    Held {
        /// The holder's name for itself.
        holder: String,
        /// Until when.
        until: Time,
    },
    /// The value does not fit: the tool's output schema for a result, its input schema for an edited input, the
    /// question's schema for an answer.
    #[error("the value does not fit the schema")]
    Invalid(Vec<Problem>),
    /// The run took another message with the same id.
    #[error("the message id is taken by another message of the run, choose a new one")]
    MessageIdReused,
    /// Checking the value against its schema could take too long.
    #[error("{}", .0.message)]
    TooCostly(Problem),
    /// The result has more bytes than the project's `client_tools.result_bytes_max`.
    #[error("the result has {seen} bytes; at most {max} are allowed, see client_tools.result_bytes_max")]
    TooLarge {
        /// Bytes of the result as JSON.
        seen: usize,
        /// Bytes that are allowed.
        max: usize,
    },
    /// The run has ended.
    #[error("the run has ended as {}", .0.as_str())]
    Ended(Status),
    /// The gateway is going down or has too much to do.
    #[error("{0}")]
    Busy(String),
    /// The store failed; the request may be sent again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a letter is about, for the words of a refusal.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    Run,
    Call(CallId),
    Approval(ApprovalId),
    Question(QuestionId),
}

impl Subject {
    pub fn of(arrival: &Arrival) -> Self {
        match arrival {
            Arrival::Started { call }
            | Arrival::Sampled { call, .. }
            | Arrival::Delegated { call, .. }
            | Arrival::Output { call, .. }
            | Arrival::Result { call, .. }
            | Arrival::Signal { call, .. }
            | Arrival::Claim { call, .. }
            | Arrival::Release { call, .. } => Self::Call(*call),
            Arrival::Decide { approval, .. } => Self::Approval(*approval),
            Arrival::Answer { question, .. } => Self::Question(*question),
            Arrival::Begin
            | Arrival::Message(_)
            | Arrival::Reply(_)
            | Arrival::Broke { .. }
            | Arrival::Cut(_)
            | Arrival::Exhausted(_)
            | Arrival::Tick
            | Arrival::Cancel
            | Arrival::Recovered => Self::Run,
        }
    }
    fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Call(_) => "call",
            Self::Approval(_) => "approval",
            Self::Question(_) => "question",
        }
    }
}

/// What whoever sent a letter is told.
pub(crate) fn answer_for<T>(
    fate: Fate<'_>,
    subject: Subject,
    read: impl Fn(&Run) -> Option<T>,
) -> Result<T, IntakeError> {
    let unknown = || IntakeError::Unknown(subject.name());
    match fate {
        Fate::Taken(run) | Fate::Rejected(run, Rejected::Repeated) => read(run).ok_or_else(unknown),
        Fate::Rejected(run, rejected) => Err(refusal(run, subject, rejected)),
        Fate::NoRun => Err(unknown()),
        Fate::Busy => Err(IntakeError::Busy(
            "too many results wait for the model's reply to end; try again".into(),
        )),
        Fate::Failed(error) => Err(IntakeError::Store(error)),
    }
}

fn refusal(run: &Run, subject: Subject, rejected: Rejected) -> IntakeError {
    let unknown = IntakeError::Unknown(subject.name());
    match rejected {
        Rejected::Unknown | Rejected::NotYet | Rejected::OutOfTurn | Rejected::Repeated => unknown,
        Rejected::Different => match subject {
            Subject::Call(call) => receipt(run, call).map_or(unknown, |winner| IntakeError::Conflict {
                winner: Box::new(winner),
            }),
            Subject::Approval(approval) => {
                decided(run, approval).map_or(unknown, |winner| IntakeError::DecidedOtherwise {
                    winner: Box::new(winner),
                })
            }
            Subject::Question(question) => {
                responded(run, question).map_or(unknown, |winner| IntakeError::RespondedOtherwise {
                    winner: Box::new(winner),
                })
            }
            Subject::Run => IntakeError::MessageIdReused,
        },
        Rejected::Ended(status) => IntakeError::Ended(status),
        Rejected::Gone { code, message } => IntakeError::Gone { code, message },
        Rejected::NotAClientCall => IntakeError::NotAClientCall,
        Rejected::NotOffered => IntakeError::NotOffered,
        Rejected::NotApproved => IntakeError::NotApproved,
        Rejected::NotAnApprover => IntakeError::NotAnApprover,
        Rejected::Held(claim) => IntakeError::Held {
            holder: claim.holder,
            until: claim.until,
        },
        Rejected::Invalid(problems) => IntakeError::Invalid(problems),
        Rejected::TooCostly(problem) => IntakeError::TooCostly(problem),
    }
}
