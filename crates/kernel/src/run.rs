//! A run as a state machine. [`Run::take`] checks an arrival and gives the events it causes; replaying stored
//! events rebuilds the same state; [`Run::due`] says what must be under way now. What is due is a function of
//! the state, so going on after a crash is the same as going on.

mod answer;
mod approve;
mod consent;
mod effort;
mod pause;
mod pipeline;
mod question;
mod replay;
mod reservation;
mod state;
mod take;
mod tell_above;

pub use answer::json_in;
pub use consent::Consent;
pub use pipeline::check_arguments;
pub use replay::tool_ref;
pub use state::{DecisionRecord, MessageRecord, RunState, Verdict};

use std::sync::Arc;
use std::time::Duration;

use crate::agent::Agent;
use crate::call::{Asks, Call, CallState, ErrorCode, Handle, Outcome};
use crate::event::{
    Budget, CallRequest, ChildStatus, Claim, ContextCut, FinishReason, Status, Usage, nobody,
};
use crate::id::{ApprovalId, CallId, EntityId, QuestionId, RunId};
use crate::json::Json;
use crate::message::Message;
use crate::name::ToolName;
use crate::problem::Problem;
use crate::prompt::Turn;
use crate::question::{Asked, Question, Response};
use crate::time::Time;
use crate::tool::{Decider, Placement, Toolbox};
use state::Phase;

/// How long a question to a person stays open, where its tool does not say.
pub const APPROVAL_EXPIRY: Duration = Duration::from_secs(24 * 3600);

/// One activation of an agent.
#[derive(Debug, Clone)]
pub struct Run {
    id: RunId,
    agent: Arc<Agent>,
    tools: Arc<Toolbox>,
    depth: u32,
    /// Of the agent.
    revision: u32,
    /// What the run at the top and all below it may use up.
    budget: Budget,
    /// What its events say of it.
    state: RunState,
    /// What the client says was said before: when the agent takes its word, or when the space began with the run.
    told_before: Option<Arc<[Arc<Turn>]>>,
    /// The last cut of what the model is given.
    cut: Option<Arc<ContextCut>>,
    /// Turns of the run when it was made.
    cut_turns: usize,
    /// The call that the run is, if no model writes its calls.
    request: Option<Arc<CallRequest>>,
    /// The only member of the space that may execute its client calls; none for every member.
    offered_to: Option<EntityId>,
    /// Names of the tools that the request brought.
    brought: Vec<ToolName>,
}

/// Something that happens to a run.
#[derive(Debug, Clone)]
pub enum Arrival {
    /// A worker picked it up.
    Begin,
    /// Somebody spoke.
    Message(Message),
    /// The model replied.
    Reply(Reply),
    /// The model's request failed.
    Broke {
        /// In which step.
        step: u32,
        /// How often that step had failed before.
        failures: u32,
        /// The model adapter's error, for the log and for backends.
        error: String,
        /// Whether asking again may help.
        retryable: bool,
        /// The vendor asked to wait so long.
        retry_after: Option<Duration>,
    },
    /// The next request would be too long: what is left out of it.
    Cut(Box<ContextCut>),
    /// A signal from outside for a call that waits for one.
    Signal {
        /// Id of the tool call.
        call: CallId,
        /// The progress value.
        value: Json,
    },
    /// The run at the top and all below it have used up what they may.
    Exhausted(String),
    /// A call on the gateway's side starts; stored first, so that a crash is not silent.
    Started {
        /// Id of the tool call.
        call: CallId,
    },
    /// Somebody else carries a call on; stored first, so that a crash cannot lose track of it. For a call that is
    /// delegated already: the same task is still under way, look again later.
    Delegated {
        /// Id of the tool call.
        call: CallId,
        /// The call's [`leg`](Call::leg) when this began: on another one it is void.
        leg: u32,
        /// Names who carries the call on.
        handle: Handle,
        /// When to look again; at the tool's timeout when not given.
        check_at: Option<Time>,
        /// That a child run waits for a person or a client, or no longer does.
        child: Option<ChildStatus>,
        /// What people are asked, less what they are asked already. Checked before by
        /// [`problem_of`](crate::question::problem_of).
        questions: Vec<Question>,
    },
    /// A call on the gateway's side ended, or a delegated one.
    Output {
        /// Id of the tool call.
        call: CallId,
        /// The call's [`leg`](Call::leg) when this began: on another one it is void.
        leg: u32,
        /// The call's outcome.
        outcome: Outcome,
        /// What the tool's code wrote to its log.
        log: Option<String>,
    },
    /// Whoever runs a call had the run's model asked. Also of a call that has ended meanwhile: it was paid for.
    Sampled {
        /// Id of the tool call.
        call: CallId,
        /// Which one of the call, counted from 1. One that was counted before is void.
        number: u32,
        /// What it cost.
        usage: Usage,
    },
    /// A client says how a call ended.
    Result {
        /// Id of the tool call.
        call: CallId,
        /// The call's outcome.
        outcome: Outcome,
        /// The principal that says so; none for a backend.
        by: Option<EntityId>,
    },
    /// A client wants to execute a call, or says that it still does.
    Claim {
        /// Id of the tool call.
        call: CallId,
        /// Who, and until when.
        claim: Claim,
    },
    /// A client gives a call back.
    Release {
        /// Id of the tool call.
        call: CallId,
        /// Client that held the claim.
        holder: String,
        /// The principal that it belongs to.
        by: Option<EntityId>,
    },
    /// A person answers a question.
    Decide {
        /// The approval.
        approval: ApprovalId,
        /// The decision.
        verdict: Verdict,
        /// Whether a yes is to stand for later calls; as the tool says when not given.
        remember: Option<bool>,
        /// Who decides.
        by: Box<Decider>,
    },
    /// Somebody answers a question that a tool asked in the middle of a call.
    Answer {
        /// The question.
        question: QuestionId,
        /// The answer.
        response: Response,
        /// Who answers.
        by: Box<Decider>,
    },
    /// Time passed.
    Tick,
    /// Somebody wants it to stop.
    Cancel,
    /// A worker took it over from one that died.
    Recovered,
}

