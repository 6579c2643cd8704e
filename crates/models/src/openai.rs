//! Adapter for OpenAI's chat completions API and every compatible server.

use toolgate_engine::model::{Ask, Ending, ModelError};
use toolgate_kernel::event::{FinishReason, Usage};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::adapter::Vendor;
use crate::failure::{VendorError, retryable};
use crate::http::Outgoing;
use crate::json::{First, Text, read_or_default};
use crate::reply::Reply;
use crate::stream::Dialect;

mod request;

/// Base URL of the vendor's own API.
const ADDRESS: &str = "https://api.openai.com/v1";
/// Prefix of signatures that this adapter stores and sends back.
const TAG: &str = "openai:";
/// Name of a call that arrived without one.
const NAMELESS: &str = "unnamed";

/// OpenAI's chat completions API.
pub(crate) static VENDOR: Vendor<Completion> = Vendor {
    name: "OpenAI",
    address: ADDRESS,
    own_key: ("openai_key", |settings| settings.openai_key.as_ref()),
    key: ("authorization", "Bearer "),
    request,
    tools: |offered| serde_json::to_string(&request::tools(offered)),
    dialect: Completion::default,
};

fn request(ask: &Ask, address: &str) -> Result<Outgoing, ModelError> {
    Outgoing::new(
        &format!("{address}/chat/completions"),
        request::body(ask, address),
    )
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: First<Choice<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(borrow)]
    refusal: Text<'a>,
    #[serde(borrow)]
    reasoning_content: Text<'a>,
    #[serde(borrow)]
    reasoning: Text<'a>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Fragment<'a>>>,
}

/// A fragment of a call.
#[derive(Deserialize)]
struct Fragment<'a> {
    #[serde(borrow, default)]
    index: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
    #[serde(borrow, default)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Count {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Cached>,
    completion_tokens_details: Option<Thought>,
}
#[derive(Deserialize, Default)]
#[serde(default)]
struct Cached {
    cached_tokens: Option<u64>,
}
#[derive(Deserialize, Default)]
#[serde(default)]
struct Thought {
    reasoning_tokens: Option<u64>,
}

/// A call whose fragments are arriving.
struct Call {
    index: String,
    id: String,
    /// Assigned when the call's name arrives.
    slot: Option<u32>,
    /// Arguments that arrived before the name.
    held: String,
}

/// Parser of a stream of completion chunks.
#[derive(Default)]
pub(crate) struct Completion {
    calls: Vec<Call>,
    reason: Option<FinishReason>,
    usage: Usage,
    /// The JSON member that the current reasoning arrives in.
    reasoning: Option<&'static str>,
}

impl Dialect for Completion {
    fn event(&mut self, data: &[u8], reply: &mut Reply<'_>) -> Result<bool, ModelError> {
        if data.trim_ascii() == b"[DONE]" {
            self.reason.get_or_insert(FinishReason::Stop);
            return Ok(true);
        }
        let chunk: Chunk<'_> = serde_json::from_slice(data)
            .map_err(|_| retryable("the model sent an event that is not a valid completion chunk"))?;
        if let Some(error) = chunk.error {
            return Err(VendorError::read(error).in_stream());
        }
        if chunk.usage.is_some() {
            self.count(read_or_default(chunk.usage));
        }
        if let Some(choice) = chunk.choices.0 {
            if let Some(delta) = choice.delta {
                self.read_delta(delta, reply);
            }
            self.finish(&choice.finish_reason);
        }
        Ok(false)
    }

    fn ending(&mut self, reply: &mut Reply<'_>) -> Option<Ending> {
        let reason = self.reason?;
        self.end_reasoning(reply);
        for call in &mut self.calls {
            if call.slot.is_none() {
                let slot = reply.call(NAMELESS);
                reply.input(slot, &call.held);
            }
        }
        let called = reply.calls() > 0 && matches!(reason, FinishReason::Stop | FinishReason::Other);
        Some(Ending {
            // Many servers send `stop` after calls.
            reason: if called { FinishReason::ToolCalls } else { reason },
            usage: self.usage,
        })
    }
}

