//! Messages of A2A in the log: what the kernel has no member for is kept in the metadata of the stored message, so that a
//! task's history is told as it was sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_a2a::client_tools;
use toolgate_a2a::error::{Error, ErrorKind};
use toolgate_a2a::message::{Message, Role};
use toolgate_a2a::part::{Content, Part};
use toolgate_a2a::{Dialect, Metadata};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message as Stored, Part as StoredPart};

/// Member of a stored message's metadata that holds what A2A says of it.
const MEMBER: &str = "a2a";

/// What A2A says of a message that the kernel does not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Origin {
    /// What the client calls the message.
    pub message_id: String,
    /// What the client calls the conversation, where it chose the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// How the client wants to be asked to execute its tools; none where the message says nothing of tools, so that it
    /// is asked as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// The parts in the form of 1.0, where they are more than text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reference_task_ids: Vec<String>,
}

/// How a client is asked to execute its tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// By tagged parts of a status message: our extension.
    #[default]
    Tagged,
    /// By artifacts: AG2's.
    Ag2,
    /// By `toolCalls` of a status message, on a stream that stays open: tools that came in `params`.
    Params,
}

impl Origin {
    /// What to keep of a message. The tools it brings are kept with the run, not with the message.
    pub fn of(message: &Message, context_id: Option<String>, form: Option<Form>) -> Self {
        let is_text = |part: &Part| {
            matches!(part.content, Content::Text(_)) && part.metadata.is_none() && part.media_type.is_none()
        };
        let parts = match message.parts.iter().all(is_text) {
            true => Vec::new(),
            false => {
                let parts = message.parts.iter().filter(|part| !is_machinery(part));
                parts.map(|part| part.to_json(Dialect::V1)).collect()
            }
        };
        let mut metadata = message.metadata.clone();
        if let Some(metadata) = &mut metadata {
            metadata.remove(client_tools::URI);
        }
        Self {
            message_id: message.message_id.clone(),
            context_id,
            form,
            parts,
            metadata: metadata.filter(|metadata| !metadata.is_empty()),
            extensions: message.extensions.clone(),
            reference_task_ids: message.reference_task_ids.clone(),
        }
    }

    /// Keeps the parts as they were sent, where the run is given something else.
    pub fn keep_parts(&mut self, message: &Message) {
        let parts = message.parts.iter();
        self.parts = parts.map(|part| part.to_json(Dialect::V1)).collect();
    }

    /// The metadata of the stored message.
    pub fn metadata(&self) -> Json {
        json!({ MEMBER: self }).into()
    }

    /// What A2A said of a stored message; none for one that came another way.
    pub fn read(stored: &Stored) -> Option<Self> {
        let mut metadata: Metadata = stored.metadata.as_ref()?.read().ok()?;
        serde_json::from_value(metadata.remove(MEMBER)?).ok()
    }
}

/// Whether a part is not content: tools, and a history that a server with a memory does not need.
pub(crate) fn is_machinery(part: &Part) -> bool {
    let media_type = part.media_type.as_deref().unwrap_or_default();
    [client_tools::AG2_SCHEMAS, client_tools::AG2_HISTORY].contains(&media_type)
}

/// A stored message as a client reads it.
pub(crate) fn restored(stored: &Stored, task: &str, context: &str) -> Message {
    let origin = Origin::read(stored).unwrap_or_else(|| Origin {
        message_id: stored.message_id.to_string(),
        ..Origin::default()
    });
    let parts = origin.parts.into_iter();
    let kept: Vec<Part> = parts
        .filter_map(|part| Part::from_json(part, Dialect::V1).ok())
        .collect();
    let parts = match kept.is_empty() {
        true => stored.parts.iter().map(restored_part).collect(),
        false => kept,
    };
    Message {
        context_id: Some(context.to_owned()),
        task_id: Some(task.to_owned()),
        metadata: origin.metadata,
        extensions: origin.extensions,
        reference_task_ids: origin.reference_task_ids,
        ..Message::new(origin.message_id, Role::User, parts)
    }
}

fn restored_part(part: &StoredPart) -> Part {
    match part {
        StoredPart::Text { text } => Part::text(text.clone()),
        StoredPart::Image { url, media_type } => Part {
            media_type: media_type.clone(),
            ..Content::Url(url.clone()).into()
        },
    }
}

/// The content of a message as a model reads it. Parts that answer something, and machinery, are left out by the caller.
pub(crate) fn content<'m>(parts: impl Iterator<Item = (usize, &'m Part)>) -> Result<Vec<StoredPart>, Error> {
    parts.map(|(index, part)| stored_part(index, part)).collect()
}

fn stored_part(index: usize, part: &Part) -> Result<StoredPart, Error> {
    let media_type = part.media_type.as_deref().unwrap_or_default();
    let is_image = media_type.starts_with("image/");
    let text = match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(data) => toolgate_a2a::number::repaired(data.clone()).to_string(),
        Content::Url(url) if is_image && url.starts_with("https://") => {
            return Ok(StoredPart::Image {
                url: url.clone(),
                media_type: Some(media_type.to_owned()),
            });
        }
        Content::Url(url) => match &part.filename {
            Some(name) => format!("[file {name}: {url}]"),
            None => format!("[file: {url}]"),
        },
        Content::Raw(bytes) if is_image => {
            return Ok(StoredPart::Image {
                url: format!("data:{media_type};base64,{}", STANDARD.encode(bytes)),
                media_type: Some(media_type.to_owned()),
            });
        }
        Content::Raw(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(unreadable(index, media_type)),
        },
    };
    Ok(StoredPart::Text { text })
}

fn unreadable(index: usize, media_type: &str) -> Error {
    let seen = match media_type {
        "" => "bytes without a media type".to_owned(),
        named => format!("a file of the type {named}"),
    };
    let message = format!(
        "message.parts[{index}] holds {seen}, which the agent cannot read; send text, JSON, an image, or an address"
    );
    Error::new(ErrorKind::ContentTypeNotSupported, message)
}