impl Arrival {
    /// Whether it says where a child run stood when it was looked at, which may have changed since.
    pub fn is_child_status(&self) -> bool {
        matches!(self, Self::Delegated { child: Some(_), .. })
    }
}

/// A whole reply of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// To which step: a reply that was taken before is not taken for the next one.
    pub step: u32,
    /// What it said, in order. Calls are numbered by their order here.
    pub parts: Vec<ReplyPart>,
    /// What the person whom the run works for was granted when it came; looked up for tools that need it.
    pub person_grants: Vec<String>,
    /// Outputs of earlier runs of the agent in the space, for the same person; looked up for tools whose prerequisites
    /// count in the space.
    pub earlier: Vec<EarlierOutput>,
    /// Yeses that are remembered for the agent in the space; looked up for tools that remember them.
    pub consents: Vec<Consent>,
    /// Why it stopped.
    pub reason: FinishReason,
    /// Tokens that were used.
    pub usage: Usage,
}

/// An output that a tool gave in an earlier run.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierOutput {
    /// The tool; never one that a request brought.
    pub tool: ToolName,
    /// Where it ran.
    pub placement: Placement,
    /// When it was stored.
    pub time: Time,
}

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyPart {
    /// Text.
    Text {
        /// Names the part in the stream.
        id: Arc<str>,
        /// The text.
        text: String,
    },
    /// Reasoning.
    Reasoning {
        /// Names the part in the stream.
        id: Arc<str>,
        /// The text.
        text: String,
        /// The vendor's signature.
        signature: Option<String>,
    },
    /// A use of a tool.
    Call {
        /// The name the model used.
        name: Arc<str>,
        /// JSON text; may be malformed.
        arguments: String,
        /// What the vendor wants back with it.
        signature: Option<String>,
    },
}

/// Why an arrival was not taken. The run is as it was.
#[derive(Debug, Clone, PartialEq)]
pub enum Rejected {
    /// No such call or question.
    Unknown,
    /// The call may be announced in a moment: keep the arrival and bring it again when the step is whole.
    NotYet,
    /// Not now: a reply that nobody asked for, a call that does not run.
    OutOfTurn,
    /// The run has ended.
    Ended(Status),
    /// The same was taken before.
    Repeated,
    /// A decision of somebody who may not decide.
    NotAnApprover,
    /// Another value was taken before.
    Different,
    /// It was settled without its executor.
    Gone {
        /// Why it was settled, for programs.
        code: ErrorCode,
        /// Why, in words.
        message: String,
    },
    /// The call is not for a client to answer.
    NotAClientCall,
    /// The call is offered to another member of the space alone.
    NotOffered,
    /// A person has to decide first.
    NotApproved,
    /// Another client holds the call.
    Held(Claim),
    /// The value does not fit the schema.
    Invalid(Vec<Problem>),
    /// Checking the value against its schema could take too long.
    TooCostly(Problem),
}

impl Rejected {
    /// The problems at their places in what was handed in, of which the value stands there.
    fn within(self, place: &str) -> Self {
        match self {
            Self::Invalid(problems) => {
                let placed = |problem: Problem| {
                    let pointer = format!("{place}{}", problem.pointer);
                    Problem::new(pointer, problem.message)
                };
                Self::Invalid(problems.into_iter().map(placed).collect())
            }
            other => other,
        }
    }
}

