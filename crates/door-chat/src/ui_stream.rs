//! A run's events as the AI SDK's UI message stream. The rules that its clients live by:
//!
//! - A response is `start`, steps, `finish`, `[DONE]`; it ends when the run waits for the client, and the answer
//!   goes on with the next request.
//! - A client sends the same again, without end, when the last step of its message holds settled client calls
//!   and nothing else. So a response that ends a run after such calls opens one more step and leaves something in it.
//! - A client executes a call as soon as it reads `tool-input-available`, unless it says `providerExecuted`. So
//!   that is said of every call on the gateway's side and of every call that is settled already, and a call that
//!   nobody allowed yet is told by its input alone: it is neither to be executed nor to be taken for done.
//! - A client sends what it was asked for by itself when every call of the last step has its answer. The call that a
//!   child run works for has none until the child run's question is answered. So that question opens a step of its own.
//! - A step goes with the message after which it began: one that is spoken into it ends this answer with the step,
//!   and its own answer begins with the next. Calls go with the newest message, whose reader can answer them.
//! - Chunks and members that a version does not know end its stream. Only those of the dialect are written; what is
//!   ours stands in `data-` parts.
//!
//! [`UiStream`] reads each event once. What is known of the run is the kernel's [`RunState`]; what is known of this
//! answer is its open step, the [`Reply`] that streams, and the parts under way. Everything it writes passes through
//! [`Response`], which drops what this client has read.

mod call_parts;
mod questions;
mod reply;
mod response;
mod text_parts;

use std::collections::HashSet;

use toolgate_access::ENDED;
use toolgate_engine::feed::Batch;
use toolgate_kernel::event::{EndReason, Event, RunFinish, Seq, Status, ToolApprovalResponse, Usage};
use toolgate_kernel::id::{CallId, MessageId, RunId, SpaceId};
use toolgate_kernel::run::RunState;
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::view;

use crate::body::Dialect;
use crate::chunk::{Chunk, Place};
use crate::mismatch::Warning;
use crate::ui_event::{UiEvent, is_ours};
use call_parts::CallParts;
use reply::{Overtaken, Reply};
use response::Response;
use text_parts::TextParts;
use toolgate_http::meter::Metered;
use toolgate_http::run_state::CountedState;
use toolgate_http::stream::{ACCESS_ENDED, Cut, Follow, Page, Watch};

pub(crate) use response::StartAt;

/// Writes one answer.
pub(crate) struct UiStream {
    watch: Watch,
    id: RunId,
    space: SpaceId,
    reader: Decider,
    /// The run as far as it is known: up to the beginning of the request where that was looked up, and then up to the
    /// last event that was read.
    run: RunState,
    /// Keeps the state counted.
    _bytes: Option<Metered>,
    response: Response,
    step: Option<LastStep>,
    reply: Reply,
    text: TextParts,
    calls: CallParts,
    /// Stands in every `data-run` of this response: in a chunk that is there anyway, since clients count chunks.
    warning: Option<Warning>,
}

/// The last step of the client's message. What becomes of its calls after a response has ended goes on in it.
struct LastStep {
    /// Where it began; names its `data-run`.
    began: Seq,
    /// Its `finish-step` is still to be written. False once a response has ended with it: a second one would end a step
    /// that the next response never started.
    is_unfinished: bool,
    /// The client would send again if the answer ended here: it holds settled client calls.
    invites_resend: bool,
    /// Questions of child runs in it that nobody has answered.
    open_questions: HashSet<CallId>,
}

impl UiStream {
    /// `known` are the calls that the client's message holds already.
    pub fn new(
        follow: &Follow,
        id: RunId,
        reader: Decider,
        dialect: Dialect,
        from: StartAt,
        known: HashSet<CallId>,
    ) -> Self {
        Self {
            watch: Watch::new(follow),
            id,
            space: follow.space,
            reader,
            run: RunState::default(),
            _bytes: None,
            response: Response::new(from, dialect),
            step: None,
            reply: Reply::Over,
            text: TextParts::default(),
            calls: CallParts::new(known),
            warning: None,
        }
    }

    /// Tells the client what of its request was not taken as it meant it.
    pub fn with_warning(self, warning: Option<Warning>) -> Self {
        Self { warning, ..self }
    }

