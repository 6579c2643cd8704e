//! What people and agents say to each other.

use serde::{Deserialize, Serialize};

use crate::id::{EntityId, MessageId};
use crate::json::Json;

/// Most parts in one message.
pub const PARTS_MAX: usize = 64;

/// A message that a person or a backend wrote into a space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id; the same message posted again has the same one.
    pub message_id: MessageId,
    /// Who wrote it; absent for a backend that speaks for nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<EntityId>,
    /// What it holds, never empty.
    pub parts: Vec<Part>,
    /// Whatever the sender attached; never given to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Part {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// An image, by `https:` address or as a `data:` URL.
    Image {
        /// Where it is, or what it is.
        url: String,
        /// Its media type, such as `image/png`; needed by vendors when the URL does not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
}
