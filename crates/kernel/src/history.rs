//! A log read as the conversation that a model sees.

use std::collections::HashMap;
use std::sync::Arc;

use crate::call::ErrorCode;
use crate::context::{Exchange, Place, shorten};
use crate::event::{
    ContextCut, Entry, Event, ReasoningEnd, Seq, TextEnd, Told, ToolInputAvailable, ToolOutputAvailable,
    ToolOutputDenied, ToolOutputError,
};
use crate::id::{CallId, RunId};
use crate::json::Json;
use crate::message::Part;
use crate::name::AgentName;
use crate::prompt::{CallResult, Said, Turn};

pub use toolgate_protocol::history::{Earlier, EarlierPart};

/// Where the numbers of calls begin that a client tells of: no run makes so many itself, and an id stays within 40
/// characters.
const TOLD_CALLS: u32 = 10_000_000;

/// The turns of one run: what a model reads of its events.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    turns: Vec<Arc<Turn>>,
    /// What the model said in the step that is being read.
    said: Vec<Said>,
    /// The calls of the last step, in call order, each with its result once it is there.
    calls: Vec<(CallId, Arc<str>, Option<CallResult>)>,
    /// What people said since the last step began: the model reads it with the next one.
    unread: Vec<Vec<Part>>,
    /// Where the turns of the last step begin.
    step_turn: usize,
}

impl Transcript {
    /// Takes the next event as a fact.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Said(e) => self.unread.push(e.message.told()),
            Event::StepStart(_) => self.start_step(),
            Event::TextEnd(e) => self.add_text(e),
            Event::ReasoningEnd(e) => self.add_reasoning(e),
            Event::ToolInputAvailable(e) => self.add_call(e),
            Event::ToolOutputAvailable(e) => self.settle(e.tool_call_id, output_result(e), false),
            Event::ToolOutputError(e) => self.settle(e.tool_call_id, error_result(e), true),
            Event::ToolOutputDenied(e) => self.settle(e.tool_call_id, denied_result(e), true),
            Event::StepFinish(_) => self.finish_step(),
            Event::RunFinish(_) => {
                self.close_calls();
                // What was said after the last step, by the gateway.
                self.finish_step();
            }
            Event::ContextCut(e) => self.shorten(e),
            Event::RunStart(_)
            | Event::Told(_)
            | Event::CallRequest(_)
            | Event::StepRetry(_)
            | Event::TextStart(_)
            | Event::TextDelta(_)
            | Event::ReasoningStart(_)
            | Event::ReasoningDelta(_)
            | Event::ToolInputStart(_)
            | Event::ToolInputDelta(_)
            | Event::ToolApprovalRequest(_)
            | Event::ToolApprovalResponse(_)
            | Event::ToolQuestion(_)
            | Event::ToolQuestionResponse(_)
            | Event::ToolSampling(_)
            | Event::ToolExecuting(_)
            | Event::ToolReleased(_)
            | Event::ToolProgress(_)
            | Event::RunStatus(_)
            | Event::Notification(_)
            // What a child run asks is between it and people.
            | Event::ChildCall(_)
            | Event::Opaque(_) => {}
        }
    }

    /// Shortens the results so far, if the cut says so.
    fn shorten(&mut self, cut: &ContextCut) {
        if let Some(bytes) = cut.result_bytes {
            shorten(&mut self.turns, bytes);
        }
    }

    fn start_step(&mut self) {
        self.close_calls();
        self.turns
            .extend(self.unread.drain(..).map(|parts| Arc::new(Turn::User(parts))));
        self.step_turn = self.turns.len();
    }
    fn add_text(&mut self, e: &TextEnd) {
        self.said.push(Said::Text(e.text.clone()));
    }
    fn add_reasoning(&mut self, e: &ReasoningEnd) {
        self.said.push(Said::Reasoning {
            text: e.text.clone(),
            signature: e.signature.clone(),
        });
    }
    fn add_call(&mut self, e: &ToolInputAvailable) {
        self.calls.push((e.tool_call_id, e.tool_name.clone(), None));
        self.said.push(Said::Call {
            id: e.tool_call_id,
            name: e.tool_name.clone(),
            input: e.input.clone().unwrap_or_else(Json::null),
            signature: e.signature.clone(),
        });
    }
    fn settle(&mut self, call: CallId, output: Json, is_error: bool) {
        if let Some((id, name, result)) = self.calls.iter_mut().find(|(id, ..)| *id == call) {
            *result = Some(CallResult {
                id: *id,
                name: name.clone(),
                output,
                is_error,
            });
        }
    }
    fn finish_step(&mut self) {
        if !self.said.is_empty() {
            self.turns
                .push(Arc::new(Turn::Assistant(std::mem::take(&mut self.said))));
        }
    }
    /// The calls of the last step are over, each with its result if it has one.
    fn close_calls(&mut self) {
        if self.calls.is_empty() {
            return;
        }
        let results = self.calls.drain(..).filter_map(|(.., result)| result).collect();
        self.turns.push(Arc::new(Turn::Results(results)));
    }

    /// The conversation up to the step that is being asked.
    pub fn turns(&self) -> &[Arc<Turn>] {
        &self.turns
    }

    /// Whether somebody spoke since the last step began.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// The last text of the model.
    pub(crate) fn text(&self) -> Option<&str> {
        let mut turns = self.turns.iter().rev();
        let before = || turns.find_map(|turn| texts(turn).next_back());
        texts_of(&self.said).next_back().or_else(before)
    }

    /// All text of the last step, whether or not its calls have ended.
    pub(crate) fn answer(&self) -> String {
        let turns = self.turns[self.step_turn..].iter();
        turns
            .flat_map(|turn| texts(turn))
            .chain(texts_of(&self.said))
            .collect()
    }

    /// All turns, with what nobody answered yet, and only the words of what was said: for readers that do not
    /// know the tools.
    fn words(&self) -> Vec<Arc<Turn>> {
        let unread = self.unread.iter();
        let unread = unread.map(|parts| Arc::new(Turn::User(parts.clone())));
        let spoken = self.turns.iter().filter_map(|turn| match turn.as_ref() {
            Turn::User(_) => Some(turn.clone()),
            Turn::Assistant(said) => {
                let words: Vec<Said> = said
                    .iter()
                    .filter(|part| matches!(part, Said::Text(_)))
                    .cloned()
                    .collect();
                (!words.is_empty()).then(|| Arc::new(Turn::Assistant(words)))
            }
            Turn::Results(_) => None,
        });
        spoken.chain(unread).collect()
    }
}

