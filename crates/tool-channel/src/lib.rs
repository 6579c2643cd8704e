//! Messages of the data channel `tools`: what a page and the gateway say to each other about the tools of a space. Pure:
//! no network, no run state. The gateway's door and the Rust SDK share it, and `vectors/messages.json` holds the
//! TypeScript SDK to the same rules.
//!
//! Start with [`ToolMessage`] (a tool event, in either direction) and [`Notice`] (what is said of the channel itself); then
//! [`serialize_message`], [`deserialize_message`] and [`create_tool_message`].

mod notice;
mod payload;
mod read;
mod tool_message;

pub use notice::{Notice, NoticeType};
pub use payload::{NotAnObject, Payload};
pub use read::{ChannelMessage, MessageError, deserialize_message, read_channel_message};
pub use tool_message::{ToolEventType, ToolMessage, create_tool_message, serialize_message};

/// Label of the one data channel that the gateway speaks on. It is reliable and ordered.
pub const CHANNEL_LABEL: &str = "tools";
/// Longest name that a client gives to a message of its own.
pub const ID_CHARS_MAX: usize = 64;
/// Largest whole number that every reader of JSON keeps exactly.
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;
