//! A run's events as the AI SDK's UI message stream. The rules that its clients live by:
//!
//! - A response is `start`, steps, `finish`, `[DONE]`; it ends when the run waits for the client, and the answer
//!   comes with the next request.
//! - A client sends the same again, without end, when the last step of its message holds settled client calls
//!   and nothing else. So a response that ends a run after such calls opens one more step and leaves something in it.
//! - A client executes a call as soon as it reads `tool-input-available`, unless it says `providerExecuted`. So
//!   that is said of every call on the gateway's side and of every call that is settled already, and a call that
//!   nobody allowed yet is told by its input alone: it is neither to be executed nor to be taken for done.
//! - A step goes with the message after which it began: one that is spoken into it ends this answer with the step,
//!   and its own answer begins with the next. Calls go with the newest message, whose reader can answer them.
//! - Chunks and members that a version does not know end its stream. Only those of the dialect are written; what is
//!   ours stands in `data-` parts.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use toolgate_engine::feed::Batch;
use toolgate_http::stream::{Cut, Follow, Page, Watch};
use toolgate_kernel::event::{
    EndReason, Event, RunFinish, Seq, Status, ToolApprovalRequest, ToolApprovalResponse, ToolInputAvailable,
    ToolRef, Usage,
};
use toolgate_kernel::id::{CallId, MessageId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::Placement;
use toolgate_kernel::view::{Audience, view};

use crate::body::Dialect;
use crate::chunk::{Chunk, Place};

/// Where a response begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum From {
    /// With the answer to this message.
    Message(MessageId),
    /// In the middle of an answer that the client has up to here.
    Place(Place),
    /// In the middle of an answer to this message, of which the client has read this many chunks.
    Index(MessageId, usize),
}

/// Tells one answer.
pub(crate) struct Teller {
    watch: Watch,
    run: RunId,
    space: SpaceId,
    audience: Audience,
    dialect: Dialect,
    from: From,
    /// Chunks are written, not only counted.
    aloud: bool,
    /// Chunks so far, told or not.
    count: usize,
    over: bool,
    /// Where the run stands.
    status: Status,
    /// The step that is open, by the place it began at; names its `data-run`.
    step: Option<Seq>,
    /// The client would send again if this were the end.
    unrest: bool,
    /// The model is replying.
    replying: bool,
    /// The step under way began before the message that this answers.
    early: bool,
    /// Another message was spoken into the step under way.
    late: bool,
    /// Nothing of the open step was told but that it is open.
    fresh: bool,
    /// Text and reasoning that has begun, in order.
    parts: Vec<OpenPart>,
    /// Bytes that the client has of parts whose beginning is folded by now, in order.
    resumed: VecDeque<usize>,
    /// Calls whose input is being written: bytes told so far.
    inputs: HashMap<CallId, usize>,
    /// Calls that the client knows of.
    known: HashSet<CallId>,
    /// What people are asked about.
    asked: HashMap<CallId, Option<Json>>,
    /// A call on the gateway's side that begins unless the next event asks a person.
    held: Option<(ToolRef, Option<Json>)>,
    /// Calls that were settled before this response began: nobody is to execute them again.
    settled: HashSet<CallId>,
}

/// Text or reasoning that has begun.
struct OpenPart {
    id: Arc<str>,
    kind: &'static str,
    /// Bytes told so far.
    told: usize,
}

impl Teller {
    /// `known` are the calls that the client's message holds already.
    pub fn new(follow: &Follow, run: RunId, dialect: Dialect, from: From, known: HashSet<CallId>) -> Self {
        Self {
            watch: Watch::new(follow),
            run,
            space: follow.space,
            audience: follow.who.audience(),
            dialect,
            from,
            aloud: false,
            count: 0,
            over: false,
            status: Status::WaitingTool,
            step: None,
            unrest: true,
            replying: false,
            early: false,
            late: false,
            fresh: false,
            parts: Vec::new(),
            resumed: VecDeque::new(),
            inputs: HashMap::new(),
            known,
            asked: HashMap::new(),
            held: None,
            settled: HashSet::new(),
        }
    }

    /// Tells these calls as ones that are not to be executed any more.
    pub fn with_settled(self, settled: HashSet<CallId>) -> Self {
        Self { settled, ..self }
    }

