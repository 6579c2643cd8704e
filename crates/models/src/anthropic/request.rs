//! The body of a Messages request, written directly from the conversation.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;
use toolgate_engine::model::Ask;
use toolgate_kernel::id::CallId;
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::{CallResult, OfferedTool, Said, ToolChoice, Turn};

use super::{TAG, TAG_REDACTED};
use crate::history::{Each, IMAGE_UNSUPPORTED, Image, Object, OutputText, contents, effort, image, sendable};

/// `max_tokens` if the agent sets none: the vendor requires a value.
const OUTPUT_TOKENS_DEFAULT: u32 = 8192;
/// Smallest reasoning budget that the vendor accepts.
const REASONING_TOKENS_MIN: u32 = 1024;

pub(super) fn body(ask: &Ask) -> Vec<u8> {
    // The vendor requires user and assistant messages in alternation, with tool results at the beginning of
    // the user's message.
    let turns: Vec<&Turn> = ask
        .turns
        .iter()
        .map(|turn| &**turn)
        .filter(|turn| blocks(turn).next().is_some())
        .collect();
    let chunks: Vec<&[&Turn]> = turns.chunk_by(|a, b| is_user(a) == is_user(b)).collect();
    let is_marked = marked_messages(&chunks);
    let messages = Each(|| {
        chunks.iter().enumerate().map(|(at, turns)| Message {
            role: if is_user(turns[0]) { "user" } else { "assistant" },
            content: Each(move || {
                let blocks = turns.iter().flat_map(|turn| blocks(turn));
                last_marked(blocks, is_marked.contains(&Some(at)))
            }),
        })
    });
    let has_tools = !ask.tools.is_empty();
    let reasoning_tokens = ask.model.reasoning_tokens.unwrap_or(0).max(REASONING_TOKENS_MIN);
    let thinking = thinking(ask, &turns, reasoning_tokens);
    let output = ask.model.max_output_tokens.unwrap_or(OUTPUT_TOKENS_DEFAULT);
    let request = Request {
        model: &ask.model.name.name,
        stream: true,
        tools: has_tools.then(|| marked_tools(&ask.tools, ask.instructions.is_empty())),
        tool_choice: has_tools.then_some(match &ask.tool_choice {
            ToolChoice::Auto => Choice::Auto,
            ToolChoice::Required => Choice::Any,
            ToolChoice::None => Choice::None,
            ToolChoice::Tool(name) => Choice::Tool { name: name.as_str() },
        }),
        system: system(ask),
        messages,
        // The vendor counts reasoning as output.
        max_tokens: output.saturating_add(thinking.map_or(0, |_| reasoning_tokens)),
        // The vendor rejects these together with reasoning.
        temperature: ask.model.temperature.filter(|_| thinking.is_none()),
        top_p: ask.model.top_p.filter(|_| thinking.is_none()),
        output_config: matches!(thinking, Some(Thinking::Adaptive { .. })).then(|| OutputConfig {
            effort: effort(reasoning_tokens),
        }),
        thinking,
    };
    serde_json::to_vec(&request).expect("a request has only string keys")
}

/// The tool definitions in the vendor's format.
pub(crate) fn tools(tools: &[OfferedTool]) -> impl Serialize {
    marked_tools(tools, false)
}

/// The tool definitions; a cache mark at the last one where no instructions follow that could carry it.
fn marked_tools(tools: &[OfferedTool], mark: bool) -> impl Serialize {
    Each(move || {
        let tools = tools.iter().map(|tool| Tool {
            name: tool.name.as_str(),
            description: &tool.description,
            input_schema: Schema(&tool.parameters),
        });
        last_marked(tools, mark)
    })
}

/// Instructions, with a cache mark: all conversations of the agent share them and the tools, which the vendor reads
/// before them. What is only true today follows behind the mark.
fn system(ask: &Ask) -> Vec<Marked<Block<'_>>> {
    let instructions = text_block(&ask.instructions).map(|block| Marked {
        block,
        cache_control: Some(EPHEMERAL),
    });
    let today = text_block(&ask.today).map(|block| Marked {
        block,
        cache_control: None,
    });
    instructions.into_iter().chain(today).collect()
}

/// The messages whose last block carries a cache mark: the user's last one, so that the next step finds all of this
/// request in the cache, and the one before it, which is where the last step's mark was. The vendor looks only 20
/// blocks back from a mark, and one step may add more.
fn marked_messages(chunks: &[&[&Turn]]) -> [Option<usize>; 2] {
    let mut users = chunks
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, turns)| is_user(turns[0]));
    let mut next = || users.next().map(|(at, _)| at);
    [next(), next()]
}

/// The blocks, the last one with a cache mark if `mark` says so.
fn last_marked<T: Serialize>(blocks: impl Iterator<Item = T>, mark: bool) -> impl Iterator<Item = Marked<T>> {
    let mut blocks = blocks.peekable();
    std::iter::from_fn(move || {
        let block = blocks.next()?;
        let cache_control = (mark && blocks.peek().is_none()).then_some(EPHEMERAL);
        Some(Marked { block, cache_control })
    })
}

/// A cache mark: the vendor stores the request up to here, for a few minutes. At most four in a request.
const EPHEMERAL: CacheControl = CacheControl { kind: "ephemeral" };

