//! A conversation as a client of the AI SDK sees it: what it posts to a chat, or gives as history to a run. Members
//! that we do not know are the client's own business.

use serde_json::value::RawValue;
use toolgate_kernel::history::{Earlier, EarlierPart};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Part;
use toolgate_kernel::problem::Problem;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};

use crate::wire::{AnyObject, At, List, Members, Text, Wire, string, wire, words};

/// Most messages of one conversation in a request.
const MESSAGES_MAX: usize = 10_000;
/// Most parts of one message.
const PARTS_MAX: usize = 2_000;
/// Longest id that a client may give a chat or a message.
const ID_CHARS_MAX: usize = 256;
const NAME_CHARS_MAX: usize = 128;

/// An id that a client chose.
pub type Id = Text<1, ID_CHARS_MAX>;

/// A conversation.
pub type Messages = List<ChatMessage, 1, MESSAGES_MAX>;

words! {
    /// Author of a message.
    ChatRole {
        /// A person.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// The client's own instructions; ignored, the agent has its own.
        System = "system",
        /// What a call gave, in a message of its own.
        Tool = "tool",
    }
}

wire! {
    /// A message as the client sees it.
    ChatMessage {
        /// Chosen by the client: the same id again is the same message.
        id "id": Option<Text<0, ID_CHARS_MAX>>,
        /// Author of a message.
        role "role": ChatRole,
        /// Parts of the message.
        parts "parts": Option<ChatParts>,
        /// Text, or the parts of the message.
        content "content": Option<Content>,
        /// The call whose result this is.
        tool_call_id "toolCallId": Option<Id>,
        /// The same as `toolCallId`.
        tool_call_id_too "tool_call_id": Option<Id>,
        /// Whatever the client attaches; never given to a model.
        metadata "metadata": Option<AnyObject>,
    }
    ignore others
}

/// The pieces of a message.
pub type ChatParts = List<ChatPart, 0, PARTS_MAX>;

/// Words, which may be none, or pieces.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Plain text.
    Words(String),
    /// Pieces.
    Parts(ChatParts),
}

impl Wire for Content {
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        match value.get().starts_with('"') {
            true => string(value, at, problems).map(Self::Words),
            false => ChatParts::read(value, at, problems).map(Self::Parts),
        }
    }
    fn schema() -> RefOr<Schema> {
        utoipa::openapi::schema::OneOfBuilder::new()
            .item(ObjectBuilder::new().schema_type(Type::String))
            .item(ChatParts::schema())
            .into()
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatPart {
    /// Text.
    Text(String),
    /// A file, by address.
    File {
        /// Where it is, or what it is.
        url: String,
        /// Its media type.
        media_type: Option<String>,
    },
    /// A call and how the client sees it.
    Call(Box<CallPart>),
    /// A step of the model begins.
    Step,
    /// Something that only the client needs.
    Other,
}

wire! {
    /// A call and how the client sees it.
    CallPart {
        /// Id of the tool call.
        tool_call_id "toolCallId": Id,
        /// State of the part.
        state "state": Option<Text<0, NAME_CHARS_MAX>>,
        /// Input of the call.
        input "input": Option<Json>,
        /// Output of the tool.
        output "output": Option<Json>,
        /// Error message of the tool.
        error_text "errorText": Option<AnyText>,
        /// A person's word on it.
        approval "approval": Option<ApprovalPart>,
        /// More of the output will come.
        preliminary "preliminary": Option<bool>,
        /// Not the client's to answer.
        provider_executed "providerExecuted": Option<bool>,
        /// The tool, where the type does not tell.
        tool_name "toolName": Option<Text<1, NAME_CHARS_MAX>>,
    }
    ignore others
}
wire! {
    /// A person's word on a call.
    ApprovalPart {
        /// Id of the approval.
        id "id": Id,
        /// Whether the call may run; absent until it is decided.
        approved "approved": Option<bool>,
        /// Reason that the person gave for the decision.
        reason "reason": Option<Text<0, 10_000>>,
    }
    ignore others
}
wire! {
    /// A part of a message that is text.
    TextBit {
        /// The text.
        text "text": AnyText,
    }
    ignore others
}
wire! {
    /// A file, by address.
    FileBit {
        /// Where it is, or what it is.
        url "url": Option<AnyText>,
        /// The same as `url`.
        image "image": Option<AnyText>,
        /// Its media type.
        media_type "mediaType": Option<Text<0, NAME_CHARS_MAX>>,
    }
    ignore others
}

/// Text of any length that a body may have.
#[derive(Debug, Clone, PartialEq)]
pub struct AnyText(String);

impl AnyText {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Wire for AnyText {
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        string(value, at, problems).map(Self)
    }
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).into()
    }
}