    fn begin(&mut self, answers: Option<MessageId>, out: &mut Vec<u8>) {
        self.aloud = true;
        let id = answers.map(answer_id);
        self.chunk(out, |out| {
            Chunk::new(out, "start").with_some("messageId", id).end()
        });
    }

    /// Writes one chunk, unless the client has read it.
    fn chunk(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        self.count += 1;
        let skipped = matches!(self.from, From::Index(_, seen) if self.count <= seen);
        if self.aloud && !skipped {
            write(out);
        }
    }

    fn tell(&mut self, seq: Seq, event: &Event, out: &mut Vec<u8>) {
        if !matches!(event, Event::ToolApprovalRequest(_))
            && let Some((tool, input)) = self.held.take()
        {
            self.input_is(&tool, input.as_ref(), out);
        }
        if self.is_of_another(event) {
            return;
        }
        match event {
            Event::Said(said) => self.said(said.message.message_id, out),
            Event::StepStart(_) => {
                self.replying = true;
                self.open_step(seq, out);
            }
            Event::StepRetry(_) => self.retry(out),
            Event::TextStart(e) => self.part_starts("text", &e.id, out),
            Event::TextDelta(e) => self.part_goes_on("text", &e.id, &e.delta, out),
            Event::TextEnd(e) => self.part_ends("text", &e.id, &e.text, out),
            Event::ReasoningStart(e) => self.part_starts("reasoning", &e.id, out),
            Event::ReasoningDelta(e) => self.part_goes_on("reasoning", &e.id, &e.delta, out),
            Event::ReasoningEnd(e) => self.part_ends("reasoning", &e.id, &e.text, out),
            Event::ToolInputStart(e) => self.input_starts(&e.tool(), out),
            Event::ToolInputDelta(e) => self.input_goes_on(&e.tool(), &e.input_text_delta, out),
            Event::ToolInputAvailable(e) => self.input_ends(e, out),
            Event::ToolApprovalRequest(e) => self.asks(e, out),
            Event::ToolApprovalResponse(e) => self.decided(e, out),
            Event::ToolProgress(e) if self.known.contains(&e.tool_call_id) => self.chunk(out, |out| {
                let data = serde_json::json!({"toolCallId": e.tool_call_id, "progress": e.progress});
                Chunk::new(out, "data-progress")
                    .with("data", data)
                    .flag("transient", true)
                    .end();
            }),
            Event::ToolOutputAvailable(e) => self.settled(&e.tool(), out, |out| {
                call_chunk(out, "tool-output-available", &e.tool())
                    .value("output", e.output.as_ref(), "null")
                    .flag("providerExecuted", ours(&e.tool()))
                    .end();
            }),
            Event::ToolOutputError(e) => self.settled(&e.tool(), out, |out| {
                failed(
                    out,
                    &e.tool(),
                    e.error_text.as_deref().unwrap_or("the tool failed"),
                );
            }),
            Event::ToolOutputDenied(e) if self.dialect == Dialect::V5 => {
                self.settled(&e.tool(), out, |out| {
                    let words = e.reason.as_deref().unwrap_or("a person did not allow this call");
                    failed(out, &e.tool(), words);
                })
            }
            Event::ToolOutputDenied(e) => self.settled(&e.tool(), out, |out| {
                call_chunk(out, "tool-output-denied", &e.tool()).end();
            }),
            Event::StepFinish(_) => self.step_ends(out),
            Event::RunStatus(e) => self.status = e.status,
            Event::RunFinish(e) => self.finishes(seq, e, out),
            Event::RunStart(_)
            | Event::ToolExecuting(_)
            | Event::ToolReleased(_)
            | Event::ToolProgress(_)
            | Event::Notification(_)
            | Event::Opaque(_) => {}
        }
    }

    /// Whether an event of the step under way is told by another answer.
    fn is_of_another(&self, event: &Event) -> bool {
        match event {
            Event::TextStart(_)
            | Event::TextDelta(_)
            | Event::TextEnd(_)
            | Event::ReasoningStart(_)
            | Event::ReasoningDelta(_)
            | Event::ReasoningEnd(_) => self.early,
            Event::ToolInputStart(_)
            | Event::ToolInputDelta(_)
            | Event::ToolInputAvailable(_)
            | Event::ToolApprovalRequest(_) => self.late,
            _ => false,
        }
    }

