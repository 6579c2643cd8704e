//! Reads messages, by the same rules as the TypeScript SDK. Members that are not known are ignored: a newer gateway may
//! say more.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{ID_CHARS_MAX, Notice, NoticeType, Payload, SAFE_INTEGER_MAX, ToolEventType, ToolMessage};

/// Why a text is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It is no JSON object.
    #[error("a message must be a JSON object: {0}")]
    Malformed(String),
    /// Its type is not one that is known here.
    #[error("{0:?} is no type of message")]
    UnknownType(String),
    /// A member is missing or is not what it must be.
    #[error("{member} must be {expected}")]
    Member {
        /// The member.
        member: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

/// What the gateway sends: a tool event, or something about the channel.
#[derive(Debug, Clone, PartialEq)]
pub enum ChannelMessage {
    /// A tool event.
    Tool(ToolMessage),
    /// Something about the channel.
    Notice(Notice),
}

/// Reads a tool message.
pub fn deserialize_message(text: &str) -> Result<ToolMessage, MessageError> {
    let members = Members::read(text)?;
    let kind = members.kind()?;
    let kind = ToolEventType::of(&kind).ok_or(MessageError::UnknownType(kind))?;
    members.tool_message(kind)
}

/// Reads whatever the gateway sends.
pub fn read_channel_message(text: &str) -> Result<ChannelMessage, MessageError> {
    let members = Members::read(text)?;
    let name = members.kind()?;
    match (ToolEventType::of(&name), NoticeType::of(&name)) {
        (Some(kind), _) => members.tool_message(kind).map(ChannelMessage::Tool),
        (None, Some(kind)) => members.notice(kind).map(ChannelMessage::Notice),
        (None, None) => Err(MessageError::UnknownType(name)),
    }
}

/// The members of a message as they stand in the text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members {
    #[serde(rename = "type", default)]
    kind: Option<Box<RawValue>>,
    #[serde(default)]
    tool_id: Option<Box<RawValue>>,
    #[serde(default)]
    payload: Option<Box<RawValue>>,
    #[serde(default)]
    timestamp: Option<Box<RawValue>>,
    #[serde(default)]
    id: Option<Box<RawValue>>,
    #[serde(default)]
    seq: Option<Box<RawValue>>,
}

impl Members {
    fn read(text: &str) -> Result<Self, MessageError> {
        if !text.trim_start().starts_with('{') {
            return Err(MessageError::Malformed("it is something else".into()));
        }
        serde_json::from_str(text).map_err(|error| MessageError::Malformed(error.to_string()))
    }

    fn kind(&self) -> Result<String, MessageError> {
        string(self.kind.as_deref()).ok_or(wrong("type", "the name of an event"))
    }

    fn tool_message(self, kind: ToolEventType) -> Result<ToolMessage, MessageError> {
        let tool_id = text(self.tool_id.as_deref(), "toolId", usize::MAX)?;
        Ok(ToolMessage {
            kind,
            tool_id: tool_id.ok_or(wrong("toolId", TEXT))?,
            timestamp: whole(self.timestamp.as_deref(), "timestamp")?.ok_or(wrong("timestamp", WHOLE))?,
            id: text(self.id.as_deref(), "id", ID_CHARS_MAX)?,
            seq: whole(self.seq.as_deref(), "seq")?,
            payload: payload(self.payload)?,
        })
    }

    fn notice(self, kind: NoticeType) -> Result<Notice, MessageError> {
        Ok(Notice {
            kind,
            timestamp: whole(self.timestamp.as_deref(), "timestamp")?.ok_or(wrong("timestamp", WHOLE))?,
            id: text(self.id.as_deref(), "id", ID_CHARS_MAX)?,
            seq: whole(self.seq.as_deref(), "seq")?,
            payload: payload(self.payload)?,
        })
    }
}

const TEXT: &str = "a text that is not empty";
const WHOLE: &str = "a whole number that is not negative";

fn wrong(member: &'static str, expected: &'static str) -> MessageError {
    MessageError::Member { member, expected }
}

/// A string, if the value is one.
fn string(value: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(value?.get()).ok()
}

/// A text of at most so many characters; none when it is left out or null.
fn text(
    value: Option<&RawValue>,
    member: &'static str,
    chars_max: usize,
) -> Result<Option<String>, MessageError> {
    if value.is_none_or(|value| value.get() == "null") {
        return Ok(None);
    }
    let fits = |text: &String| !text.is_empty() && text.chars().count() <= chars_max;
    match string(value).filter(fits) {
        Some(text) => Ok(Some(text)),
        None => Err(wrong(member, TEXT)),
    }
}

/// A whole number that every reader keeps exactly; none when it is left out or null. JSON has one kind of number: 30.0 is
/// as whole as 30.
fn whole(value: Option<&RawValue>, member: &'static str) -> Result<Option<u64>, MessageError> {
    let Some(value) = value.filter(|value| value.get() != "null") else {
        return Ok(None);
    };
    let number: f64 = serde_json::from_str(value.get()).map_err(|_| wrong(member, WHOLE))?;
    let fits = number.fract() == 0.0 && (0.0..=SAFE_INTEGER_MAX as f64).contains(&number);
    match fits {
        true => Ok(Some(number as u64)),
        false => Err(wrong(member, WHOLE)),
    }
}

fn payload(value: Option<Box<RawValue>>) -> Result<Option<Payload>, MessageError> {
    let given = value.filter(|value| value.get() != "null");
    let read = given.map(Payload::try_from).transpose();
    read.map_err(|_| wrong("payload", "an object"))
}