impl Wire for ChatPart {
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        let members = Members::read(value, at, problems)?;
        let Some(kind) = members.get("type") else {
            problems.push(At::Member(at, "type").problem("is required"));
            return None;
        };
        let kind = string(kind, &At::Member(at, "type"), problems)?;
        match kind.as_str() {
            "text" => TextBit::read(value, at, problems).map(|bit| Self::Text(bit.text.0)),
            "file" | "image" => {
                let file = FileBit::read(value, at, problems)?;
                let Some(url) = file.url.or(file.image) else {
                    problems.push(At::Member(at, "url").problem("is required"));
                    return None;
                };
                Some(Self::File {
                    url: url.0,
                    media_type: file.media_type.map(|media| media.0),
                })
            }
            "step-start" => Some(Self::Step),
            "dynamic-tool" => CallPart::read(value, at, problems).map(|part| Self::Call(part.into())),
            other => match other.strip_prefix("tool-") {
                Some(name) => {
                    let mut part = CallPart::read(value, at, problems)?;
                    part.tool_name.get_or_insert_with(|| Text(name.to_owned()));
                    Some(Self::Call(part.into()))
                }
                None => Some(Self::Other),
            },
        }
    }
    /// Only what every kind has; each kind says the rest.
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .property("type", ObjectBuilder::new().schema_type(Type::String))
            .required("type")
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .into()
    }
}

impl ChatMessage {
    /// A user's message of plain text.
    pub fn of_text(text: String) -> Self {
        Self {
            id: None,
            role: ChatRole::User,
            parts: None,
            content: Some(Content::Words(text)),
            tool_call_id: None,
            tool_call_id_too: None,
            metadata: None,
        }
    }

    /// Its pieces, in whatever form they came.
    pub fn pieces(&self) -> &[ChatPart] {
        match (&self.parts, &self.content) {
            (Some(parts), _) | (None, Some(Content::Parts(parts))) => &parts.0,
            (None, Some(Content::Words(_)) | None) => &[],
        }
    }

    /// The calls of each step that it tells of, the last step first.
    pub fn steps_back(&self) -> impl Iterator<Item = Vec<&CallPart>> {
        let steps = self.pieces().rsplit(|part| *part == ChatPart::Step);
        steps.map(|step| {
            let calls = step.iter().filter_map(|part| match part {
                ChatPart::Call(call) => Some(call.as_ref()),
                ChatPart::Text(_) | ChatPart::File { .. } | ChatPart::Step | ChatPart::Other => None,
            });
            calls.collect()
        })
    }

    /// The call whose result this message is, and the result: JSON, or words.
    pub fn result(&self) -> Option<(&str, Json)> {
        let id = self.tool_call_id.as_ref().or(self.tool_call_id_too.as_ref())?;
        let words = match &self.content {
            Some(Content::Words(words)) => words.clone(),
            Some(Content::Parts(_)) | None => self.words().collect::<Vec<_>>().join("\n"),
        };
        let result = Json::parse(words.clone()).unwrap_or_else(|_| Json::string(&words));
        Some((&id.0, result))
    }