    /// A message: the one that this answers, or one with which this answer is over.
    fn said(&mut self, message: MessageId, out: &mut Vec<u8>) {
        let answers = match self.from {
            From::Message(mine) | From::Index(mine, _) => message == mine,
            From::Place(_) => false,
        };
        if answers {
            // What was before is another answer's.
            self.known.clear();
            self.inputs.clear();
            self.parts.clear();
            self.count = 0;
            self.step = None;
            self.early = true;
            self.begin(Some(message), out);
        } else if !self.aloud {
            self.early = true;
        } else if self.replying {
            self.late = true;
        } else {
            self.close_parts(out);
            self.end(out, "other");
        }
    }

    fn step_ends(&mut self, out: &mut Vec<u8>) {
        self.replying = false;
        if self.late && self.aloud {
            self.close_parts(out);
            self.end(out, "other");
        }
    }

    fn open_step(&mut self, seq: Seq, out: &mut Vec<u8>) {
        self.close_step(out);
        self.step = Some(seq);
        self.chunk(out, |out| Chunk::new(out, "start-step").end());
        self.tell_run(Status::Running, None, out);
        self.unrest = false;
        self.fresh = true;
        self.early = false;
    }

    fn close_step(&mut self, out: &mut Vec<u8>) {
        self.close_inputs(out);
        if self.step.take().is_some() {
            self.chunk(out, |out| Chunk::new(out, "finish-step").end());
        }
    }

    /// Where the run stands: one part per step, which the client keeps.
    fn tell_run(&mut self, status: Status, usage: Option<Usage>, out: &mut Vec<u8>) {
        let Some(step) = self.step else { return };
        let (run, space) = (self.run, self.space);
        self.chunk(out, |out| {
            let mut data = serde_json::json!({"runId": run, "spaceId": space, "status": status.as_str()});
            if let Some(usage) = usage {
                data["usage"] = serde_json::to_value(usage).expect("numbers are JSON");
            }
            let id = format!("{run}.{}", step.index());
            Chunk::new(out, "data-run")
                .with("id", id)
                .with("data", data)
                .end();
        });
    }

    /// What the step has streamed is void. Only the newest clients can take it back.
    fn retry(&mut self, out: &mut Vec<u8>) {
        match self.dialect {
            _ if self.fresh || self.early => {}
            Dialect::V7 => {
                self.fresh = true;
                self.parts.clear();
                self.inputs
                    .drain()
                    .for_each(|(call, _)| _ = self.known.remove(&call));
                self.chunk(out, |out| Chunk::new(out, "reset-step").end());
                self.tell_run(Status::Running, None, out);
            }
            Dialect::V5 | Dialect::V6 => self.close_parts(out),
        }
    }

    fn part_starts(&mut self, kind: &'static str, id: &Arc<str>, out: &mut Vec<u8>) {
        if self.parts.iter().any(|part| part.id == *id) {
            return;
        }
        self.fresh = false;
        self.parts.push(OpenPart {
            id: id.clone(),
            kind,
            told: 0,
        });
        self.chunk(out, |out| {
            Chunk::new(out, &format!("{kind}-start")).with("id", id).end()
        });
    }

    fn part_goes_on(&mut self, kind: &'static str, id: &Arc<str>, delta: &str, out: &mut Vec<u8>) {
        self.part_starts(kind, id, out);
        if let Some(part) = self.parts.iter_mut().find(|part| part.id == *id) {
            part.told += delta.len();
        }
        self.chunk(out, |out| {
            Chunk::new(out, &format!("{kind}-delta"))
                .with("id", id)
                .with("delta", delta)
                .end();
        });
    }

    /// The whole part: what was not told of it yet is told now.
    fn part_ends(&mut self, kind: &'static str, id: &Arc<str>, text: &str, out: &mut Vec<u8>) {
        if let Some(told) = self.resumed.pop_front() {
            self.parts.push(OpenPart {
                id: id.clone(),
                kind,
                told,
            });
        }
        self.part_starts(kind, id, out);
        let told = self
            .parts
            .iter()
            .find(|part| part.id == *id)
            .map_or(0, |part| part.told);
        if let Some(rest) = text.get(told..).filter(|rest| !rest.is_empty()) {
            self.part_goes_on(kind, id, rest, out);
        }
        self.parts.retain(|part| part.id != *id);
        self.chunk(out, |out| {
            Chunk::new(out, &format!("{kind}-end")).with("id", id).end()
        });
    }