/// What must be under way now.
#[derive(Debug, Clone, Copy)]
pub enum Due<'a> {
    /// Ask the model; of a run that is a call without one, write that call.
    Ask {
        /// For this step.
        step: u32,
        /// How often it has failed.
        failures: u32,
        /// Not before this moment.
        not_before: Option<Time>,
    },
    /// Run this call on the gateway's side.
    Call(&'a Call),
}

impl Run {
    /// The run's id.
    pub fn id(&self) -> RunId {
        self.id
    }
    /// The agent of the run.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }
    /// What its events say of it.
    pub fn state(&self) -> &RunState {
        &self.state
    }
    /// The tools of the run.
    pub fn tools(&self) -> &Arc<Toolbox> {
        &self.tools
    }
    /// Which revision of the agent it follows.
    pub fn revision(&self) -> u32 {
        self.revision
    }
    /// What the run at the top and all below it may use up.
    pub fn budget(&self) -> Budget {
        self.budget
    }
    /// Whether others stand above or below it.
    pub fn is_in_tree(&self) -> bool {
        let child = |call: &Call| {
            call.definition
                .as_ref()
                .is_some_and(|tool| tool.execution.is_run())
        };
        self.depth > 0 || self.state.calls.iter().any(child)
    }
    /// Whom the step under way works for: the person who wrote the last message before it, here or above. Nobody if a
    /// backend or a plan wrote that.
    pub fn speaker(&self) -> Option<EntityId> {
        self.state.sender.speaker
    }
    /// On whose behalf it works: the speaker, or who asked for the plan that wrote the last message. What is theirs may
    /// be kept for them; grants go by the speaker alone.
    pub fn works_for(&self) -> Option<EntityId> {
        self.state.sender.works_for.person()
    }
    /// Everybody besides the speaker who wrote to the run or had a plan write to it. The person it works for comes first, or
    /// [`nobody`] if it works for none of them.
    pub fn others_behind(&self) -> Vec<EntityId> {
        let first = self.works_for();
        let mut others: Vec<EntityId> = self.state.speakers.clone();
        others.retain(|one| Some(*one) != first);
        match first {
            Some(first) if self.speaker().is_none() => others.insert(0, first),
            None if !others.is_empty() => others.insert(0, nobody()),
            Some(_) | None => {}
        }
        others
    }
    /// Whether somebody wrote to it or to the runs above it whom the gateway does not know.
    pub fn has_unknown_requester(&self) -> bool {
        self.state.unknown_speaker
    }
    /// The only member of the space that may execute its client calls; none for every member.
    pub fn offered_to(&self) -> Option<EntityId> {
        self.offered_to
    }
    /// How many runs stand above it.
    pub fn depth(&self) -> u32 {
        self.depth
    }
    /// The step it is in.
    pub fn step(&self) -> u32 {
        self.state.step
    }
    /// Tokens that were used so far.
    pub fn usage(&self) -> Usage {
        self.state.usage
    }
    /// Every call so far, in call order.
    pub fn calls(&self) -> &[Call] {
        &self.state.calls
    }
    /// A call by id.
    pub fn call(&self, id: CallId) -> Option<&Call> {
        self.state.call(id)
    }
    /// The id of the call that the model asks for in `slot` of the reply that is arriving.
    pub fn next_call(&self, slot: u32) -> CallId {
        CallId {
            run: self.id,
            number: self.state.calls.len() as u32 + slot,
        }
    }
    /// A decision that was taken.
    pub fn decision(&self, approval: ApprovalId) -> Option<&DecisionRecord> {
        self.state.decision(approval)
    }
    /// A question that a tool asked in the middle of a call.
    pub fn question(&self, question: QuestionId) -> Option<&Asked> {
        self.state.question(question)
    }
    /// The last cut of what the model is given, if there was one in this run.
    pub fn cut(&self) -> Option<&Arc<ContextCut>> {
        self.cut.as_ref()
    }
    /// Whether the last cut leaves out the same, and nothing was said since.
    fn is_cut_so(&self, cut: &ContextCut) -> bool {
        let same = |last: &ContextCut| {
            (last.from, last.told, last.result_bytes) == (cut.from, cut.told, cut.result_bytes)
        };
        self.cut.as_deref().is_some_and(same) && self.cut_turns == self.state.turns().len()
    }
    /// The conversation before the run as the client told it, when that counts; the log's otherwise.
    pub fn told_before(&self) -> Option<&Arc<[Arc<Turn>]>> {
        self.told_before.as_ref()
    }
    /// The run's own conversation up to the step that is being asked.
    pub fn turns(&self) -> &[Arc<Turn>] {
        self.state.turns()
    }