fn texts(turn: &Turn) -> impl DoubleEndedIterator<Item = &str> {
    let said = match turn {
        Turn::Assistant(said) => said.as_slice(),
        Turn::User(_) | Turn::Results(_) => &[],
    };
    texts_of(said)
}

fn texts_of(said: &[Said]) -> impl DoubleEndedIterator<Item = &str> {
    said.iter().filter_map(|part| match part {
        Said::Text(text) => Some(text.as_str()),
        Said::Reasoning { .. } | Said::Call { .. } => None,
    })
}

/// The output; beside what there is to know about its tool, if there is something.
fn output_result(e: &ToolOutputAvailable) -> Json {
    let output = e.output.clone().unwrap_or_else(Json::null);
    match &e.warning {
        Some(warning) => serde_json::json!({ "output": output.to_value(), "warning": warning }).into(),
        None => output,
    }
}

/// An error as the model reads it: text, since a model gives up on an object with a code. The code stays in the event,
/// for programs.
fn error_result(e: &ToolOutputError) -> Json {
    let message = e.error_text.as_deref().unwrap_or("the tool failed");
    let mut text = error_text(message);
    // Messages of tools name the next call themselves.
    if e.code == Some(ErrorCode::ValidationFailed) && !message.contains("Call ") {
        text.push_str(&format!(" Call {} again with this corrected.", e.tool_name));
    }
    Json::string(&text)
}

fn denied_result(e: &ToolOutputDenied) -> Json {
    let message = e.reason.as_deref().unwrap_or("a person did not allow this call");
    Json::string(&error_text(message))
}

