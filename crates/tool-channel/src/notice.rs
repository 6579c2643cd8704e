//! What the gateway says of the channel itself, beside tool events.

use serde::Serialize;

use crate::Payload;

/// What is said of the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NoticeType {
    /// The channel is open, and events after `seq` follow.
    ChannelReady,
    /// A message of the client is stored.
    ChannelReceipt,
    /// A message of the client changed nothing: the payload says why.
    ChannelProblem,
    /// Everything up to `seq` was told, though none of it was a tool event.
    ChannelCursor,
    /// The gateway closes the channel: the payload says why.
    ChannelClosing,
}

impl NoticeType {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::ChannelReady,
        Self::ChannelReceipt,
        Self::ChannelProblem,
        Self::ChannelCursor,
        Self::ChannelClosing,
    ];

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ChannelReady => "CHANNEL_READY",
            Self::ChannelReceipt => "CHANNEL_RECEIPT",
            Self::ChannelProblem => "CHANNEL_PROBLEM",
            Self::ChannelCursor => "CHANNEL_CURSOR",
            Self::ChannelClosing => "CHANNEL_CLOSING",
        }
    }
    /// The type of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// What the gateway says of the channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// What it says.
    #[serde(rename = "type")]
    pub kind: NoticeType,
    /// What there is to know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// When, in milliseconds since 1970.
    pub timestamp: u64,
    /// In an answer: the client's name for the message that is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A place in the space to come back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

impl Notice {
    /// The notice as JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a notice has text keys")
    }
}
