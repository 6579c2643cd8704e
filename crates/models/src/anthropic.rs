//! Adapter for Anthropic's Messages API.

use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_engine::model::{Ask, Ending, ModelError};
use toolgate_kernel::event::{FinishReason, Usage};

use crate::adapter::Vendor;
use crate::failure::{VendorError, retryable};
use crate::http::Outgoing;
use crate::json::{Text, read_or_default};
use crate::reply::Reply;
use crate::stream::Dialect;

mod request;

/// The API version that this adapter implements.
const VERSION: &str = "2023-06-01";
/// Prefix of signatures that this adapter stores and sends back.
const TAG: &str = "anthropic:";
/// Prefix of reasoning that arrived encrypted as a whole.
const TAG_REDACTED: &str = "anthropic-redacted:";

/// Anthropic's Messages API.
pub(crate) static VENDOR: Vendor<Messages> = Vendor {
    name: "Anthropic",
    address: "https://api.anthropic.com/v1",
    own_key: ("anthropic_key", |settings| settings.anthropic_key.as_ref()),
    key: ("x-api-key", ""),
    request,
    tools: |offered| serde_json::to_string(&request::tools(offered)),
    dialect: Messages::default,
};

fn request(ask: &Ask, address: &str) -> Result<Outgoing, ModelError> {
    let mut outgoing = Outgoing::new(&format!("{address}/messages"), request::body(ask))?;
    outgoing.header("anthropic-version", VERSION);
    Ok(outgoing)
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    index: u64,
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
    #[serde(borrow, default)]
    content_block: Option<Block<'a>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    data: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    partial_json: Text<'a>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
}

/// Token counts. Each is the total so far; a missing one has not changed.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Count {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Count {
    fn add(&mut self, newer: Count) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens = newer
            .cache_creation_input_tokens
            .or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
    }
    fn usage(&self) -> Usage {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let written = self.cache_creation_input_tokens.unwrap_or(0);
        Usage {
            // The vendor counts tokens that are written to or read from its cache separately.
            input_tokens: self.input_tokens.unwrap_or(0) + written + cached,
            output_tokens: self.output_tokens.unwrap_or(0),
            reasoning_tokens: 0,
            cached_tokens: cached,
            estimated: false,
        }
    }
}

/// A call whose content block is not closed yet.
struct Open {
    index: u64,
    slot: u32,
    /// Input that came with the block's start.
    input: String,
}

/// Parser of a stream of message events.
#[derive(Default)]
pub(crate) struct Messages {
    open: Vec<Open>,
    signature: String,
    reason: Option<FinishReason>,
    count: Count,
}

impl Dialect for Messages {
    fn event(&mut self, data: &[u8], reply: &mut Reply<'_>) -> Result<bool, ModelError> {
        let event: Event<'_> = serde_json::from_slice(data)
            .map_err(|_| retryable("the model sent an event that is not a valid message event"))?;
        if let Some(error) = event.error {
            return Err(VendorError::read(error).in_stream());
        }
        if let Some(usage) = event.usage.or(event.message.and_then(|message| message.usage)) {
            self.count.add(read_or_default(Some(usage)));
        }
        if let Some(block) = event.content_block {
            self.start(event.index, block, reply);
        }
        if let Some(delta) = event.delta {
            self.read_delta(event.index, delta, reply);
        }
        match &*event.kind {
            "content_block_stop" => self.stop(event.index, reply),
            "message_stop" => return Ok(true),
            _ => {}
        }
        Ok(false)
    }

    fn ending(&mut self, _: &mut Reply<'_>) -> Option<Ending> {
        Some(Ending {
            reason: self.reason?,
            usage: self.count.usage(),
        })
    }
}

impl Messages {
    fn start(&mut self, index: u64, block: Block<'_>, reply: &mut Reply<'_>) {
        match &*block.kind {
            "tool_use" => {
                let slot = reply.call(&block.name);
                let input = block.input.map_or("", RawValue::get).to_owned();
                self.open.push(Open { index, slot, input });
            }
            "redacted_thinking" => reply.reasoning_signature(TAG_REDACTED, &block.data),
            _ => {
                reply.reasoning(&block.thinking);
                reply.text(&block.text);
            }
        }
    }

    fn read_delta(&mut self, index: u64, delta: Delta<'_>, reply: &mut Reply<'_>) {
        match &*delta.kind {
            "text_delta" => reply.text(&delta.text),
            "thinking_delta" => reply.reasoning(&delta.thinking),
            "signature_delta" => self.signature.push_str(&delta.signature),
            "input_json_delta" => {
                if let Some(call) = self.open.iter().rfind(|call| call.index == index) {
                    reply.input(call.slot, &delta.partial_json);
                }
            }
            // The delta at the end of the message has no type.
            "" => self.finish(&delta.stop_reason),
            _ => {}
        }
    }

    fn stop(&mut self, index: u64, reply: &mut Reply<'_>) {
        if !self.signature.is_empty() {
            reply.reasoning_signature(TAG, &std::mem::take(&mut self.signature));
        }
        if let Some(at) = self.open.iter().rposition(|call| call.index == index) {
            let call = self.open.swap_remove(at);
            if !reply.has_input(call.slot) {
                reply.input(call.slot, &call.input);
            }
        }
    }

    fn finish(&mut self, reason: &str) {
        self.reason = match reason {
            "" => return,
            "end_turn" | "stop_sequence" => Some(FinishReason::Stop),
            "max_tokens" | "model_context_window_exceeded" => Some(FinishReason::Length),
            "tool_use" => Some(FinishReason::ToolCalls),
            "refusal" => Some(FinishReason::ContentFilter),
            _ => Some(FinishReason::Other),
        };
    }
}
