//! The script of the scripted model: commands in the conversation, frames on the wire.

use std::str::FromStr;
use std::time::Duration;

use serde_json::{Value, json};

/// Default of `text:N`.
const TEXT_WORDS: usize = 5;
/// Bytes of one delta of a call's input.
const INPUT_FRAGMENT_BYTES: usize = 12;

/// A script, parsed word by word; unknown words are ignored.
///
/// | word | meaning |
/// | --- | --- |
/// | `call:NAME` | ask for this tool; several are asked for together |
/// | `input:JSON` | the input of the call before it, without spaces |
/// | `tools:K` | ask for the calls K times, each time after the results of the last (1) |
/// | `text:N` | then answer with N words (5) |
/// | `say:TEXT` | then answer with this, without spaces, instead |
/// | `delay:MS` | wait between two frames |
/// | `hold:N` | stop after N frames until the test releases the server |
/// | `cut:N` | break the connection after N frames, the first time this is asked |
/// | `hang:N` | say nothing more after N frames, the first time this is asked |
/// | `fail:STATUS` | answer with this HTTP status, the first time this is asked |
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    calls: Vec<(String, String)>,
    rounds: usize,
    text: usize,
    said: Option<String>,
    /// Pause between two frames.
    pub delay: Duration,
    /// Frames after which the reply is held until the test releases it.
    pub hold: Option<usize>,
    /// Fault of the first request.
    pub fault: Option<Fault>,
}

/// A fault of the model server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection breaks after this many frames.
    Cut(usize),
    /// The stream stalls after this many frames.
    Hang(usize),
    /// An error response with this HTTP status.
    Fail(u16),
}

impl Script {
    /// Parses the script in `text`.
    pub fn read(text: &str) -> Self {
        let mut script = Self {
            calls: Vec::new(),
            rounds: 1,
            text: TEXT_WORDS,
            said: None,
            delay: Duration::ZERO,
            hold: None,
            fault: None,
        };
        for word in text.split_whitespace() {
            let Some((key, value)) = word.split_once(':') else {
                continue;
            };
            match key {
                "call" => script.calls.push((value.into(), "{}".into())),
                "input" => script.calls.last_mut().expect("a call stands before its input").1 = value.into(),
                "tools" => script.rounds = number(value),
                "text" => script.text = number(value),
                "say" => script.said = Some(value.into()),
                "delay" => script.delay = Duration::from_millis(number(value)),
                "hold" => script.hold = Some(number(value)),
                "cut" => script.fault = Some(Fault::Cut(number(value))),
                "hang" => script.fault = Some(Fault::Hang(number(value))),
                "fail" => script.fault = Some(Fault::Fail(number(value))),
                _ => {}
            }
        }
        script
    }

    /// Frames of the reply to a conversation with `results` tool results since the script.
    pub fn frames(&self, results: usize) -> Vec<String> {
        let mut frames = vec![frame(json!({"role": "assistant", "content": ""}), None)];
        let reason = if results < self.rounds * self.calls.len() {
            frames.extend(
                self.calls
                    .iter()
                    .enumerate()
                    .flat_map(|(at, call)| call_frames(at, results, call)),
            );
            "tool_calls"
        } else if let Some(said) = &self.said {
            frames.push(frame(json!({"content": said}), None));
            "stop"
        } else {
            frames.extend((0..self.text).map(|at| frame(json!({"content": format!("w{at} ")}), None)));
            "stop"
        };
        frames.push(frame(json!({}), Some(reason)));
        frames.push(line(&json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})));
        frames.push("data: [DONE]\n\n".into());
        frames
    }
}

/// Text of the reply to a script with `text:N`.
pub fn text(words: usize) -> String {
    (0..words).map(|at| format!("w{at} ")).collect()
}

fn call_frames(at: usize, results: usize, (name, input): &(String, String)) -> Vec<String> {
    let call = |call: Value| frame(json!({"tool_calls": [call]}), None);
    let id = format!("vendor_{results}_{at}");
    let mut frames = vec![call(json!({
        "index": at, "id": id, "type": "function", "function": {"name": name, "arguments": ""},
    }))];
    let mut rest = input.as_str();
    while !rest.is_empty() {
        let end = (INPUT_FRAGMENT_BYTES..=rest.len()).find(|end| rest.is_char_boundary(*end));
        let (fragment, after) = rest.split_at(end.unwrap_or(rest.len()));
        frames.push(call(json!({"index": at, "function": {"arguments": fragment}})));
        rest = after;
    }
    frames
}

fn frame(delta: Value, finish: Option<&str>) -> String {
    line(&json!({
        "id": "chatcmpl-script", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "script",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }))
}

fn line(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

fn number<T: FromStr>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|_| panic!("{text:?} in a script is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_until_every_round_has_its_results_and_then_text() {
        let script = Script::read("please call:a input:{\"x\":\"a_long_enough_text\"} call:b tools:2 text:3");
        let asks = |results| {
            script
                .frames(results)
                .concat()
                .contains("\"finish_reason\":\"tool_calls\"")
        };
        assert!(asks(0) && asks(2) && asks(3));
        let end = script.frames(4).concat();
        assert!(end.contains("w2 ") && !end.contains("w3 "), "{end}");
        assert_eq!(text(3), "w0 w1 w2 ");
    }
}