impl Completion {
    fn read_delta(&mut self, delta: Delta<'_>, reply: &mut Reply<'_>) {
        for (member, text) in [
            ("reasoning_content", &delta.reasoning_content),
            ("reasoning", &delta.reasoning),
        ] {
            if !text.is_empty() && self.reasoning.is_none_or(|open| open == member) {
                self.reasoning = Some(member);
                reply.reasoning(text);
            }
        }
        let calls = delta.tool_calls.unwrap_or_default();
        if !delta.content.is_empty() || !delta.refusal.is_empty() || !calls.is_empty() {
            self.end_reasoning(reply);
        }
        reply.text(&delta.content);
        reply.text(&delta.refusal);
        let alone = calls.len() == 1;
        for (position, fragment) in calls.into_iter().enumerate() {
            self.read_fragment(fragment, position, alone, reply);
        }
    }

    /// Ends the reasoning. Servers that reason before a call need it back, in the member it arrived in.
    fn end_reasoning(&mut self, reply: &mut Reply<'_>) {
        if let Some(member) = self.reasoning.take() {
            reply.reasoning_signature(TAG, member);
        }
    }

    fn read_fragment(&mut self, fragment: Fragment<'_>, position: usize, alone: bool, reply: &mut Reply<'_>) {
        let function = fragment.function.unwrap_or_default();
        let place = self
            .find(&fragment.index, &fragment.id, &function.name, position, alone)
            .unwrap_or_else(|| {
                self.calls.push(Call {
                    index: fragment.index.to_string(),
                    id: fragment.id.to_string(),
                    slot: None,
                    held: String::new(),
                });
                self.calls.len() - 1
            });
        let call = &mut self.calls[place];
        if call.slot.is_none() && !function.name.is_empty() {
            let slot = reply.call(&function.name);
            reply.input(slot, &std::mem::take(&mut call.held));
            call.slot = Some(slot);
        }
        let arguments = function.arguments.map(text_of).unwrap_or_default();
        match call.slot {
            Some(slot) => reply.input(slot, &arguments),
            None => call.held.push_str(&arguments),
        }
        if let (Some(slot), Some(extra)) = (call.slot, fragment.extra_content) {
            reply.call_signature(slot, TAG, extra.get());
        }
    }

    /// Finds the call that a fragment belongs to: by its id, then by its index, then by its position. A new
    /// id is a new call, whatever its index. An index is only a label, never an offset, because servers send
    /// gaps and repeats.
    fn find(&mut self, index: &str, id: &str, name: &str, position: usize, alone: bool) -> Option<usize> {
        let last_with = |calls: &[Call], index: &str| calls.iter().rposition(|call| call.index == index);
        if !id.is_empty() {
            let known = self.calls.iter().rposition(|call| call.id == id);
            return known.or_else(|| {
                let late = last_with(&self.calls, index)
                    .filter(|&at| self.calls[at].id.is_empty() && name.is_empty());
                late.inspect(|&at| self.calls[at].id = id.to_owned())
            });
        }
        if !index.is_empty() {
            return last_with(&self.calls, index);
        }
        let begins = |call: &Call| !name.is_empty() && call.slot.is_some();
        let at = if alone {
            self.calls.len().checked_sub(1)?
        } else {
            position
        };
        (at < self.calls.len() && !begins(&self.calls[at])).then_some(at)
    }

    fn finish(&mut self, reason: &str) {
        self.reason = match reason {
            "" => return,
            "stop" => Some(FinishReason::Stop),
            "length" => Some(FinishReason::Length),
            "tool_calls" | "function_call" => Some(FinishReason::ToolCalls),
            "content_filter" => Some(FinishReason::ContentFilter),
            "error" => Some(FinishReason::Error),
            _ => Some(FinishReason::Other),
        };
    }

    fn count(&mut self, count: Count) {
        self.usage = Usage {
            input_tokens: count.prompt_tokens.unwrap_or(0),
            output_tokens: count.completion_tokens.unwrap_or(0),
            reasoning_tokens: count
                .completion_tokens_details
                .and_then(|of| of.reasoning_tokens)
                .unwrap_or(0),
            cached_tokens: count
                .prompt_tokens_details
                .and_then(|of| of.cached_tokens)
                .unwrap_or(0),
            estimated: false,
        };
    }
}

/// Arguments as text: the string that they should be, or the JSON value that some servers send instead.
fn text_of(raw: &RawValue) -> Text<'_> {
    match raw.get() {
        "null" => Text::default(),
        text if text.starts_with('"') => serde_json::from_str(text).unwrap_or_default(),
        text => Text::from(text),
    }
}
