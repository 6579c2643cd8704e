//! An answer that must be JSON of some form.

use serde_json::Value;

use super::Run;
use super::pipeline::sentences;
use crate::id::MessageId;
use crate::message::{Message, Part};

/// How often an answer that does not fit is asked for again.
const CORRECTIONS_MAX: usize = 1;

/// The JSON in an answer: all of it, or what stands between its fences.
pub fn json_in(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let text = inside.map_or(text, |inside| {
        inside.trim_start_matches(|c: char| c.is_ascii_alphabetic())
    });
    serde_json::from_str(text.trim()).map_err(|error| format!("the answer is not JSON: {error}"))
}

impl Run {
    /// What is wrong with the answer, when the agent's must have a form.
    pub(super) fn misfit(&self) -> Option<String> {
        let result = self.agent.result.as_ref()?;
        let value = match json_in(&self.state.answer()) {
            Ok(value) => value,
            Err(words) => return Some(words),
        };
        let problems = result.validator.check(&value);
        (!problems.is_empty()).then(|| sentences(&problems))
    }

    /// Asks for the answer again, unless that was done.
    pub(super) fn correction(&self, misfit: &str) -> Option<Message> {
        // The first message is the prompt; any other is a correction.
        let made = self.state.messages.len().saturating_sub(1);
        if made >= CORRECTIONS_MAX {
            return None;
        }
        let mut id = self.id.to_bytes();
        id[15] = id[15].wrapping_add(1 + made as u8);
        let text = format!("That does not fit: {misfit}. Answer again, with JSON alone.");
        // The run goes on for whom it began.
        Some(Message {
            on_behalf_of: self.others_behind(),
            ..Message::new(
                MessageId::from_bytes(id),
                self.speaker(),
                vec![Part::Text { text }],
            )
        })
    }
}