    /// Starts from what is known of the run: its calls that are settled are not to be executed any more.
    pub fn with_state(self, state: CountedState) -> Self {
        let (run, bytes) = state.into_parts();
        Self {
            run,
            _bytes: Some(bytes),
            ..self
        }
    }

    fn write_event(&mut self, seq: Seq, event: &Event, out: &mut Vec<u8>) {
        let is_below = matches!(event, Event::ChildCall(_));
        let event = UiEvent::of(event);
        if !matches!(event, UiEvent::ApprovalRequest(_)) {
            self.calls.release_held(&mut self.response.to(out));
        }
        if self.is_of_another_answer(&event) {
            return;
        }
        match event {
            UiEvent::Message(message) => self.hear(message.message_id, out),
            UiEvent::StepStart => {
                self.reply = Reply::NEW;
                self.open_step(seq, out);
            }
            UiEvent::StepRetry => self.retry(out),
            UiEvent::StepFinish => {
                if self.reply.finish() {
                    self.end_early(out);
                }
            }
            UiEvent::PartStart(kind, id) => {
                self.reply.mark_told();
                self.text.start(kind, id, &mut self.response.to(out));
            }
            UiEvent::PartDelta(kind, id, delta) => {
                self.reply.mark_told();
                self.text.add(kind, id, delta, &mut self.response.to(out));
            }
            UiEvent::PartEnd(kind, id, text) => self.text.end(kind, id, text, &mut self.response.to(out)),
            UiEvent::InputStart(tool) => {
                self.reply.mark_told();
                self.calls.input_starts(&tool, &mut self.response.to(out));
            }
            UiEvent::InputDelta(tool, delta) => {
                self.calls.input_goes_on(&tool, delta, &mut self.response.to(out));
            }
            UiEvent::Input(input) => {
                if is_below {
                    self.open_step_of_questions(seq, input.tool.call, out);
                }
                let is_settled = self.is_settled(input.tool.call);
                self.calls
                    .input_ends(&input, is_settled, &mut self.response.to(out));
            }
            UiEvent::ApprovalRequest(e) => self.calls.asks(e, &mut self.response.to(out)),
            UiEvent::ApprovalResponse(e) => self.decided(e, out),
            UiEvent::Progress(tool, progress) if self.calls.knows(tool.call) => {
                let data = serde_json::json!({"toolCallId": tool.call, "progress": progress});
                self.response.to(out).chunk(|out| {
                    Chunk::new(out, "data-progress")
                        .with("data", data)
                        .flag("transient", true)
                        .end();
                });
            }
            UiEvent::Question(e) => self.write_question(e.question_id, out),
            UiEvent::QuestionResponse(e) => {
                self.write_question(e.question_id, out);
                self.close_when_answered(e.tool_call_id);
            }
            UiEvent::Settled(tool, outcome) => {
                self.write_closed_questions(tool.call, out);
                self.close_question(tool.call);
                if let Some(step) = &mut self.step {
                    step.invites_resend |= !is_ours(&tool) && self.calls.knows(tool.call);
                }
                self.calls.settle(&tool, &outcome, &mut self.response.to(out));
            }
            UiEvent::RunFinish(e) => self.finish(seq, e, out),
            UiEvent::Progress(..) | UiEvent::Told(_) | UiEvent::Other => {}
        }
    }

    /// Whether an event of the step under way is told by another answer.
    fn is_of_another_answer(&self, event: &UiEvent<'_>) -> bool {
        match event {
            UiEvent::PartStart(..) | UiEvent::PartDelta(..) | UiEvent::PartEnd(..) => self.reply.hides_text(),
            UiEvent::InputStart(_)
            | UiEvent::InputDelta(..)
            | UiEvent::Input(_)
            | UiEvent::Question(_)
            | UiEvent::ApprovalRequest(_) => self.reply.hides_calls(),
            UiEvent::Message(_)
            | UiEvent::StepStart
            | UiEvent::StepRetry
            | UiEvent::StepFinish
            | UiEvent::ApprovalResponse(_)
            | UiEvent::QuestionResponse(_)
            | UiEvent::Progress(..)
            | UiEvent::Settled(..)
            | UiEvent::RunFinish(_)
            | UiEvent::Told(_)
            | UiEvent::Other => false,
        }
    }

