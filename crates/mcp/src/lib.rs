//! Connections to MCP servers, for whoever brings their tools to a model: the Rust SDK on a client's machine, and the
//! gateway.
//!
//! [`Server`] says how to reach one, [`Server::connect`] gives a [`Connection`]. What it lists becomes a [`Catalog`]:
//! tools with names and schemas that fit. A [`Caller`] calls them. A server that dies gives errors; nothing here
//! reconnects, or knows what a run is. [`link`] is for whoever passes messages on as they are.

mod bounded_body;
mod bounded_lines;
mod bounded_requests;
mod call;
mod catalog;
mod client;
mod connection;
mod converse;
mod elicitation;
mod fit;
mod http_client;
pub mod link;
mod name;
pub mod oauth;
mod process;
mod result;
mod server;

pub use call::{
    Answer, CallError, CallRequest, Caller, InputRequired, OpenCall, Step, TaskHandle, TaskState,
};
pub use catalog::{Catalog, CatalogTool, as_listed};
pub use client::{Abilities, Asked, Progress};
pub use connection::{About, Connection, ListError, Listed};
pub use elicitation::{Elicit, Elicitation, ElicitationAnswer};
pub use fit::Profile;
pub use name::{TOOL_NAME_PREFIX, distinct_tool_name, tool_name};
pub use process::{Hide, Keeper, Log};
pub use result::ToolResult;
pub use server::{McpError, Server};
