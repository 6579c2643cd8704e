//! Messages between users and agents.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::id::{EntityId, MessageId};
use crate::json::Json;

/// Most parts in one message.
pub const PARTS_MAX: usize = 64;

/// A message that a user or a backend posted into a space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Id; a repeated post of the message has the same one.
    pub message_id: MessageId,
    /// Sender; absent if a backend posts without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<EntityId>,
    /// Content, never empty.
    pub parts: Vec<Part>,
    /// Metadata of the sender; never sent to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl Message {
    /// SHA-256 of the message, its sender included: tells a repeated post from another message under the same id.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(serde_json::to_vec(self).expect("a message has text keys")).into()
    }
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image, by `https:` address or as a `data:` URL.
    Image {
        /// The `https:` address or `data:` URL.
        url: String,
        /// Media type, such as `image/png`; vendors need it if the URL does not imply it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
}

impl Part {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::Image { url, media_type } => url.len() + media_type.as_ref().map_or(0, String::len),
        }
    }
}