    /// A message: the one that this answers, one before it, or one with which this answer is over.
    fn hear(&mut self, message: MessageId, out: &mut Vec<u8>) {
        if self.response.answers(message) {
            // What was read before is another answer's.
            self.calls.clear();
            self.text.clear();
            self.step = None;
            self.reply.precede();
            self.response.begin(Some(message), out);
        } else if !self.response.is_writing() {
            self.reply.precede();
        } else if self.reply.overtake() == Overtaken::Now {
            self.end_early(out);
        }
    }

    /// Another message was spoken: the rest is told by its answer.
    fn end_early(&mut self, out: &mut Vec<u8>) {
        self.text.close(&mut self.response.to(out));
        self.end(out, "other");
    }

    fn open_step(&mut self, seq: Seq, out: &mut Vec<u8>) {
        self.close_step(out);
        self.calls.step_begins();
        self.step = Some(LastStep {
            began: seq,
            is_unfinished: true,
            invites_resend: false,
            open_questions: HashSet::new(),
        });
        self.response
            .to(out)
            .chunk(|out| Chunk::new(out, "start-step").end());
        self.write_status(Status::Running, None, out);
    }

    /// Opens a step for what a child run asks, unless another question is open in this one: a client sends the answers of
    /// its last step only, so questions that are open together stand together.
    fn open_step_of_questions(&mut self, seq: Seq, question: CallId, out: &mut Vec<u8>) {
        if self
            .step
            .as_ref()
            .is_none_or(|step| step.open_questions.is_empty())
        {
            self.open_step(seq, out);
        }
        if let Some(step) = &mut self.step {
            step.open_questions.insert(question);
        }
    }

    /// Nobody is asked about this call any more.
    fn close_question(&mut self, call: CallId) {
        if let Some(step) = &mut self.step {
            step.open_questions.remove(&call);
        }
    }

    fn close_step(&mut self, out: &mut Vec<u8>) {
        let mut sink = self.response.to(out);
        self.calls.close_streaming(&mut sink);
        if self.step.take().is_some_and(|step| step.is_unfinished) {
            sink.chunk(|out| Chunk::new(out, "finish-step").end());
        }
    }

    /// The response that told the last step has ended.
    fn mark_finished(&mut self) {
        if let Some(step) = &mut self.step {
            step.is_unfinished = false;
        }
    }

    /// Where the run stands: one part per step, which the client keeps.
    fn write_status(&mut self, status: Status, usage: Option<Usage>, out: &mut Vec<u8>) {
        let Some(step) = &self.step else { return };
        let (run, space, step) = (self.id, self.space, step.began.index());
        let warning = self.warning.clone();
        self.response.to(out).chunk(|out| {
            let mut data = serde_json::json!({"runId": run, "spaceId": space, "status": status.as_str()});
            if let Some(warning) = warning {
                data["warnings"] = serde_json::json!([warning]);
            }
            if let Some(usage) = usage {
                data["usage"] = serde_json::to_value(usage).expect("numbers are JSON");
            }
            Chunk::new(out, "data-run")
                .with("id", format!("{run}.{step}"))
                .with("data", data)
                .end();
        });
    }

    /// What the step has streamed is void. Only the newest clients can take it back.
    fn retry(&mut self, out: &mut Vec<u8>) {
        if self.reply.is_fresh() {
            return;
        }
        match self.response.dialect {
            Dialect::V7 => {
                self.reply.mark_void();
                self.text.clear();
                self.calls.forget_streaming();
                self.response
                    .to(out)
                    .chunk(|out| Chunk::new(out, "reset-step").end());
                self.write_status(Status::Running, None, out);
            }
            Dialect::V5 | Dialect::V6 => self.text.close(&mut self.response.to(out)),
        }
    }

    /// A yes: the call runs with the input that was approved. A no is told by what becomes of the call.
    fn decided(&mut self, event: &ToolApprovalResponse, out: &mut Vec<u8>) {
        if !event.approved || is_ours(&event.tool()) {
            self.close_question(event.tool_call_id);
        }
        if event.approved && self.calls.knows(event.tool_call_id) {
            let call = self.run.call(event.tool_call_id);
            let input = event.input.as_ref().or(call.and_then(|call| call.input.as_ref()));
            let is_settled = call.is_some_and(|call| call.is_settled());
            let (tool, mut sink) = (event.tool(), self.response.to(out));
            match is_ours(&tool) && event.input.is_none() {
                true => self.calls.goes_on(&tool, input, is_settled, &mut sink),
                false => self.calls.offer(&tool, input, is_settled, &mut sink),
            }
        }
    }