    /// Its texts that are not empty.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let bare = match (&self.parts, &self.content) {
            (None, Some(Content::Words(words))) => Some(words.as_str()),
            _ => None,
        };
        let pieces = self.pieces().iter().filter_map(|part| match part {
            ChatPart::Text(text) => Some(text.as_str()),
            ChatPart::File { .. } | ChatPart::Call(_) | ChatPart::Step | ChatPart::Other => None,
        });
        bare.into_iter().chain(pieces).filter(|words| !words.is_empty())
    }

    /// What a person says with it; `at` is where it stands in the body.
    pub fn said(&self, at: &str) -> Result<Vec<Part>, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut parts: Vec<Part> = self
            .words()
            .map(|text| Part::Text { text: text.into() })
            .collect();
        for (i, piece) in self.pieces().iter().enumerate() {
            let ChatPart::File { url, media_type } = piece else {
                continue;
            };
            let image = media_type
                .as_deref()
                .is_none_or(|media| media.starts_with("image/"));
            if image && (url.starts_with("https://") || url.starts_with("data:")) {
                parts.push(Part::Image {
                    url: url.clone(),
                    media_type: media_type.clone(),
                });
            } else {
                let message = "only images are read, from an https: address or a data: URL";
                problems.push(Problem::new(format!("{at}/parts/{i}"), message));
            }
        }
        if parts.is_empty() && problems.is_empty() {
            problems.push(Problem::new(at, "says nothing"));
        }
        if parts.len() > toolgate_kernel::message::PARTS_MAX {
            let max = toolgate_kernel::message::PARTS_MAX;
            problems.push(Problem::new(at, format!("has more than {max} parts")));
        }
        if problems.is_empty() {
            Ok(parts)
        } else {
            Err(problems)
        }
    }
}

/// Bytes of a past that are kept with the run; what is older is left out.
const PAST_BYTES_MAX: usize = 1 << 20;

/// Messages as a past that a client tells. Calls without a result are left out: nobody will answer them.
pub fn earlier(messages: &[ChatMessage]) -> Vec<Earlier> {
    let mut turns = turns(messages);
    let size = |turn: &Earlier| serde_json::to_string(turn).map_or(0, |text| text.len());
    let mut bytes = 0;
    let newest = turns.iter().rev().take_while(|turn| {
        bytes += size(turn);
        bytes <= PAST_BYTES_MAX
    });
    let kept = newest.count();
    turns.split_off(turns.len() - kept)
}

fn turns(messages: &[ChatMessage]) -> Vec<Earlier> {
    let mut turns: Vec<Earlier> = Vec::new();
    for message in messages {
        match message.role {
            ChatRole::User => turns.extend(message.said("").ok().map(Earlier::User)),
            ChatRole::Assistant => {
                let mut parts: Vec<EarlierPart> = Vec::new();
                if message.pieces().is_empty() {
                    parts.extend(message.words().map(|words| EarlierPart::Text(words.into())));
                }
                parts.extend(message.pieces().iter().filter_map(told));
                if !parts.is_empty() {
                    turns.push(Earlier::Assistant(parts));
                }
            }
            ChatRole::System | ChatRole::Tool => {}
        }
    }
    turns
}

fn told(part: &ChatPart) -> Option<EarlierPart> {
    match part {
        ChatPart::Text(text) if !text.is_empty() => Some(EarlierPart::Text(text.clone())),
        ChatPart::Call(call) => {
            let failed = call.error_text.as_ref();
            let error = failed.map(|text| serde_json::json!({"error": {"message": text.0}}).into());
            Some(EarlierPart::Call {
                name: call.tool_name.as_ref()?.0.as_str().into(),
                input: call.input.clone().unwrap_or_else(Json::null),
                output: call.output.clone().or(error)?,
                failed: failed.is_some(),
            })
        }
        ChatPart::Text(_) | ChatPart::File { .. } | ChatPart::Step | ChatPart::Other => None,
    }
}
