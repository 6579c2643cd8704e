//! The body of a `streamGenerateContent` request, written directly from the conversation.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use toolgate_engine::model::Ask;
use toolgate_kernel::id::CallId;
use toolgate_kernel::message::Part as Spoken;
use toolgate_kernel::prompt::{CallResult, OfferedTool, Said, ToolChoice, Turn};

use super::TAG;
use super::schema::Schema;
use crate::history::{Each, IMAGE_UNSUPPORTED, Image, Object, contents, image, sendable};

/// Signature for a call that another model made: Gemini rejects a conversation with an unsigned call.
const SIGNATURE_FOREIGN: &str = "skip_thought_signature_validator";
/// Below this many reasoning tokens the thinking level is `low`.
const LITTLE_REASONING_TOKENS: u32 = 8192;

pub(super) fn body(ask: &Ask) -> Vec<u8> {
    let by_budget = is_before_3(&ask.model.name.name);
    let has_tools = !ask.tools.is_empty();
    let request = Request {
        tools: has_tools.then(|| tools(&ask.tools)),
        tool_config: has_tools.then_some(ToolConfig {
            function_calling_config: calling(&ask.tool_choice),
        }),
        system_instruction: Some(Instruction {
            parts: [&*ask.instructions, &*ask.today]
                .into_iter()
                .filter_map(text_part)
                .collect(),
        })
        .filter(|instruction| !instruction.parts.is_empty()),
        generation_config: Generation {
            temperature: ask.model.temperature,
            top_p: ask.model.top_p,
            max_output_tokens: ask.model.max_output_tokens,
            thinking_config: ask.model.reasoning_tokens.map(|tokens| Thinking {
                include_thoughts: true,
                thinking_budget: by_budget.then_some(tokens),
                thinking_level: (!by_budget).then_some(if tokens < LITTLE_REASONING_TOKENS {
                    "low"
                } else {
                    "high"
                }),
            }),
        },
        contents: Each(|| {
            let turns = ask
                .turns
                .iter()
                .filter(|turn| parts(turn, by_budget).next().is_some());
            turns.map(|turn| Content {
                role: if matches!(**turn, Turn::Assistant(_)) {
                    "model"
                } else {
                    "user"
                },
                parts: Each(|| parts(turn, by_budget)),
            })
        }),
    };
    serde_json::to_vec(&request).expect("a request has only string keys")
}

/// Whether the model takes a token budget for reasoning (before Gemini 3) instead of a level.
fn is_before_3(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    name.starts_with("gemini-1") || name.starts_with("gemini-2")
}

/// The tool definitions in the vendor's format.
pub(crate) fn tools(tools: &[OfferedTool]) -> impl Serialize {
    [Tools {
        function_declarations: Each(move || {
            tools.iter().map(|tool| Function {
                name: tool.name.as_str(),
                description: &tool.description,
                parameters_json_schema: Schema(&tool.parameters),
            })
        }),
    }]
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a, C: Serialize, T: Serialize> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    generation_config: Generation,
    /// Last: the next step's request begins with the bytes of this one.
    contents: C,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
struct Content<P: Serialize> {
    role: &'static str,
    parts: P,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<F: Serialize> {
    function_declarations: F,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: Schema<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    function_calling_config: Calling<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Calling<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'a str; 1]>,
}

fn calling(choice: &ToolChoice) -> Calling<'_> {
    let (mode, only) = match choice {
        ToolChoice::Auto => ("AUTO", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::None => ("NONE", None),
        ToolChoice::Tool(name) => ("ANY", Some([name.as_str()])),
    };
    Calling {
        mode,
        allowed_function_names: only,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generation {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Thinking>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Thinking {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Inline<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<File<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Called<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<Response<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inline<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    file_uri: &'a str,
}

#[derive(Serialize)]
struct Called<'a> {
    id: CallId,
    name: Cow<'a, str>,
    args: Object<'a>,
}

#[derive(Serialize)]
struct Response<'a> {
    id: CallId,
    name: Cow<'a, str>,
    response: Output<'a>,
}

/// An output or an error, in the member that the vendor reads it from.
struct Output<'a>(&'a CallResult);

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let member = if self.0.is_error { "error" } else { "output" };
        let mut object = out.serialize_map(Some(1))?;
        object.serialize_entry(member, &self.0.output)?;
        object.end()
    }
}

fn parts(turn: &Turn, unsigned: bool) -> impl Iterator<Item = Part<'_>> {
    let (parts, said, results) = contents(turn);
    let first_call = said.iter().position(|piece| matches!(piece, Said::Call { .. }));
    let pieces = said.iter().enumerate().filter_map(move |(at, said)| {
        let mut part = piece(said)?;
        // The signature on a step's first call covers all its calls.
        if first_call == Some(at) && !unsigned {
            part.thought_signature.get_or_insert(SIGNATURE_FOREIGN);
        }
        Some(part)
    });
    parts
        .iter()
        .filter_map(spoken)
        .chain(pieces)
        .chain(results.iter().map(result))
}

fn spoken(part: &Spoken) -> Option<Part<'_>> {
    match part {
        Spoken::Text { text } => text_part(text),
        Spoken::Image { url, media_type } => Some(match image(url) {
            Image::Url(url) => Part {
                file_data: Some(File {
                    mime_type: media_type.as_deref(),
                    file_uri: url,
                }),
                ..Part::default()
            },
            Image::Inline {
                media_type: own,
                data,
            } => Part {
                inline_data: Some(Inline {
                    mime_type: media_type.as_deref().unwrap_or(own),
                    data,
                }),
                ..Part::default()
            },
            Image::Unsupported => Part {
                text: Some(IMAGE_UNSUPPORTED),
                ..Part::default()
            },
        }),
    }
}

fn piece(said: &Said) -> Option<Part<'_>> {
    match said {
        Said::Text(text) => text_part(text),
        // Gemini does not take reasoning text back, only its signature.
        Said::Reasoning { signature, .. } => Some(Part {
            text: Some(""),
            thought_signature: Some(signature.as_deref()?.strip_prefix(TAG)?),
            ..Part::default()
        }),
        Said::Call {
            id,
            name,
            input,
            signature,
        } => Some(Part {
            function_call: Some(Called {
                id: *id,
                name: sendable(name),
                args: Object(input),
            }),
            thought_signature: signature.as_deref().and_then(|text| text.strip_prefix(TAG)),
            ..Part::default()
        }),
    }
}

fn result(result: &CallResult) -> Part<'_> {
    Part {
        function_response: Some(Response {
            id: result.id,
            name: sendable(&result.name),
            response: Output(result),
        }),
        ..Part::default()
    }
}

/// A text part; none for an empty text, which the vendor rejects.
fn text_part(text: &str) -> Option<Part<'_>> {
    (!text.is_empty()).then(|| Part {
        text: Some(text),
        ..Part::default()
    })
}
