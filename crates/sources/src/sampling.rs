//! Has the model of a run asked for an MCP server: `sampling/createMessage`, read and answered.

use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_engine::sampling::{Sampled, Sampling, SamplingRequest};
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::{Said, Turn};

/// Most messages of one request.
const MESSAGES_MAX: usize = 64;
/// Most bytes of one request, pictures included.
const REQUEST_BYTES_MAX: usize = 2 << 20;
/// Most tokens of a reply, whatever the server wants.
const TOKENS_MAX: u32 = 4_096;

/// Has the model asked for the calls of one server.
#[derive(Clone)]
pub(crate) struct ServerSampling {
    /// Name of the server.
    pub server: String,
    /// Whether its configuration permits it.
    pub is_permitted: bool,
    /// The model of the run that made the call.
    pub model: Sampling,
}

impl ServerSampling {
    /// The result of `sampling/createMessage`. The error is in words, for the server and for the model.
    pub async fn sample(&self, params: &Value) -> Result<Value, String> {
        if !self.is_permitted {
            return Err(format!(
                "the MCP server {:?} wants a model asked, which it may not: `sampling` in its configuration permits it",
                self.server
            ));
        }
        let refused = |reason: String| {
            format!(
                "the MCP server {:?} wants a model asked, and it was not: {reason}",
                self.server
            )
        };
        let request = request(params).map_err(refused)?;
        let sampled = self.model.sample(request).await.map_err(refused)?;
        Ok(result(sampled))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    messages: Vec<Message>,
    #[serde(default)]
    system_prompt: Option<String>,
    #[serde(default)]
    temperature: Option<f64>,
    max_tokens: u32,
    #[serde(default)]
    tools: Vec<Value>,
}

#[derive(Deserialize)]
struct Message {
    role: Role,
    content: OneOrMany,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

/// A block, or since 2025-11-25 several.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    Many(Vec<Block>),
    One(Block),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Block {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
    },
    #[serde(other)]
    Other,
}

/// Reads what the server wants to be asked. Which model it would prefer is not looked at: it is the run's own.
fn request(params: &Value) -> Result<SamplingRequest, String> {
    let bytes = params.to_string().len();
    if bytes > REQUEST_BYTES_MAX {
        return Err(format!(
            "the request has {bytes} bytes, and at most {REQUEST_BYTES_MAX} are passed on"
        ));
    }
    let params =
        Params::deserialize(params).map_err(|error| format!("the request cannot be read: {error}"))?;
    if params.messages.len() > MESSAGES_MAX {
        return Err(format!(
            "the request has {} messages, and at most {MESSAGES_MAX} are passed on",
            params.messages.len()
        ));
    }
    if !params.tools.is_empty() {
        return Err("tools for the model to call are not passed on".into());
    }
    let turns: Result<Vec<Turn>, String> = params.messages.into_iter().map(turn).collect();
    Ok(SamplingRequest {
        instructions: params.system_prompt.unwrap_or_default(),
        turns: turns?,
        max_output_tokens: params.max_tokens.clamp(1, TOKENS_MAX),
        temperature: params.temperature,
    })
}

fn turn(Message { role, content }: Message) -> Result<Turn, String> {
    let blocks = match content {
        OneOrMany::One(block) => vec![block],
        OneOrMany::Many(blocks) => blocks,
    };
    Ok(match role {
        Role::User => Turn::User(blocks.into_iter().map(part).collect::<Result<_, _>>()?),
        Role::Assistant => Turn::Assistant(blocks.into_iter().map(said).collect::<Result<_, _>>()?),
    })
}

fn part(block: Block) -> Result<Part, String> {
    match block {
        Block::Text { text } => Ok(Part::Text { text }),
        Block::Image { data, mime_type } => Ok(Part::Image {
            url: format!("data:{mime_type};base64,{data}"),
            media_type: Some(mime_type),
        }),
        Block::Other => Err("only texts and images are passed on to a model".into()),
    }
}

fn said(block: Block) -> Result<Said, String> {
    match block {
        Block::Text { text } => Ok(Said::Text(text)),
        Block::Image { .. } | Block::Other => {
            Err("of what a model said before, only texts are passed on".into())
        }
    }
}

fn result(sampled: Sampled) -> Value {
    json!({
        "role": "assistant",
        "content": { "type": "text", "text": sampled.text },
        "model": sampled.model,
        "stopReason": if sampled.is_cut { "maxTokens" } else { "endTurn" },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(content: Value) -> Value {
        json!({
            "messages": [{"role": "user", "content": content}],
            "systemPrompt": "Be brief.", "maxTokens": 1_000_000, "modelPreferences": {"hints": [{"name": "other"}]},
        })
    }

    #[test]
    fn texts_and_images_are_passed_on_within_the_limit_of_tokens() {
        let blocks = json!([
            {"type": "text", "text": "What is this?"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ]);
        let request = request(&asked(blocks)).unwrap();
        assert_eq!(request.instructions, "Be brief.");
        assert_eq!(request.max_output_tokens, TOKENS_MAX);
        let expected = Turn::User(vec![
            Part::Text {
                text: "What is this?".into(),
            },
            Part::Image {
                url: "data:image/png;base64,AAAA".into(),
                media_type: Some("image/png".into()),
            },
        ]);
        assert_eq!(request.turns, [expected]);
    }

    #[test]
    fn what_cannot_be_passed_on_is_refused_in_words() {
        let text = json!({"type": "text", "text": "hello"});
        let many = json!({"maxTokens": 1, "messages": vec![json!({"role": "user", "content": text}); 65]});
        let mut tools = asked(text);
        tools["tools"] = json!([{"name": "search"}]);
        let cases = [
            (
                asked(json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"})),
                "texts and images",
            ),
            (
                asked(json!({"type": "text", "text": "x".repeat(3 << 20)})),
                "bytes",
            ),
            (many, "65 messages"),
            (tools, "tools"),
            (json!({"messages": []}), "maxTokens"),
        ];
        for (params, words) in cases {
            let refused = request(&params).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
