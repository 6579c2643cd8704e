//! How much of a conversation a model is given: what is left out of a request so that it fits the context window.
//!
//! What is left out is an event, [`ContextCut`](crate::event::ContextCut), so a replay gives the model the same. A cut makes room for a good
//! while: between two cuts each request begins with the last one, and the vendor's prompt cache hits.

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::{Entry, Event, Seq};
use crate::id::RunId;
use crate::json::Json;
use crate::message::Part;
use crate::name::AgentName;
use crate::prompt::{CallResult, OfferedTool, Said, Turn};

/// Bytes of text that count as one token. English has about four, program text and JSON three, Chinese three to a
/// character: an estimate that is rather too high than too low.
const BYTES_PER_TOKEN: usize = 3;
/// Tokens that an image counts as, whatever its size.
const IMAGE_TOKENS: u64 = 1_500;
/// Tokens that a turn counts as beside its texts.
const TURN_TOKENS: u64 = 4;
/// Bytes to which long results of tools are shortened; the smaller ones when even that is too much.
const RESULT_BYTES: [u32; 3] = [2_000, 400, 80];
/// Longest name of a time zone.
pub const TIME_ZONE_CHARS_MAX: usize = 64;

/// A stretch of conversation that is kept or left out as a whole: a run, a message that nobody answered, or a
/// message and its answer that a client told.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Where it begins.
    pub place: Place,
    /// What was said in it.
    pub turns: Vec<Arc<Turn>>,
}

/// Where an exchange begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The first event of its entry.
    pub from: Seq,
    /// Turns that a client told there before it.
    pub told: u32,
}

/// Everything that a request would tell a model.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// Tokens of instructions, tools and a summary.
    pub fixed: u64,
    /// What was said before the run, oldest exchange first.
    pub past: &'a [Exchange],
    /// What was said in the run.
    pub own: &'a [Arc<Turn>],
    /// Where the run begins.
    pub run: Place,
}

/// What a cut changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Exchanges before this place are left out.
    pub place: Place,
    /// How many of the past that is.
    pub left_out: usize,
    /// Results of tools are shortened to so many bytes.
    pub result_bytes: u32,
}

impl Conversation<'_> {
    /// Tokens of the request, as they are estimated.
    pub fn tokens(&self) -> u64 {
        self.suffixes(u32::MAX)[0]
    }

    /// What to leave out of a request that has more than `max` tokens; none when it has no more, or when nothing can
    /// be left out. Long results are shortened first. Then the newest `keep` exchanges stay, or those that fit into
    /// half of `max`, so that the next cut is far away; fewer when they do not fit.
    pub fn cut(&self, max: u64, keep: Option<u32>) -> Option<Cut> {
        let now = self.tokens();
        if now <= max {
            return None;
        }
        let [long, ..] = RESULT_BYTES;
        let shortened = self.suffixes(long);
        let room = max - max / 4;
        let first = match keep {
            _ if shortened[0] <= room => 0,
            Some(keep) => self.past.len().saturating_sub(keep as usize),
            None => fitting(&shortened, 0, max / 2),
        };
        let first = fitting(&shortened, first, room);
        let fits = |bytes: &u32| self.suffixes(*bytes)[first] <= room;
        let [.., least] = RESULT_BYTES;
        let result_bytes = RESULT_BYTES.into_iter().find(fits).unwrap_or(least);
        if self.suffixes(result_bytes)[first] >= now {
            return None;
        }
        Some(Cut {
            place: self.past.get(first).map_or(self.run, |exchange| exchange.place),
            left_out: first,
            result_bytes,
        })
    }

    /// Tokens with the exchanges from each one on, and with none, when results have at most so many bytes.
    fn suffixes(&self, result_bytes: u32) -> Vec<u64> {
        let of = |turns: &[Arc<Turn>]| -> u64 {
            let tokens = turns.iter().map(|turn| turn_tokens(turn, result_bytes));
            tokens.sum()
        };
        let mut sum = self.fixed + of(self.own);
        let mut sums = vec![sum];
        for exchange in self.past.iter().rev() {
            sum += of(&exchange.turns);
            sums.push(sum);
        }
        sums.reverse();
        sums
    }
}

/// The first exchange from `first` on with which the request has at most `max` tokens; the number of all if with none.
fn fitting(suffixes: &[u64], first: usize, max: u64) -> usize {
    let last = suffixes.len() - 1;
    (first..last).find(|at| suffixes[*at] <= max).unwrap_or(last)
}

/// Tokens of a text with so many bytes, as they are estimated.
pub fn tokens_of(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}

/// Tokens of the definitions of tools.
pub fn tool_tokens(tools: &[OfferedTool]) -> u64 {
    let bytes = tools
        .iter()
        .map(|tool| tool.name.as_str().len() + tool.description.len() + tool.parameters.as_str().len());
    tokens_of(bytes.sum())
}

fn turn_tokens(turn: &Turn, result_bytes: u32) -> u64 {
    let texts = match turn {
        Turn::User(parts) => parts.iter().map(part_tokens).sum(),
        Turn::Assistant(said) => said.iter().map(said_tokens).sum(),
        Turn::Results(results) => {
            let bytes = |result: &CallResult| result.output.as_str().len().min(result_bytes as usize);
            results.iter().map(|result| tokens_of(bytes(result))).sum::<u64>()
        }
    };
    TURN_TOKENS + texts
}

fn part_tokens(part: &Part) -> u64 {
    match part {
        Part::Text { text } => tokens_of(text.len()),
        Part::Image { .. } => IMAGE_TOKENS,
    }
}