    fn input_starts(&mut self, tool: &ToolRef, out: &mut Vec<u8>) {
        self.fresh = false;
        self.known.insert(tool.call);
        if self.inputs.insert(tool.call, 0).is_none() {
            self.chunk(out, |out| {
                call_chunk(out, "tool-input-start", tool)
                    .with("toolName", &tool.name)
                    .end();
            });
        }
    }

    fn input_goes_on(&mut self, tool: &ToolRef, delta: &str, out: &mut Vec<u8>) {
        // Who has not read its beginning is told the whole.
        let Some(told) = self.inputs.get_mut(&tool.call) else {
            return;
        };
        *told += delta.len();
        self.chunk(out, |out| {
            call_chunk(out, "tool-input-delta", tool)
                .with("inputTextDelta", delta)
                .end();
        });
    }

    /// The whole input. A client call that is not offered yet, or never, must not read as one that is; whether a
    /// call on the gateway's side may begin is known with the next event.
    fn input_ends(&mut self, event: &ToolInputAvailable, out: &mut Vec<u8>) {
        let tool = event.tool();
        self.known.insert(tool.call);
        if ours(&tool) {
            self.held = Some((tool, event.input.clone()));
        } else if event.deadline.is_some() {
            self.input_is(&tool, event.input.as_ref(), out);
        } else {
            self.input_alone(&tool, event.input.as_ref(), out);
        }
    }

    /// The input of a call that does not begin by it.
    fn input_alone(&mut self, tool: &ToolRef, input: Option<&Json>, out: &mut Vec<u8>) {
        if !self.inputs.contains_key(&tool.call) {
            self.input_starts(tool, out);
        }
        if self.inputs.get(&tool.call) == Some(&0)
            && let Some(input) = input
        {
            self.input_goes_on(tool, input.as_str(), out);
        }
        self.inputs.remove(&tool.call);
    }

    fn input_is(&mut self, tool: &ToolRef, input: Option<&Json>, out: &mut Vec<u8>) {
        self.fresh = false;
        self.inputs.remove(&tool.call);
        let not_yours = ours(tool) || self.settled.contains(&tool.call);
        self.chunk(out, |out| {
            call_chunk(out, "tool-input-available", tool)
                .with("toolName", &tool.name)
                .value("input", input, "{}")
                .flag("providerExecuted", not_yours)
                .end();
        });
    }

    fn asks(&mut self, event: &ToolApprovalRequest, out: &mut Vec<u8>) {
        if let Some((tool, input)) = self.held.take() {
            self.input_alone(&tool, input.as_ref(), out);
        }
        self.asked.insert(event.tool_call_id, event.input.clone());
        let dialect = self.dialect;
        self.chunk(out, |out| match dialect {
            Dialect::V5 => {
                let data = serde_json::json!({
                    "approvalId": event.approval_id, "toolCallId": event.tool_call_id,
                    "toolName": event.tool_name, "input": event.input, "expiresAt": event.expires_at,
                });
                let id = event.approval_id;
                Chunk::new(out, "data-approval")
                    .with("id", id)
                    .with("data", data)
                    .end();
            }
            Dialect::V6 | Dialect::V7 => Chunk::new(out, "tool-approval-request")
                .with("approvalId", event.approval_id)
                .with("toolCallId", event.tool_call_id)
                .end(),
        });
    }

    /// A yes: the call runs with the input that was approved. A no is told by what becomes of the call.
    fn decided(&mut self, event: &ToolApprovalResponse, out: &mut Vec<u8>) {
        let asked = self.asked.remove(&event.tool_call_id).flatten();
        if event.approved && self.known.contains(&event.tool_call_id) {
            let input = event.input.as_ref().or(asked.as_ref());
            self.input_is(&event.tool(), input, out);
        }
    }

    /// A call has ended. Of calls that the client does not know it must not hear.
    fn settled(&mut self, tool: &ToolRef, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        self.inputs.remove(&tool.call);
        if self.known.contains(&tool.call) {
            self.unrest |= !ours(tool);
            self.chunk(out, write);
        }
    }

    /// Ends what has begun and will not be ended by the run: the model was cut off, or cancelled.
    fn close_parts(&mut self, out: &mut Vec<u8>) {
        for OpenPart { id, kind, .. } in std::mem::take(&mut self.parts) {
            self.chunk(out, |out| {
                Chunk::new(out, &format!("{kind}-end")).with("id", id).end()
            });
        }
    }

