//! What the events of a run say of it: the one fold from a log to what a reader wants to know.
//!
//! [`Run`](super::Run) embeds it to decide what happens next; doors fold what [`view`](crate::view::view) lets
//! through, so a member that was redacted is absent here too. A new event or call state is thought about in
//! [`RunState::apply`], and then by whoever matches on it.

mod under_way;

use crate::call::{Call, CallState, ErrorCode, Outcome, Settled};
use crate::event::{
    CallRequest, ChildCall, Claim, Entry, Event, FinishReason, RunFinish, Said, Seq, Status, StepFinish,
    ToolApprovalResponse, ToolInputAvailable, Usage,
};
use crate::history::Transcript;
use crate::id::{ApprovalId, CallId, EntityId, MessageId, QuestionId, RunId};
use crate::json::Json;
use crate::message::{Message, WorksFor};
use crate::name::AgentName;
use crate::prompt::Turn;
use crate::question::{Asked, Questions};
use crate::time::Time;
use crate::tool::Decider;
use crate::view::view;
use std::sync::Arc;

use super::reservation::Reservations;

/// A run as its log tells it. May be folded from the middle of a log: calls and messages of before are then missing,
/// and everything else is as of the last event that said it.
#[derive(Debug, Clone)]
pub struct RunState {
    seq: Seq,
    pub(super) phase: Phase,
    /// The status that the log tells.
    pub(super) status: Status,
    /// Steps begun.
    pub(super) step: u32,
    /// When the last of them began.
    step_began: Time,
    /// Steps begun since somebody last spoke: `loop.maxSteps` counts these.
    pub(super) steps_since_message: u32,
    /// In call order, without a gap.
    pub(super) calls: Vec<Call>,
    pub(super) decisions: Vec<DecisionRecord>,
    pub(super) messages: Vec<MessageRecord>,
    pub(super) reservations: Reservations,
    /// Of the newest message that the step under way answers.
    pub(super) sender: Sender,
    /// Of the newest message, which the next step answers.
    newest_sender: Sender,
    /// Time zone of whoever wrote last and has one.
    time_zone: Option<String>,
    /// Everybody who wrote to the run, or for whom the gateway did.
    pub(super) speakers: Vec<EntityId>,
    /// Whether a message was for nobody who is known.
    pub(super) unknown_speaker: bool,
    pub(super) transcript: Transcript,
    pub(super) usage: Usage,
    finish_reason: Option<FinishReason>,
    /// Replies that are whole, or void because the step was asked again.
    replies: u32,
    /// What the runs below have asked here, in the order of their first questions.
    below: Vec<Below>,
}

/// Who is behind a message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sender {
    /// The person who wrote it; none for a backend and for a plan.
    pub speaker: Option<EntityId>,
    pub works_for: WorksFor,
}

/// What one run below asks people and clients: its calls, with gaps, and the decisions on them.
#[derive(Debug, Clone)]
struct Below {
    run: RunId,
    agent: AgentName,
    state: RunState,
}

/// What a run is waiting for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    /// To be picked up.
    Queued,
    /// The model's reply.
    Asking {
        /// How often this step was tried before.
        failures: u32,
        /// When it may be tried again.
        not_before: Option<Time>,
    },
    /// The calls from this number on. At least one is not settled between two `take`s.
    Calling {
        /// Index of the step's first call.
        first: u32,
    },
    /// Nothing.
    Ended(RunFinish),
}

/// A decision on an approval request, kept for whoever sends it again.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRecord {
    /// Id of the approval.
    pub approval: ApprovalId,
    /// The decision.
    pub verdict: Verdict,
    /// Place of the event that holds it; 0 until it is stored.
    pub seq: Seq,
    /// When it was stored.
    pub time: Time,
    /// Whether a person answered, or nobody did in time.
    pub answered: bool,
    /// Who decided, where it was an entity.
    pub by: Option<EntityId>,
    /// With a yes: SHA-256 of the input that runs, in hex.
    pub input_hash: Option<String>,
    /// Whether the yes stands for later calls too.
    pub remembered: bool,
    /// The person whom the run worked for then.
    pub works_for: Option<EntityId>,
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Yes; with another input when given.
    Approve(Option<Json>),
    /// No, and why.
    Deny(Option<String>),
}

