//! Tokens of a step for which the vendor reports none, so that a token budget holds all the same.

use std::sync::Arc;

use toolgate_kernel::event::Usage;
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::{OfferedTool, Said, Turn};
use toolgate_kernel::run::{ReplyPart, Run};

use crate::model::Ask;

/// Bytes of text that are one token, roughly, for most vendors and languages.
const BYTES_PER_TOKEN: u64 = 4;
/// Bytes that an image counts for, whatever its size: vendors scale images down.
const IMAGE_BYTES: u64 = 4_000;

/// What a step has used, by the bytes of its request and its reply.
pub(crate) fn usage(ask: &Ask, reply: &[ReplyPart]) -> Usage {
    usage_of(ask, reply.iter().map(reply_bytes).sum())
}

/// What a request has used whose reply has so many bytes.
pub(crate) fn usage_of(ask: &Ask, written: u64) -> Usage {
    let tools = ask.tools.iter().map(tool_bytes).sum::<u64>();
    let read = ask.instructions.len() as u64 + turns_bytes(&ask.turns) + tools;
    Usage {
        input_tokens: read.div_ceil(BYTES_PER_TOKEN),
        ..self::written(written)
    }
}

/// What a request of this run has used at least, as a node sees it that does not drive the run.
pub(crate) fn usage_elsewhere(run: &Run) -> Usage {
    let read = run.agent().instructions.as_str().len() as u64 + turns_bytes(run.turns());
    Usage {
        input_tokens: read.div_ceil(BYTES_PER_TOKEN),
        ..written(0)
    }
}

/// What was used by writing so many bytes.
pub(crate) fn written(bytes: u64) -> Usage {
    Usage {
        output_tokens: bytes.div_ceil(BYTES_PER_TOKEN),
        estimated: true,
        ..Usage::default()
    }
}

fn turns_bytes<'a>(turns: impl IntoIterator<Item = &'a Arc<Turn>>) -> u64 {
    turns.into_iter().map(|turn| turn_bytes(turn)).sum()
}

fn turn_bytes(turn: &Turn) -> u64 {
    match turn {
        Turn::User(parts) => parts.iter().map(part_bytes).sum(),
        Turn::Assistant(said) => said.iter().map(said_bytes).sum(),
        Turn::Results(results) => results.iter().map(|result| bytes(result.output.as_str())).sum(),
    }
}

fn part_bytes(part: &Part) -> u64 {
    match part {
        Part::Text { text } => bytes(text),
        Part::Image { .. } => IMAGE_BYTES,
    }
}

fn said_bytes(said: &Said) -> u64 {
    match said {
        Said::Text(text) | Said::Reasoning { text, .. } => bytes(text),
        Said::Call { name, input, .. } => bytes(name) + bytes(input.as_str()),
    }
}

fn tool_bytes(tool: &OfferedTool) -> u64 {
    bytes(tool.name.as_str()) + bytes(&tool.description) + bytes(tool.parameters.as_str())
}

fn reply_bytes(part: &ReplyPart) -> u64 {
    match part {
        ReplyPart::Text { text, .. } | ReplyPart::Reasoning { text, .. } => bytes(text),
        ReplyPart::Call { name, arguments, .. } => bytes(name) + bytes(arguments),
    }
}

fn bytes(text: &str) -> u64 {
    text.len() as u64
}