fn error_text(message: &str) -> String {
    let end = if message.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    format!("Error: {message}{end}")
}

/// What was said in a space, for a model that answers as one agent, read entry by entry. Other agents' runs, runs still
/// under way, and runs whose beginning is not among the entries, count by their words alone.
pub struct Before {
    agent: AgentName,
    /// The last cut of what the agent is given. The entries are those from there on.
    cut: Option<ContextCut>,
    /// Whether the cut was among the entries.
    has_cut: bool,
    /// In the order of their first entries.
    parts: Vec<PastPart>,
    runs: HashMap<RunId, usize>,
}

/// Shortens results as a cut says that came after them.
pub fn shorten_results(exchanges: &mut [Exchange], cut: &ContextCut) {
    if let Some(bytes) = cut.result_bytes {
        for exchange in exchanges {
            shorten(&mut exchange.turns, bytes);
        }
    }
}

enum PastPart {
    Told(Vec<Exchange>),
    Spoken {
        place: Place,
        transcript: Transcript,
        /// A run of the agent, from its beginning on.
        own: bool,
        has_ended: bool,
    },
}

impl Before {
    /// Nothing was read yet. `cut` is the last one of what the agent is given.
    pub fn new(agent: AgentName, cut: Option<ContextCut>) -> Self {
        Self {
            agent,
            cut,
            has_cut: false,
            parts: Vec::new(),
            runs: HashMap::new(),
        }
    }

    /// What was said, oldest first.
    pub fn exchanges(&self) -> Vec<Exchange> {
        let mut exchanges: Vec<Exchange> = self.parts.iter().flat_map(PastPart::exchanges).collect();
        // One that was not read was made later: it speaks of all that is here.
        if let Some(cut) = self.cut.as_ref().filter(|_| !self.has_cut) {
            shorten_results(&mut exchanges, cut);
        }
        exchanges
    }

    /// Reads the next entry of the log.
    pub fn add(&mut self, entry: &Entry) {
        self.has_cut |= self.cut.is_some() && entry.cut_of(&self.agent) == self.cut.as_ref();
        // What a client told is older than the run that it began.
        let told = entry.events.iter().find_map(|event| match event {
            Event::Told(e) => Some(e),
            _ => None,
        });
        let told = told.map_or(0, |told| self.add_told(entry, told));
        for event in &entry.events {
            match event {
                Event::Told(_) => {}
                Event::ContextCut(cut) if cut.agent == self.agent => {
                    self.parts.iter_mut().for_each(|part| part.shorten(cut));
                }
                event => self.spoken(entry, told).apply(event),
            }
        }
    }

    /// Adds what a client told, and gives the number of turns.
    fn add_told(&mut self, entry: &Entry, told: &Told) -> u32 {
        let space = || RunId::from_bytes(entry.space.to_bytes());
        let turns = self::told(entry.run.unwrap_or_else(space), &told.turns);
        let exchanges = told_exchanges(entry.first, &turns, self.cut.as_ref());
        self.parts.push(PastPart::Told(exchanges));
        turns.len() as u32
    }

    /// The part that an event of this entry belongs to.
    fn spoken(&mut self, entry: &Entry, told: u32) -> SpokenPart<'_> {
        let known = entry.run.and_then(|run| self.runs.get(&run).copied());
        let index = known.unwrap_or(self.parts.len());
        if index == self.parts.len() {
            self.parts.push(PastPart::Spoken {
                place: Place {
                    from: entry.first,
                    told,
                },
                transcript: Transcript::default(),
                own: false,
                has_ended: false,
            });
            if let Some(run) = entry.run {
                self.runs.insert(run, index);
            }
        }
        SpokenPart {
            agent: &self.agent,
            part: &mut self.parts[index],
        }
    }
}

struct SpokenPart<'a> {
    agent: &'a AgentName,
    part: &'a mut PastPart,
}

