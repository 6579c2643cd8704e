//! The body of a chat completions request, written directly from the conversation.

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::value::RawValue;
use toolgate_engine::model::Ask;
use toolgate_kernel::id::CallId;
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::{OfferedTool, Said, ToolChoice, Turn};

use super::{ADDRESS, TAG};
use crate::history::{Each, Object, OutputText, effort, sendable};

pub(super) fn body(ask: &Ask, address: &str) -> Vec<u8> {
    let own = address == ADDRESS || address.contains(".openai.azure.com/");
    let has_tools = !ask.tools.is_empty();
    let request = Request {
        model: &ask.model.name.name,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        tools: has_tools.then(|| tools(&ask.tools)),
        tool_choice: has_tools.then_some(Choice(&ask.tool_choice)),
        temperature: ask.model.temperature,
        top_p: ask.model.top_p,
        // The vendor's newer models reject the older name; most other servers do not know the newer one.
        max_completion_tokens: ask.model.max_output_tokens.filter(|_| own),
        max_tokens: ask.model.max_output_tokens.filter(|_| !own),
        reasoning_effort: ask.model.reasoning_tokens.map(effort),
        messages: Messages { ask, own },
    };
    serde_json::to_vec(&request).expect("a request has only string keys")
}

/// The tool definitions in the vendor's format.
pub(crate) fn tools(tools: &[OfferedTool]) -> impl Serialize {
    Each(move || {
        tools.iter().map(|tool| Tool {
            kind: "function",
            function: Function {
                name: tool.name.as_str(),
                description: &tool.description,
                parameters: &tool.parameters,
            },
        })
    })
}

/// The messages are last: the next step's request begins with the bytes of this one.
#[derive(Serialize)]
struct Request<'a, T: Serialize> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    messages: Messages<'a>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Json,
}

struct Choice<'a>(&'a ToolChoice);

impl Serialize for Choice<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct One<'a> {
            #[serde(rename = "type")]
            kind: &'static str,
            function: Named<'a>,
        }
        #[derive(Serialize)]
        struct Named<'a> {
            name: &'a str,
        }
        match self.0 {
            ToolChoice::Auto => out.serialize_str("auto"),
            ToolChoice::Required => out.serialize_str("required"),
            ToolChoice::None => out.serialize_str("none"),
            ToolChoice::Tool(name) => One {
                kind: "function",
                function: Named { name: name.as_str() },
            }
            .serialize(out),
        }
    }
}

struct Messages<'a> {
    ask: &'a Ask,
    /// Whether the request goes to the vendor itself, which rejects unknown members.
    own: bool,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut list = out.serialize_seq(None)?;
        let system = self.ask.system();
        if !system.is_empty() {
            // One message: chat templates of some servers take no second one.
            list.serialize_element(&Message::new("system", &*system))?;
        }
        for turn in &self.ask.turns {
            match &**turn {
                Turn::User(parts) => list.serialize_element(&Message::new("user", Parts(parts)))?,
                Turn::Assistant(said) => list.serialize_element(&assistant(said, self.own))?,
                Turn::Results(results) => {
                    for result in results {
                        list.serialize_element(&Message {
                            tool_call_id: Some(result.id),
                            ..Message::new("tool", OutputText(&result.output))
                        })?;
                    }
                }
            }
        }
        list.end()
    }
}

#[derive(Serialize)]
struct Message<C: Serialize> {
    role: &'static str,
    content: C,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<CallId>,
}

impl<C: Serialize> Message<C> {
    fn new(role: &'static str, content: C) -> Self {
        Self {
            role,
            content,
            tool_call_id: None,
        }
    }
}

#[derive(Serialize)]
struct Assistant<'a, T: Serialize> {
    role: &'static str,
    content: Option<Joined<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Joined<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Joined<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<T>,
}

fn assistant(said: &[Said], own: bool) -> impl Serialize {
    let calls = Each(move || {
        said.iter().filter_map(|piece| match piece {
            Said::Call {
                id,
                name,
                input,
                signature,
            } => Some(Call {
                id: *id,
                kind: "function",
                function: Called {
                    name: sendable(name),
                    arguments: Arguments(input),
                },
                extra_content: signature
                    .as_deref()
                    .and_then(|text| serde_json::from_str(text.strip_prefix(TAG)?).ok()),
            }),
            Said::Text(_) | Said::Reasoning { .. } => None,
        })
    });
    let has_calls = said.iter().any(|piece| matches!(piece, Said::Call { .. }));
    let thought = |member| {
        let joined = Joined {
            said,
            of: Of::Reasoning(member),
        };
        // Reasoning is only needed back with the calls that followed it.
        (has_calls && !own && !joined.is_empty()).then_some(joined)
    };
    let text = Joined { said, of: Of::Text };
    Assistant {
        role: "assistant",
        content: (!has_calls || !text.is_empty()).then_some(text),
        reasoning_content: thought("reasoning_content"),
        reasoning: thought("reasoning"),
        tool_calls: has_calls.then_some(calls),
    }
}

#[derive(Serialize)]
struct Call<'a> {
    id: CallId,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Called<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: std::borrow::Cow<'a, str>,
    arguments: Arguments<'a>,
}

/// A call's input as the text of a JSON object. Servers that parse it reject anything else, and would reject
/// every later request of the conversation.
struct Arguments<'a>(&'a Json);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.0.as_str() {
            text if text.starts_with('{') => out.serialize_str(text),
            _ => out.serialize_str(&serde_json::to_string(&Object(self.0)).expect("an object with one key")),
        }
    }
}

#[derive(Clone, Copy)]
enum Of {
    Text,
    /// Reasoning that arrived in this member.
    Reasoning(&'static str),
}

/// All texts of one kind, joined: not every server accepts a list here.
struct Joined<'a> {
    said: &'a [Said],
    of: Of,
}

impl<'a> Joined<'a> {
    fn texts(&self) -> impl Iterator<Item = &'a str> {
        let of = self.of;
        self.said.iter().filter_map(move |piece| match (piece, of) {
            (Said::Text(text), Of::Text) => Some(text.as_str()),
            (Said::Reasoning { text, signature }, Of::Reasoning(member)) => {
                (signature.as_deref()?.strip_prefix(TAG)? == member).then_some(text)
            }
            _ => None,
        })
    }
    fn is_empty(&self) -> bool {
        self.texts().next().is_none()
    }
}

impl fmt::Display for Joined<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, text) in self.texts().enumerate() {
            out.write_str(if i == 0 { "" } else { "\n" })?;
            out.write_str(text)?;
        }
        Ok(())
    }
}

impl Serialize for Joined<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut texts = self.texts();
        match (texts.next(), texts.next()) {
            (first, None) => out.serialize_str(first.unwrap_or_default()),
            (_, Some(_)) => out.collect_str(self),
        }
    }
}

/// A user message: text alone as a string, which every server accepts, otherwise a list of parts.
struct Parts<'a>(&'a [Part]);

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Content<'a> {
            Text { text: &'a str },
            ImageUrl { image_url: Url<'a> },
        }
        #[derive(Serialize)]
        struct Url<'a> {
            url: &'a str,
        }
        if let [Part::Text { text }] = self.0 {
            return out.serialize_str(text);
        }
        out.collect_seq(self.0.iter().map(|part| match part {
            Part::Text { text } => Content::Text { text },
            Part::Image { url, .. } => Content::ImageUrl {
                image_url: Url { url },
            },
        }))
    }
}