    /// The call that the run is, for one without a model: the reply to its only step is this call. Nobody may be asked
    /// for another.
    pub fn request(&self) -> Option<&Arc<CallRequest>> {
        self.request.as_ref()
    }

    /// Where it stands, by what it waits for.
    pub fn status(&self) -> Status {
        match &self.state.phase {
            Phase::Queued => Status::Queued,
            Phase::Asking { .. } => Status::Running,
            Phase::Ended(end) => end.status,
            Phase::Calling { first } => {
                // Whoever has something to do is told first: people, then clients; time takes care of itself.
                let mut status = Status::WaitingTime;
                for call in &self.state.calls[*first as usize..] {
                    match &call.state {
                        CallState::Ready | CallState::Executing | CallState::Delegated { asks: None, .. } => {
                            return Status::Running;
                        }
                        // Its answer stands in this log before the next look at the child run says that it goes on.
                        CallState::Delegated {
                            asks: Some((Asks::Child(_), _)),
                            ..
                        } if !self.hears_questions() => return Status::Running,
                        CallState::AwaitsApproval { .. } => status = Status::WaitingApproval,
                        CallState::Delegated {
                            asks: Some((asks, _)),
                            ..
                        } if asks.status() == Status::WaitingApproval => status = Status::WaitingApproval,
                        CallState::Open { .. } | CallState::Delegated { .. }
                            if status == Status::WaitingTime =>
                        {
                            status = Status::WaitingTool
                        }
                        CallState::Open { .. }
                        | CallState::Delegated { .. }
                        | CallState::Paused(_)
                        | CallState::Settled(_) => {}
                    }
                }
                status
            }
        }
    }

    /// Whether a run below may wait for a person or a client. The run at the top has what is asked in its own log, a run
    /// between knows only what it was told of its child.
    fn hears_questions(&self) -> bool {
        self.depth > 0 || self.state.pending_below().any(|(_, call)| call.state.asks())
    }

    /// What must be under way now, in order. Nothing for a run that only waits: it costs no memory.
    pub fn due(&self) -> Vec<Due<'_>> {
        match &self.state.phase {
            Phase::Queued | Phase::Ended(_) => Vec::new(),
            Phase::Asking { failures, not_before } => {
                vec![Due::Ask {
                    step: self.state.step,
                    failures: *failures,
                    not_before: *not_before,
                }]
            }
            Phase::Calling { first } => self.state.calls[*first as usize..]
                .iter()
                .filter(|call| matches!(call.state, CallState::Ready | CallState::Executing))
                .map(Due::Call)
                .collect(),
        }
    }

    /// The calls that somebody else carries on, and who does.
    pub fn delegated(&self) -> impl Iterator<Item = (&Call, &Handle)> {
        self.state.pending().filter_map(|call| match &call.state {
            CallState::Delegated { handle, .. } => Some((call, handle)),
            _ => None,
        })
    }

    /// The earliest moment at which [`Arrival::Tick`] would change something, or a delegated call must be looked at.
    pub fn wake_at(&self) -> Option<Time> {
        self.wakes().min()
    }
    /// The earliest such moment after `now`.
    pub fn wake_after(&self, now: Time) -> Option<Time> {
        self.wakes().filter(|moment| *moment > now).min()
    }
    fn wakes(&self) -> impl Iterator<Item = Time> {
        let calls = match &self.state.phase {
            Phase::Calling { first } => &self.state.calls[*first as usize..],
            Phase::Queued | Phase::Asking { .. } | Phase::Ended(_) => &[],
        };
        calls.iter().flat_map(wakes_of)
    }
}

fn wakes_of(call: &Call) -> Vec<Time> {
    match &call.state {
        CallState::AwaitsApproval { expires_at, .. } => vec![*expires_at],
        CallState::Open { deadline, claim } => {
            let until = claim.as_ref().map(|claim| claim.until);
            until.into_iter().chain([*deadline]).collect()
        }
        CallState::Paused(pause) => vec![pause.until],
        CallState::Delegated { check_at, .. } => {
            let expiries = call.questions.open().map(|question| question.expires_at);
            let times = [*check_at, deadline(call)];
            times.into_iter().flatten().chain(expiries).collect()
        }
        CallState::Ready | CallState::Executing | CallState::Settled(_) => Vec::new(),
    }
}

/// When a delegated call is given up; never while it waits for a person or a client, who have deadlines of their own.
/// What runs in the gateway itself, the engine times.
fn deadline(call: &Call) -> Option<Time> {
    match call.state {
        CallState::Delegated { asks: Some(_), .. } => None,
        _ => Some(call.deadline()),
    }
}