impl SpokenPart<'_> {
    fn apply(self, event: &Event) {
        let PastPart::Spoken {
            transcript,
            own,
            has_ended,
            ..
        } = self.part
        else {
            return;
        };
        match event {
            Event::RunStart(e) => *own = e.agent == *self.agent,
            // A call that no model made is no part of what was said.
            Event::CallRequest(_) => *own = false,
            Event::RunFinish(_) => *has_ended = true,
            _ => {}
        }
        transcript.apply(event);
    }
}

impl PastPart {
    fn shorten(&mut self, cut: &ContextCut) {
        match self {
            Self::Spoken { transcript, .. } => transcript.shorten(cut),
            Self::Told(exchanges) => shorten_results(exchanges, cut),
        }
    }

    fn exchanges(&self) -> Vec<Exchange> {
        match self {
            Self::Told(exchanges) => exchanges.clone(),
            Self::Spoken {
                place,
                transcript,
                own,
                has_ended,
            } => {
                let turns = match *own && *has_ended && !transcript.has_unread() {
                    true => transcript.turns.clone(),
                    false => transcript.words(),
                };
                match turns.is_empty() {
                    true => Vec::new(),
                    false => vec![Exchange { place: *place, turns }],
                }
            }
        }
    }
}

/// What a client told at `from`, a person's message and what follows it at a time, less what `cut` leaves out.
pub fn told_exchanges(from: Seq, turns: &[Arc<Turn>], cut: Option<&ContextCut>) -> Vec<Exchange> {
    let left_out = cut.filter(|cut| cut.from == from).map_or(0, |cut| cut.told);
    let mut exchanges: Vec<Exchange> = Vec::new();
    for (told, turn) in (0..).zip(turns).skip(left_out as usize) {
        let begins = matches!(turn.as_ref(), Turn::User(_));
        match exchanges.last_mut().filter(|_| !begins) {
            Some(exchange) => exchange.turns.push(turn.clone()),
            None => exchanges.push(Exchange {
                place: Place { from, told },
                turns: vec![turn.clone()],
            }),
        }
    }
    exchanges
}

/// The newest of these turns that have `bytes_max` bytes together.
pub fn newest_within(mut earlier: Vec<Earlier>, bytes_max: usize) -> Vec<Earlier> {
    let mut bytes = 0;
    let fits = |turn: &&Earlier| {
        bytes += turn.bytes();
        bytes <= bytes_max
    };
    let kept = earlier.iter().rev().take_while(fits).count();
    earlier.split_off(earlier.len() - kept)
}

/// What a client says was said before `run`, as a model reads it. Words after calls are a turn of their own.
pub fn told(run: RunId, earlier: &[Earlier]) -> Vec<Arc<Turn>> {
    let mut turns = Vec::new();
    let mut numbers = TOLD_CALLS..;
    for turn in earlier {
        match turn {
            Earlier::User(parts) => turns.push(Turn::User(parts.clone())),
            Earlier::Assistant(parts) => {
                let (mut said, mut results) = (Vec::new(), Vec::new());
                for part in parts {
                    match part {
                        EarlierPart::Text(text) => {
                            close(&mut turns, &mut said, &mut results, false);
                            said.push(Said::Text(text.clone()));
                        }
                        EarlierPart::Call {
                            name,
                            input,
                            output,
                            failed,
                        } => {
                            let number = numbers.next().expect("a body has fewer calls");
                            let id = CallId { run, number };
                            said.push(Said::Call {
                                id,
                                name: name.clone(),
                                input: input.clone(),
                                signature: None,
                            });
                            results.push(CallResult {
                                id,
                                name: name.clone(),
                                output: output.clone(),
                                is_error: *failed,
                            });
                        }
                    }
                }
                close(&mut turns, &mut said, &mut results, true);
            }
        }
    }
    turns.into_iter().map(Arc::new).collect()
}

/// Ends a turn of the model when it has calls, or when nothing follows.
fn close(turns: &mut Vec<Turn>, said: &mut Vec<Said>, results: &mut Vec<CallResult>, last: bool) {
    if !said.is_empty() && (last || !results.is_empty()) {
        turns.push(Turn::Assistant(std::mem::take(said)));
    }
    if !results.is_empty() {
        turns.push(Turn::Results(std::mem::take(results)));
    }
}