/// A message that the run took.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageRecord {
    /// The message; kept whole because most are never compared, and a hash of each would cost every run.
    pub message: Message,
    /// Place of the event that holds it; 0 until it is stored.
    pub seq: Seq,
    replies_before: u32,
}

impl Default for RunState {
    fn default() -> Self {
        Self {
            seq: Seq(0),
            phase: Phase::Queued,
            status: Status::Queued,
            step: 0,
            step_began: Time(0),
            time_zone: None,
            steps_since_message: 0,
            calls: Vec::new(),
            decisions: Vec::new(),
            messages: Vec::new(),
            reservations: Reservations::default(),
            sender: Sender::default(),
            newest_sender: Sender::default(),
            speakers: Vec::new(),
            unknown_speaker: false,
            transcript: Transcript::default(),
            usage: Usage::default(),
            finish_reason: None,
            replies: 0,
            below: Vec::new(),
        }
    }
}

impl RunState {
    /// Folds the entries of one run, as `reader` may see them.
    pub fn of(log: &[Entry], reader: &Decider) -> Self {
        let mut state = Self::default();
        for entry in log {
            state.extend(entry, reader);
        }
        state
    }

    /// Folds one more entry, as `reader` may see it.
    pub fn extend(&mut self, entry: &Entry, reader: &Decider) {
        for (seq, event) in entry.placed() {
            if let Some(seen) = view(event, reader) {
                self.apply(&seen, seq, entry.time);
            }
        }
    }

