//! Adapter for Google's Gemini API.

use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_engine::model::{Ask, Ending, ModelError};
use toolgate_kernel::event::{FinishReason, Usage};

use crate::adapter::Vendor;
use crate::failure::{VendorError, retryable};
use crate::http::Outgoing;
use crate::json::{First, Text, read_or_default};
use crate::reply::Reply;
use crate::stream::Dialect;

mod request;
mod schema;

/// Prefix of signatures that this adapter stores and sends back.
const TAG: &str = "google:";

/// Google's Gemini API.
pub(crate) static VENDOR: Vendor<Generation> = Vendor {
    name: "Google",
    address: "https://generativelanguage.googleapis.com/v1beta",
    own_key: ("google_key", |settings| settings.google_key.as_ref()),
    key: ("x-goog-api-key", ""),
    request,
    tools: |offered| serde_json::to_string(&request::tools(offered)),
    dialect: Generation::default,
};

fn request(ask: &Ask, address: &str) -> Result<Outgoing, ModelError> {
    let name = ask.model.name.name.as_str();
    let folder = if name.contains('/') { "" } else { "models/" };
    Outgoing::new(
        &format!("{address}/{folder}{name}:streamGenerateContent?alt=sse"),
        request::body(ask),
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: First<Candidate<'a>>,
    #[serde(borrow, default)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(borrow, default)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default)]
    thought_signature: Text<'a>,
    #[serde(borrow, default)]
    function_call: Option<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow, default)]
    block_reason: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Count {
    prompt_token_count: u64,
    tool_use_prompt_token_count: u64,
    cached_content_token_count: u64,
    candidates_token_count: u64,
    thoughts_token_count: u64,
}

/// Parser of a stream of partial responses.
#[derive(Default)]
pub(crate) struct Generation {
    reason: Option<FinishReason>,
    usage: Usage,
}

impl Dialect for Generation {
    fn event(&mut self, data: &[u8], reply: &mut Reply<'_>) -> Result<bool, ModelError> {
        let chunk: Chunk<'_> = serde_json::from_slice(data)
            .map_err(|_| retryable("the model sent an event that is not a valid response"))?;
        if let Some(error) = chunk.error {
            return Err(VendorError::read(error).in_stream());
        }
        if chunk.usage_metadata.is_some() {
            self.count(read_or_default(chunk.usage_metadata));
        }
        if chunk
            .prompt_feedback
            .is_some_and(|feedback| !feedback.block_reason.is_empty())
        {
            self.reason = Some(FinishReason::ContentFilter);
        }
        if let Some(candidate) = chunk.candidates.0 {
            let parts = candidate.content.and_then(|content| content.parts);
            parts
                .into_iter()
                .flatten()
                .for_each(|part| read_part(part, reply));
            self.finish(&candidate.finish_reason)?;
        }
        // Gemini sends no end marker: the stream ends where the connection does.
        Ok(false)
    }

    fn ending(&mut self, reply: &mut Reply<'_>) -> Option<Ending> {
        let reason = self.reason?;
        let called = reply.calls() > 0 && reason == FinishReason::Stop;
        Some(Ending {
            reason: if called { FinishReason::ToolCalls } else { reason },
            usage: self.usage,
        })
    }
}

/// Handles one part. A call arrives complete; its signature must be sent back, the signature of a text may
/// be.
fn read_part(part: Part<'_>, reply: &mut Reply<'_>) {
    let signature = &part.thought_signature;
    match part.function_call {
        Some(call) => {
            let slot = reply.call(&call.name);
            reply.input(slot, call.args.map_or("", RawValue::get));
            if !signature.is_empty() {
                reply.call_signature(slot, TAG, signature);
            }
        }
        None => {
            if part.thought == Some(true) {
                reply.reasoning(&part.text);
            } else {
                reply.text(&part.text);
            }
            if !signature.is_empty() {
                reply.reasoning_signature(TAG, signature);
            }
        }
    }
}

impl Generation {
    fn finish(&mut self, reason: &str) -> Result<(), ModelError> {
        self.reason = match reason {
            "" | "FINISH_REASON_UNSPECIFIED" => return Ok(()),
            "STOP" => Some(FinishReason::Stop),
            "MAX_TOKENS" => Some(FinishReason::Length),
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => Some(FinishReason::ContentFilter),
            // The vendor withheld a malformed call of its model: a retry mostly works.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
                return Err(retryable(format!("the model stopped with {reason}")));
            }
            _ => Some(FinishReason::Other),
        };
        Ok(())
    }

    fn count(&mut self, count: Count) {
        self.usage = Usage {
            input_tokens: count.prompt_token_count + count.tool_use_prompt_token_count,
            output_tokens: count.candidates_token_count + count.thoughts_token_count,
            reasoning_tokens: count.thoughts_token_count,
            cached_tokens: count.cached_content_token_count,
            estimated: false,
        };
    }
}