    fn is_settled(&self, call: CallId) -> bool {
        self.run.call(call).is_some_and(|call| call.is_settled())
    }

    fn finish(&mut self, seq: Seq, event: &RunFinish, out: &mut Vec<u8>) {
        if event.status == Status::Failed {
            let words = event
                .error
                .clone()
                .unwrap_or_else(|| format!("the run failed: {}", finish_reason(event.reason)));
            return self.fail(words, out);
        }
        self.text.close(&mut self.response.to(out));
        if self.step.as_ref().is_none_or(|step| step.invites_resend) {
            self.open_step(seq, out);
        }
        self.write_status(event.status, Some(event.usage), out);
        if event.status == Status::Cancelled {
            self.close_step(out);
            self.response.to(out).chunk(|out| Chunk::new(out, "abort").end());
        }
        self.end(out, finish_reason(event.reason));
    }

    /// Ends the answer with an error.
    fn fail(&mut self, words: String, out: &mut Vec<u8>) {
        let mut sink = self.response.to(out);
        self.text.close(&mut sink);
        self.calls.close_streaming(&mut sink);
        sink.chunk(|out| Chunk::new(out, "error").with("errorText", words).end());
        self.response.done(out);
    }

    fn end(&mut self, out: &mut Vec<u8>, reason: &str) {
        self.close_step(out);
        self.response.finish(reason, out);
    }
}

impl Page for UiStream {
    fn reader(&self) -> &Decider {
        &self.reader
    }
    fn write(&mut self, batch: &Batch, out: &mut Vec<u8>) {
        for (seq, event) in batch.placed() {
            if self.response.is_over() || !self.watch.sees(seq, event) {
                continue;
            }
            let Some(seen) = view(event, &self.reader) else {
                continue;
            };
            if seq > self.run.seq() {
                self.run.apply(&seen, seq, batch.time());
            }
            let before = out.len();
            if let Some(place) = self.response.awaited_place()
                && seq > place.seq
            {
                self.text.resume(&place.told);
                if self.response.is_continuation() {
                    self.mark_finished();
                }
                self.response.begin(None, out);
            }
            // A client that comes back from behind this has read the end of the response that stopped here.
            if let Event::RunStatus(moved) = &*seen
                && moved.status.asks()
                && !self.response.is_writing()
            {
                self.mark_finished();
            }
            self.write_event(seq, &seen, out);
            if out.len() > before {
                let told = self.text.told();
                let line = Place { seq, told }.line();
                // The cursor stands with the last chunk of its event: who has read that has read all of it.
                let written = &out[before..out.len() - 2];
                let last = memchr::memmem::rfind(written, b"\n\n").map_or(before, |end| before + end + 2);
                out.splice(last..last, line.into_bytes());
            }
        }
    }
    fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }
    fn is_over(&mut self) -> bool {
        self.response.is_over() || self.watch.is_over()
    }
    fn close(&mut self, out: &mut Vec<u8>) {
        if self.response.is_over() {
            return;
        }
        if !self.response.is_writing() {
            self.response.begin(None, out);
        }
        if self.watch.is_over() {
            self.write_status(self.run.status(), None, out);
            return self.end(out, "tool-calls");
        }
        // The run has ended and the client had read it all: it still waits for a word.
        self.open_step(Seq(0), out);
        self.end(out, "other");
    }
    /// A clean end would read as success.
    fn part(&mut self, why: &str, _: &mut Vec<u8>) -> Result<(), Cut> {
        Err(Cut(why.to_owned()))
    }
    fn end_access(&mut self, out: &mut Vec<u8>) {
        if !self.response.is_writing() {
            self.response.begin(None, out);
        }
        self.fail(format!("{ACCESS_ENDED}: {ENDED}"), out);
    }
}

/// Why a run ended, in the client's words.
fn finish_reason(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Stop => "stop",
        EndReason::Length => "length",
        EndReason::ContentFilter => "content-filter",
        EndReason::ModelError | EndReason::InvalidOutput | EndReason::ToolError => "error",
        EndReason::MaxSteps | EndReason::Limit | EndReason::Cancelled => "other",
    }
}