#[derive(Serialize, Clone, Copy)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Marked<T> {
    #[serde(flatten)]
    block: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// In the order in which vendors read a prompt, so that the next step's request begins with the bytes of this one.
/// Behind the messages stands what may differ from step to step.
#[derive(Serialize)]
struct Request<'a, M: Serialize, T: Serialize> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<Block<'a>>>,
    messages: M,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize, Clone, Copy)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Thinking {
    Adaptive { display: &'static str },
    Enabled { budget_tokens: u32 },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Choice<'a> {
    Auto,
    Any,
    None,
    Tool { name: &'a str },
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Schema<'a>,
}

#[derive(Serialize)]
struct Message<C: Serialize> {
    role: &'static str,
    content: C,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: CallId,
        name: Cow<'a, str>,
        input: Object<'a>,
    },
    ToolResult {
        tool_use_id: CallId,
        content: OutputText<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Source<'a> {
    Url { url: &'a str },
    Base64 { media_type: &'a str, data: &'a str },
}

fn is_user(turn: &Turn) -> bool {
    !matches!(turn, Turn::Assistant(_))
}

fn blocks(turn: &Turn) -> impl Iterator<Item = Block<'_>> {
    let (parts, said, results) = contents(turn);
    let parts = parts.iter().filter_map(part);
    parts
        .chain(said.iter().filter_map(piece))
        .chain(results.iter().map(result))
}

fn part(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::Text { text } => text_block(text),
        Part::Image { url, media_type } => Some(match image(url) {
            Image::Url(url) => Block::Image {
                source: Source::Url { url },
            },
            Image::Inline {
                media_type: own,
                data,
            } => Block::Image {
                source: Source::Base64 {
                    media_type: media_type.as_deref().unwrap_or(own),
                    data,
                },
            },
            Image::Unsupported => Block::Text {
                text: IMAGE_UNSUPPORTED,
            },
        }),
    }
}

fn piece(said: &Said) -> Option<Block<'_>> {
    match said {
        Said::Text(text) => text_block(text),
        Said::Reasoning { text, signature } => {
            let signature = signature.as_deref()?;
            let signed = signature.strip_prefix(TAG).map(|signature| Block::Thinking {
                thinking: text,
                signature,
            });
            signed.or_else(|| {
                signature
                    .strip_prefix(TAG_REDACTED)
                    .map(|data| Block::RedactedThinking { data })
            })
        }
        Said::Call { id, name, input, .. } => Some(Block::ToolUse {
            id: *id,
            name: sendable(name),
            input: Object(input),
        }),
    }
}

fn result(result: &CallResult) -> Block<'_> {
    Block::ToolResult {
        tool_use_id: result.id,
        content: OutputText(&result.output),
        is_error: result.is_error,
    }
}

/// A text block; none for blank text, which the vendor rejects.
fn text_block(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text { text })
}

/// The reasoning option, if the agent asks for reasoning and the vendor allows it in this request.
fn thinking(ask: &Ask, turns: &[&Turn], budget_tokens: u32) -> Option<Thinking> {
    ask.model.reasoning_tokens?;
    // The vendor rejects reasoning together with a forced tool call.
    if !matches!(ask.tool_choice, ToolChoice::Auto | ToolChoice::None) {
        return None;
    }
    if !takes_budget(&ask.model.name.name) {
        return Some(Thinking::Adaptive {
            display: "summarized",
        });
    }
    // The vendor allows reasoning after tool results only if the calls followed reasoning.
    let thoughtless = match turns {
        [.., Turn::Assistant(said), Turn::Results(_)] => !matches!(
            said.first().and_then(piece),
            Some(Block::Thinking { .. } | Block::RedactedThinking { .. })
        ),
        _ => false,
    };
    (!thoughtless).then_some(Thinking::Enabled { budget_tokens })
}

/// Whether the model takes a token budget for reasoning (up to 4.5); later models decide by themselves.
fn takes_budget(model: &str) -> bool {
    const WITH_BUDGET: &[&str] = &[
        "claude-3",
        "claude-opus-4-0",
        "claude-opus-4-1",
        "claude-opus-4-2025",
        "claude-opus-4-5",
        "claude-sonnet-4-0",
        "claude-sonnet-4-2025",
        "claude-sonnet-4-5",
        "claude-haiku-4-5",
    ];
    WITH_BUDGET.iter().any(|prefix| model.starts_with(prefix))
}

/// A tool's schema in the vendor's subset: `type` is `object`, and no alternatives at the top level.
struct Schema<'a>(&'a Json);

impl Serialize for Schema<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        const NOT_AT_TOP: [&str; 3] = ["anyOf", "oneOf", "allOf"];
        let text = self.0.as_str();
        let plain =
            text.starts_with(r#"{"type":"object""#) && !NOT_AT_TOP.iter().any(|word| text.contains(word));
        if plain {
            return self.0.serialize(out);
        }
        let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).unwrap_or_default();
        let mut object = out.serialize_map(None)?;
        object.serialize_entry("type", "object")?;
        for (name, value) in &members {
            if name != "type" && !NOT_AT_TOP.contains(&&**name) {
                object.serialize_entry(name, value)?;
            }
        }
        object.end()
    }
}
