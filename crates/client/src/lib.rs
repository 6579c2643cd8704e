//! The Rust SDK of Toolgate: talks to a gateway, and executes client tools in the calling program.
//!
//! Start with [`Client`]: it holds plugins ([`Plugin`], [`Tool`]), chats ([`Client::chat_stream`]) and serves
//! tools for a space ([`Client::serve`]). Everything a run does arrives as [`Event`]s; streams reconnect
//! after a disconnect and resume from their cursor.
//!
//! It keeps no run state: the outcome of a call is in the gateway's log, and a result whose receipt was lost
//! is sent again.

mod call_executor;
mod chat;
mod client;
mod definition_rules;
mod error;
mod event;
mod http;
mod lease;
mod plugin;
pub mod plugins;
mod registry;
mod resources;
mod schema;
#[cfg(test)]
mod scripted;
mod serve;
mod sse;
mod stream;
mod streamed_text;
mod tool;
mod transport;
mod vocabulary;
mod work;

pub use chat::{ChatRequest, ChatStream, Chunk, Pause, Reply};
pub use client::{Client, ClientBuilder};
pub use error::{Error, Fault, PluginError, Problem};
pub use event::Event;
pub use plugin::{BoxError, Hooks, Plugin};
pub use resources::{
    Agents, AnsweredQuestion, Approvals, Asked, Calls, Claimed, Consent, Consents, Decided, Decision,
    Document, DocumentPage, EventPage, File, FileContent, FilePage, Files, Knowledge, LatencyMs, MatchedWord,
    NewDocument, NewSpace, Only, OpenCall, OpenQuestion, Pending, Posted, QuestionAnswer, QuestionPage,
    Questions, Receipt, Run, RunFilter, RunPage, RunRequest, RunSummary, Runs, Said, SharedTool, Space,
    Spaces, ToolMatch, ToolOwner, ToolRegistry, ToolUsage, Tools, Usage, Utterance, VoiceKind,
};
pub use serve::{Serve, ToolServer};
pub use stream::{Connection, EventStream};
pub use tool::{Definition, Deprecated, Tool, ToolCall, ToolError, ToolResult};
pub use vocabulary::{category, permission};

pub use async_trait::async_trait;
pub use schemars;
// The trait alone: an import by name would bring the derive of `schemars` too, and a glob yields to the one below.
mod json_schema {
    pub use schemars::JsonSchema;
}
pub use json_schema::*;
/// Derives the schema of a tool's arguments, by the rules and attributes of `schemars`; see [`Tool::typed`]. The
/// program needs no dependency on `schemars`.
pub use toolgate_client_macros::JsonSchema;

// The derive names this crate as its users do.
extern crate self as toolgate_client;
/// The event types, one per kind of event, the ids, times, and a client as the executor of calls.
pub use toolgate_protocol::{
    event as events,
    id::{ApprovalId, CallId, MessageId, QuestionId, RunId, SpaceId},
    message::Executor,
    time::Time,
};

/// Messages of the data channel `tools`: for programs that speak it themselves.
pub use toolgate_tool_channel as tool_channel;

/// Compiles the README's examples as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