    /// A call that was begun and is not asked for after all would stay open for ever.
    fn close_inputs(&mut self, out: &mut Vec<u8>) {
        let mut open: Vec<CallId> = self.inputs.drain().map(|(call, _)| call).collect();
        open.sort();
        for call in open {
            self.known.remove(&call);
            self.chunk(out, |out| {
                let words = "the model was asked again and did not repeat this call";
                Chunk::new(out, "tool-output-error")
                    .with("toolCallId", call)
                    .with("errorText", words)
                    .flag("providerExecuted", true)
                    .end();
            });
        }
    }

    fn finishes(&mut self, seq: Seq, event: &RunFinish, out: &mut Vec<u8>) {
        self.close_parts(out);
        if event.status == Status::Failed {
            self.close_inputs(out);
            let words = event
                .error
                .clone()
                .unwrap_or_else(|| format!("the run failed: {}", reason(event.reason)));
            self.chunk(out, |out| Chunk::new(out, "error").with("errorText", words).end());
            return self.done(out);
        }
        if self.unrest || self.step.is_none() {
            self.open_step(seq, out);
        }
        self.tell_run(event.status, Some(event.usage), out);
        if event.status == Status::Cancelled {
            self.close_step(out);
            self.chunk(out, |out| Chunk::new(out, "abort").end());
        }
        self.end(out, reason(event.reason));
    }

    fn end(&mut self, out: &mut Vec<u8>, reason: &str) {
        self.close_step(out);
        // Told also to a client that counts too far: it would ask again until this has come.
        if let From::Index(_, seen) = self.from {
            self.count = self.count.max(seen);
        }
        // 5.0.0 takes no reason here.
        let known = (self.dialect != Dialect::V5).then_some(reason);
        let told = (self.dialect == Dialect::V5).then(|| serde_json::json!({"finishReason": reason}));
        self.chunk(out, |out| {
            Chunk::new(out, "finish")
                .with_some("finishReason", known)
                .with_some("messageMetadata", told)
                .end();
        });
        self.done(out);
    }

    fn done(&mut self, out: &mut Vec<u8>) {
        if self.aloud {
            out.extend_from_slice(b"data: [DONE]\n\n");
            self.over = true;
        }
    }
}

impl Page for Teller {
    fn write(&mut self, batch: &Batch, out: &mut Vec<u8>) {
        for (seq, event) in batch.placed() {
            if self.over || !self.watch.sees(seq, event) {
                continue;
            }
            let Some(seen) = view(event, self.audience) else {
                continue;
            };
            let before = out.len();
            if let From::Place(place) = &self.from
                && !self.aloud
                && seq > place.seq
            {
                // What was streamed of the parts under way may be folded by now.
                if self.parts.is_empty() {
                    self.resumed = place.told.clone().into();
                }
                self.begin(None, out);
            }
            self.tell(seq, &seen, out);
            if out.len() > before {
                let told = self.parts.iter().map(|part| part.told).collect();
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
        self.over || self.watch.is_over()
    }
    fn close(&mut self, out: &mut Vec<u8>) {
        if self.over {
            return;
        }
        if !self.aloud {
            self.begin(None, out);
        }
        if self.watch.is_over() {
            self.tell_run(self.status, None, out);
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
}

/// The id of the answer to a message: the same whenever it is told.
pub(crate) fn answer_id(message: MessageId) -> String {
    message.to_string().replacen("msg_", "answer_", 1)
}

/// Whether the call runs on the gateway's side.
fn ours(tool: &ToolRef) -> bool {
    tool.placement != Placement::Client
}

fn call_chunk<'a>(out: &'a mut Vec<u8>, kind: &str, tool: &ToolRef) -> Chunk<'a> {
    Chunk::new(out, kind).with("toolCallId", tool.call)
}

fn failed(out: &mut Vec<u8>, tool: &ToolRef, words: &str) {
    call_chunk(out, "tool-output-error", tool)
        .with("errorText", words)
        .flag("providerExecuted", ours(tool))
        .end();
}

/// Why a run ended, in the client's words.
fn reason(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Stop => "stop",
        EndReason::Length => "length",
        EndReason::ContentFilter => "content-filter",
        EndReason::ModelError | EndReason::InvalidOutput => "error",
        EndReason::MaxSteps | EndReason::Limit | EndReason::Cancelled => "other",
    }
}