    /// Place of the last event it has taken: a reader that follows from here on misses nothing.
    pub fn seq(&self) -> Seq {
        self.seq
    }
    /// Where the run stands, as of the last event that said so.
    pub fn status(&self) -> Status {
        self.status
    }
    /// How the run ended; none while it has not.
    pub fn end(&self) -> Option<&RunFinish> {
        match &self.phase {
            Phase::Ended(end) => Some(end),
            Phase::Queued | Phase::Asking { .. } | Phase::Calling { .. } => None,
        }
    }
    /// Why the model stopped last; none before its first reply.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.finish_reason
    }
    /// The step it is in, counted from 1; 0 before the first.
    pub fn step(&self) -> u32 {
        self.step
    }
    /// When the step it is in began.
    pub fn step_began(&self) -> Time {
        self.step_began
    }
    /// Time zone (IANA) of the person who wrote last, or of the space, if it was known.
    pub fn time_zone(&self) -> Option<&str> {
        self.time_zone.as_deref()
    }
    /// Tokens used by all steps together.
    pub fn usage(&self) -> Usage {
        self.usage
    }
    /// The person whom the step under way works for; nobody if a backend or a plan spoke last.
    pub fn speaker(&self) -> Option<EntityId> {
        self.sender.speaker
    }
    /// Every call so far, in call order.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }
    /// A call by id, also one of a run below that asked here.
    pub fn call(&self, id: CallId) -> Option<&Call> {
        let own = self.index(id).map(|index| &self.calls[index]);
        own.filter(|call| call.tool.call == id)
            .or_else(|| self.below(id.run)?.call(id))
    }
    /// Calls of runs below that ask here and have no outcome yet, each with its agent.
    pub fn pending_below(&self) -> impl Iterator<Item = (&AgentName, &Call)> {
        self.below.iter().flat_map(|below| {
            let calls = below.state.calls.iter().filter(|call| !call.is_settled());
            calls.map(move |call| (&below.agent, call))
        })
    }
    fn below(&self, run: RunId) -> Option<&Self> {
        self.below
            .iter()
            .find(|below| below.run == run)
            .map(|below| &below.state)
    }
    /// Calls that have no outcome yet, in call order: what the run waits for, each by its [`CallState`].
    pub fn pending(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| !call.is_settled())
    }
    /// Every decision that was taken, in order; those on calls of runs below that asked here come last.
    pub fn decisions(&self) -> impl Iterator<Item = &DecisionRecord> {
        let below = self.below.iter().flat_map(|below| &below.state.decisions);
        self.decisions.iter().chain(below)
    }
    /// A decision that was taken, also one on a call of a run below that asked here.
    pub fn decision(&self, approval: ApprovalId) -> Option<&DecisionRecord> {
        let own = self.decisions.iter().find(|record| record.approval == approval);
        own.or_else(|| self.below(approval.run)?.decision(approval))
    }
    /// A question that a tool asked in the middle of a call, also one of a run below that asked here.
    pub fn question(&self, id: QuestionId) -> Option<&Asked> {
        self.call(id.call)?.questions.get(id)
    }
    /// Whether the input of a call is one that somebody else than this person wrote when they approved it.
    pub fn is_edited_by_another(&self, call: CallId, person: EntityId) -> bool {
        let decision = self.decision(call.approval());
        decision.is_some_and(|decision| {
            matches!(decision.verdict, Verdict::Approve(Some(_))) && decision.by != Some(person)
        })
    }
    /// The messages it took, oldest first.
    pub fn messages(&self) -> &[MessageRecord] {
        &self.messages
    }
    /// The message with this id, if the run took it.
    pub fn message(&self, id: MessageId) -> Option<&MessageRecord> {
        self.messages
            .iter()
            .find(|record| record.message.message_id == id)
    }
    /// Whether a reply ended, or was asked for again, since this message: what it streamed is folded by now.
    pub fn has_replied_since(&self, message: &MessageRecord) -> bool {
        self.replies > message.replies_before
    }
    /// The conversation up to the step that is being asked, as a model reads it.
    pub fn turns(&self) -> &[Arc<Turn>] {
        self.transcript.turns()
    }
    /// The last text part of the model.
    pub fn text(&self) -> Option<&str> {
        self.transcript.text()
    }
    /// All text of the last step: the run's answer once it has ended.
    pub fn answer(&self) -> String {
        self.transcript.answer()
    }

    /// Takes the next event as a fact.
    pub fn apply(&mut self, event: &Event, seq: Seq, time: Time) {
        self.seq = self.seq.max(seq);
        self.transcript.apply(event);
        self.note_reservation(event, time);
        match event {
            Event::Said(e) => self.hear(e, seq),
            Event::CallRequest(e) => self.hear_request(e),
            Event::ContextCut(e) => self.count(e.usage.unwrap_or_default()),
            Event::StepStart(e) => {
                self.step = e.step;
                self.step_began = time;
                // A message that comes while the model writes is not what its calls were made for.
                self.sender = self.newest_sender;
                self.steps_since_message += 1;
                if self.status == Status::Queued {
                    self.status = Status::Running;
                }
                self.ask(0, None);
            }
            Event::StepRetry(e) => {
                self.replies += 1;
                self.ask(e.attempt, Some(e.not_before));
            }
            Event::ToolInputAvailable(e) => self.announce(e, time),
            Event::ToolApprovalRequest(e) => {
                let (approval, expires_at) = (e.approval_id, e.expires_at);
                self.change(e.tool_call_id, |call| {
                    call.asked = Some(Arc::new(e.clone()));
                    call.state = CallState::AwaitsApproval { approval, expires_at };
                });
            }
            Event::ToolApprovalResponse(e) => self.decide(e, seq, time),
            Event::ToolQuestion(e) => self.question_asked(e, time),
            Event::ToolQuestionResponse(e) => self.question_answered(e, seq, time),
            Event::ToolSampling(e) => {
                self.count(e.usage);
                self.change(e.tool_call_id, |call| call.samplings = e.number);
            }
            Event::ToolExecuting(e) => self.execute(e, time),
            Event::ToolReleased(e) => self.hold(e.tool_call_id, None),
            Event::ToolOutputAvailable(e) => {
                let outcome = Outcome::Output(e.output.clone().unwrap_or_else(Json::null));
                self.settle(e.tool_call_id, outcome, true, e.warning.clone(), seq, time);
            }
            Event::ToolOutputError(e) => {
                let code = e.code.unwrap_or(ErrorCode::ExecutionFailed);
                let outcome = Outcome::error(code, e.error_text.clone().unwrap_or_default());
                let answered = code == ErrorCode::ExecutionFailed;
                self.settle(e.tool_call_id, outcome, answered, None, seq, time);
            }
            Event::ToolOutputDenied(e) => {
                let outcome = Outcome::error(ErrorCode::Denied, e.reason.clone().unwrap_or_default());
                self.settle(e.tool_call_id, outcome, false, None, seq, time);
            }
            Event::StepFinish(e) => self.finish_step(e),
            Event::RunStatus(e) => self.status = e.status,
            Event::RunFinish(e) => {
                self.end_below(seq, time);
                self.status = e.status;
                self.usage = e.usage;
                self.phase = Phase::Ended(e.clone());
            }
            Event::ChildCall(e) => self.hear_below(e, seq, time),
            Event::RunStart(_)
            | Event::Told(_)
            | Event::TextStart(_)
            | Event::TextDelta(_)
            | Event::TextEnd(_)
            | Event::ReasoningStart(_)
            | Event::ReasoningDelta(_)
            | Event::ReasoningEnd(_)
            | Event::ToolInputStart(_)
            | Event::ToolInputDelta(_)
            | Event::ToolProgress(_)
            | Event::Notification(_)
            | Event::Opaque(_) => {}
        }
    }

    /// Notes where events were stored that [`RunState::apply`] took before they had a place.
    pub(super) fn stored(&mut self, entry: &Entry) {
        self.seq = self.seq.max(entry.last());
        for (seq, event) in entry.placed() {
            match event {
                Event::Said(e) => {
                    let id = e.message.message_id;
                    if let Some(record) = self
                        .messages
                        .iter_mut()
                        .rfind(|record| record.message.message_id == id)
                    {
                        record.seq = seq;
                    }
                }
                Event::ToolApprovalResponse(e) => {
                    if let Some(record) = self.decisions.iter_mut().find(|r| r.approval == e.approval_id) {
                        record.seq = seq;
                    }
                }
                Event::ToolQuestionResponse(e) => {
                    let id = e.question_id;
                    self.change(e.tool_call_id, |call| call.questions.note_place(id, seq));
                }
                _ => {
                    if let Some(call) = event.settles() {
                        self.change(call, |call| call.note_place(seq));
                    }
                }
            }
        }
    }

    fn hear_below(&mut self, e: &ChildCall, seq: Seq, time: Time) {
        let known = self.below.iter().position(|below| below.run == e.child_run_id);
        let index = known.unwrap_or_else(|| {
            self.below.push(Below {
                run: e.child_run_id,
                agent: e.agent.clone(),
                state: Self::default(),
            });
            self.below.len() - 1
        });
        self.below[index].state.apply(&e.event, seq, time);
    }

    /// With the run at the top everything below ends; each run below says so of itself a moment later.
    fn end_below(&mut self, seq: Seq, time: Time) {
        let calls = self.below.iter_mut().flat_map(|below| &mut below.state.calls);
        for call in calls.filter(|call| !call.is_settled()) {
            call.state = CallState::Settled(Settled {
                outcome: Outcome::error(ErrorCode::Cancelled, "the run has ended"),
                answered: false,
                warning: None,
                seq,
                time,
            });
        }
    }

    fn hear(&mut self, e: &Said, seq: Seq) {
        self.messages.push(MessageRecord {
            message: e.message.clone(),
            seq,
            replies_before: self.replies,
        });
        let sender = e.message.sender.as_ref();
        if let Some(zone) = sender.and_then(|sender| sender.time_zone.as_ref()) {
            self.time_zone = Some(zone.clone());
        }
        // Also nobody: a plan or a backend that joins the run must not have the grants of whoever spoke before.
        self.newest_sender = Sender {
            speaker: e.message.from,
            works_for: e.message.works_for(),
        };
        self.unknown_speaker |= e.message.person().is_none();
        if self.step == 0 {
            self.sender = self.newest_sender;
        }
        for person in e.message.people() {
            if !self.speakers.contains(&person) {
                self.speakers.push(person);
            }
        }
        self.steps_since_message = 0;
    }

    /// Whoever asks for a call is whom the run works for, as the writer of a message is.
    fn hear_request(&mut self, e: &CallRequest) {
        self.time_zone = e.sender.as_ref().and_then(|sender| sender.time_zone.clone());
        self.newest_sender = Sender {
            speaker: e.from,
            works_for: e.from.map_or(WorksFor::Unknown, WorksFor::Person),
        };
        self.sender = self.newest_sender;
        self.speakers.extend(e.from);
        self.unknown_speaker |= e.from.is_none();
    }

    fn ask(&mut self, failures: u32, not_before: Option<Time>) {
        self.phase = Phase::Asking { failures, not_before };
    }

    fn announce(&mut self, e: &ToolInputAvailable, time: Time) {
        self.expect_calls();
        self.calls.push(Call {
            tool: e.tool(),
            definition: None,
            input: e.input.clone(),
            signature: e.signature.clone(),
            consent: e.consent.clone(),
            asked: None,
            questions: Questions::default(),
            samplings: 0,
            resumes: None,
            leg: 0,
            since: time,
            state: released(e.deadline, e.reserved.clone()),
        });
    }

    fn decide(&mut self, e: &ToolApprovalResponse, seq: Seq, time: Time) {
        let verdict = match e.approved {
            true => Verdict::Approve(e.input.clone()),
            false => Verdict::Deny(e.reason.clone()),
        };
        self.decisions.push(DecisionRecord {
            approval: e.approval_id,
            verdict,
            seq,
            time,
            answered: !e.expired,
            by: e.by,
            input_hash: e.input_hash.clone(),
            // For nobody known would be for anybody whom a secret key speaks for.
            remembered: e.remembered && self.sender.works_for != WorksFor::Nobody,
            works_for: self.sender.works_for.person(),
        });
        // A no is followed by the event that settles the call.
        if e.approved {
            self.change(e.tool_call_id, |call| {
                if let Some(input) = &e.input {
                    call.input = Some(input.clone());
                }
                call.since = time;
                call.state = released(e.deadline, e.reserved.clone());
            });
        }
    }

    fn settle(
        &mut self,
        call: CallId,
        outcome: Outcome,
        answered: bool,
        warning: Option<String>,
        seq: Seq,
        time: Time,
    ) {
        self.change(call, |call| {
            call.state = CallState::Settled(Settled {
                outcome,
                answered,
                warning,
                seq,
                time,
            });
        });
    }

    fn finish_step(&mut self, e: &StepFinish) {
        self.count(e.usage);
        self.finish_reason = Some(e.reason);
        self.replies += 1;
        // A reply without calls: what follows in the same entry says how the run goes on.
        self.expect_calls();
    }

    fn count(&mut self, used: Usage) {
        self.usage.input_tokens += used.input_tokens;
        self.usage.output_tokens += used.output_tokens;
        self.usage.reasoning_tokens += used.reasoning_tokens;
        self.usage.cached_tokens += used.cached_tokens;
        self.usage.estimated |= used.estimated;
    }

    /// The model has replied: the calls from here on are those of its reply.
    fn expect_calls(&mut self) {
        if matches!(self.phase, Phase::Asking { .. }) {
            let first = self.calls.len() as u32;
            self.phase = Phase::Calling { first };
        }
    }

    fn change(&mut self, call: CallId, change: impl FnOnce(&mut Call)) {
        if let Some(call) = self.index(call).and_then(|index| self.calls.get_mut(index)) {
            change(call);
        }
    }

    /// Calls are announced in the order of their numbers; of a run below only some are.
    fn index(&self, call: CallId) -> Option<usize> {
        self.calls
            .binary_search_by_key(&call.number, |known| known.tool.call.number)
            .ok()
    }
}

/// The state of a call that nothing holds back: offered to clients until the deadline, first to the one that it is reserved
/// for, or free to run here.
fn released(deadline: Option<Time>, reserved: Option<Claim>) -> CallState {
    match deadline {
        Some(deadline) => CallState::Open {
            deadline,
            claim: reserved,
        },
        None => CallState::Ready,
    }
}