fn said_tokens(said: &Said) -> u64 {
    match said {
        Said::Text(text) | Said::Reasoning { text, .. } => tokens_of(text.len()),
        Said::Call { name, input, .. } => tokens_of(name.len() + input.as_str().len()),
    }
}

/// Counts the tokens of a log that is read backwards, roughly as they are told to an agent's model: how far back a log is
/// read goes by it. Calls and results count in runs of the agent alone, and only when the run was read to its beginning;
/// of other runs the model is told the words, and of a run that is one requested call nothing.
#[derive(Debug)]
pub struct ReadBack<'a> {
    agent: &'a AgentName,
    tokens: u64,
    /// Tokens of calls and results, by run, until it is known whose run it is.
    calls: HashMap<RunId, u64>,
}

impl<'a> ReadBack<'a> {
    /// Nothing is read yet.
    pub fn new(agent: &'a AgentName) -> Self {
        Self {
            agent,
            tokens: 0,
            calls: HashMap::new(),
        }
    }

    /// Adds the entry before the last one, and gives the tokens so far.
    pub fn add(&mut self, entry: &Entry) -> u64 {
        let mut calls = 0;
        for event in entry.events.iter() {
            match event {
                Event::Said(e) => {
                    self.tokens += TURN_TOKENS + e.message.parts.iter().map(part_tokens).sum::<u64>();
                }
                Event::TextEnd(e) => self.tokens += TURN_TOKENS + tokens_of(e.text.len()),
                Event::ToolInputAvailable(e) => calls += json_tokens(e.input.as_ref()),
                // Long results are shortened before anything is left out.
                Event::ToolOutputAvailable(e) => {
                    let [long, ..] = RESULT_BYTES;
                    calls += json_tokens(e.output.as_ref()).min(tokens_of(long as usize));
                }
                _ => {}
            }
        }
        let Some(run) = entry.run else {
            return self.tokens;
        };
        let starts = entry.events.iter().find_map(|event| match event {
            Event::RunStart(e) => Some(&e.agent),
            _ => None,
        });
        match starts {
            None if calls == 0 => {}
            None => *self.calls.entry(run).or_default() += calls,
            Some(agent) => {
                let earlier = self.calls.remove(&run).unwrap_or_default();
                if agent == self.agent && !entry.begins_requested_call() {
                    self.tokens += earlier + calls;
                }
            }
        }
        self.tokens
    }
}

fn json_tokens(json: Option<&Json>) -> u64 {
    tokens_of(json.map_or(0, |json| json.as_str().len()))
}

/// The same turns, with results of more than `bytes` bytes shortened.
pub(crate) fn shorten(turns: &mut [Arc<Turn>], bytes: u32) {
    let is_long = |result: &CallResult| result.output.as_str().len() > bytes as usize;
    for turn in turns {
        let Turn::Results(results) = turn.as_ref() else {
            continue;
        };
        if !results.iter().any(is_long) {
            continue;
        }
        let mut results = results.clone();
        for result in results.iter_mut().filter(|result| is_long(result)) {
            result.output = shortened(&result.output, bytes as usize);
        }
        *turn = Arc::new(Turn::Results(results));
    }
}

/// The beginning of a value as text, and how much of it is missing. Shortening again, to fewer bytes, is the same as
/// shortening once.
fn shortened(output: &Json, bytes: usize) -> Json {
    let text: String = output.read().unwrap_or_else(|_| output.as_str().to_owned());
    let (text, missing) = match text.rsplit_once(MISSING).and_then(|(text, rest)| {
        let count = rest.strip_suffix(MISSING_END)?.parse::<usize>().ok()?;
        Some((text, count))
    }) {
        Some((text, count)) => (text, count),
        None => (text.as_str(), 0),
    };
    // What the note about it takes counts, too: the result must not be long again.
    let mut room = bytes.saturating_sub(MISSING.len() + MISSING_END.len() + 22);
    let end = text
        .char_indices()
        .find(|(_, c)| match room.checked_sub(json_bytes(*c)) {
            Some(left) => {
                room = left;
                false
            }
            None => true,
        });
    let cut = end.map_or(text.len(), |(at, _)| at);
    let missing = missing + text.len() - cut;
    Json::string(&format!("{}{MISSING}{missing}{MISSING_END}", &text[..cut]))
}

/// Bytes of a character in a JSON text. Were a shortened result longer than was counted on, it would be cut for ever.
fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

const MISSING: &str = " … [";
const MISSING_END: &str = " more bytes left out]";

/// Whether a text may be the name of a time zone (IANA). Which ones there are is known where dates are written.
pub fn is_time_zone(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '/');
    (1..=TIME_ZONE_CHARS_MAX).contains(&name.len()) && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shortened_result_is_as_short_as_was_said_and_shortened_once() {
        let dense: Vec<_> = (0..2_000).map(|n| json!({ "id": "a\"\n", "n": n })).collect();
        for output in [
            json!("\"\n\u{1}".repeat(5_000)),
            json!(dense),
            json!("ä".repeat(9_000)),
        ] {
            let output = Json::from(&output);
            for bytes in RESULT_BYTES.map(|bytes| bytes as usize) {
                let once = shortened(&output, bytes);
                assert!(
                    once.as_str().len() <= bytes,
                    "{} bytes of {bytes}",
                    once.as_str().len()
                );
                assert_eq!(shortened(&once, bytes), once);
                assert_eq!(shortened(&shortened(&output, 2 * bytes), bytes), once);
            }
        }
    }
}
