//! A log read as the conversation that a model sees.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::ErrorCode;
use crate::event::{
    self, Entry, Event, ReasoningEnd, TextEnd, ToolInputAvailable, ToolOutputAvailable, ToolOutputDenied,
    ToolOutputError,
};
use crate::id::{CallId, RunId};
use crate::json::Json;
use crate::message::Part;
use crate::name::AgentName;
use crate::prompt::{CallResult, Said, Turn};
use crate::run::RunState;

/// Where the numbers of calls begin that a client tells of: no run makes so many itself, and an id stays within 40
/// characters.
const TOLD_CALLS: u32 = 10_000_000;

/// The turns of one run: the part of [`RunState`] that a model reads. [`RunState::apply`] says what to add.
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
    pub(crate) fn add_message(&mut self, e: &event::Said) {
        self.unread.push(e.message.told());
    }
    pub(crate) fn start_step(&mut self) {
        self.close_calls();
        self.turns
            .extend(self.unread.drain(..).map(|parts| Arc::new(Turn::User(parts))));
        self.step_turn = self.turns.len();
    }
    pub(crate) fn add_text(&mut self, e: &TextEnd) {
        self.said.push(Said::Text(e.text.clone()));
    }
    pub(crate) fn add_reasoning(&mut self, e: &ReasoningEnd) {
        self.said.push(Said::Reasoning {
            text: e.text.clone(),
            signature: e.signature.clone(),
        });
    }
    pub(crate) fn add_call(&mut self, e: &ToolInputAvailable) {
        self.calls.push((e.tool_call_id, e.tool_name.clone(), None));
        self.said.push(Said::Call {
            id: e.tool_call_id,
            name: e.tool_name.clone(),
            input: e.input.clone().unwrap_or_else(Json::null),
            signature: e.signature.clone(),
        });
    }
    pub(crate) fn settle(&mut self, call: CallId, output: Json, is_error: bool) {
        if let Some((id, name, result)) = self.calls.iter_mut().find(|(id, ..)| *id == call) {
            *result = Some(CallResult {
                id: *id,
                name: name.clone(),
                output,
                is_error,
            });
        }
    }
    pub(crate) fn finish_step(&mut self) {
        if !self.said.is_empty() {
            self.turns
                .push(Arc::new(Turn::Assistant(std::mem::take(&mut self.said))));
        }
    }
    /// The calls of the last step are over, each with its result if it has one.
    pub(crate) fn close_calls(&mut self) {
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
    fn words(self) -> Vec<Arc<Turn>> {
        let unread = self.unread.into_iter().map(|parts| Arc::new(Turn::User(parts)));
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
pub(crate) fn output_result(e: &ToolOutputAvailable) -> Json {
    let output = e.output.clone().unwrap_or_else(Json::null);
    match &e.warning {
        Some(warning) => serde_json::json!({ "output": output.to_value(), "warning": warning }).into(),
        None => output,
    }
}

/// An error as the model reads it: text, since a model gives up on an object with a code. The code stays in the event,
/// for programs.
pub(crate) fn error_result(e: &ToolOutputError) -> Json {
    let message = e.error_text.as_deref().unwrap_or("the tool failed");
    let mut text = error_text(message);
    // Messages of tools name the next call themselves.
    if e.code == Some(ErrorCode::ValidationFailed) && !message.contains("Call ") {
        text.push_str(&format!(" Call {} again with this corrected.", e.tool_name));
    }
    Json::string(&text)
}

pub(crate) fn denied_result(e: &ToolOutputDenied) -> Json {
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

/// What was said in a space before `run` began, for a model that answers as `agent`. Other agents' runs, and
/// runs still under way, count by their words alone.
pub fn before(run: RunId, agent: &AgentName, entries: &[Entry]) -> Vec<Arc<Turn>> {
    #[derive(Default)]
    struct Spoken {
        state: RunState,
        own: bool,
    }
    let mut spoken: Vec<Spoken> = Vec::new();
    let mut place: HashMap<RunId, usize> = HashMap::new();
    for entry in entries {
        if entry.run == Some(run) {
            break;
        }
        let index = match entry.run {
            Some(id) => *place.entry(id).or_insert(spoken.len()),
            None => spoken.len(),
        };
        if index == spoken.len() {
            spoken.push(Spoken::default());
        }
        let part = &mut spoken[index];
        for (seq, event) in entry.placed() {
            if let Event::RunStart(e) = event {
                part.own = e.agent == *agent;
            }
            part.state.apply(event, seq, entry.time);
        }
    }
    spoken
        .into_iter()
        .flat_map(|part| {
            let has_ended = part.state.end().is_some();
            let transcript = part.state.into_transcript();
            match part.own && has_ended && !transcript.has_unread() {
                true => transcript.turns,
                false => transcript.words(),
            }
        })
        .collect()
}

/// A turn that a client says was said before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Earlier {
    /// By a person.
    User(Vec<Part>),
    /// By the model.
    Assistant(Vec<EarlierPart>),
}

/// A piece of what the model said before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EarlierPart {
    /// Text.
    Text(String),
    /// A call and what it gave.
    Call {
        /// Name of the tool.
        name: Arc<str>,
        /// Input of the call.
        input: Json,
        /// Output of the tool.
        output: Json,
        /// Whether that is an error.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
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

impl Earlier {
    /// Bytes of its texts.
    fn bytes(&self) -> usize {
        match self {
            Self::User(parts) => parts.iter().map(Part::bytes).sum(),
            Self::Assistant(parts) => parts.iter().map(EarlierPart::bytes).sum(),
        }
    }
}

impl EarlierPart {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Call {
                name, input, output, ..
            } => name.len() + input.as_str().len() + output.as_str().len(),
        }
    }
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
