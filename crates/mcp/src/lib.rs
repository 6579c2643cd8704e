//! Connections to MCP servers, for whoever brings their tools to a model: the Rust SDK on a client's machine, and the
//! gateway.
//!
//! [`Server`] says how to reach one, [`Server::connect`] gives a [`Connection`]. What it lists becomes a [`Catalog`]:
//! tools with names and schemas that fit. A [`Caller`] calls them. A server that dies gives errors; nothing here
//! reconnects, or knows what a run is.

mod catalog;
mod connection;
mod fit;
mod name;
mod result;
mod server;

pub use catalog::{Catalog, CatalogTool};
pub use connection::{CallError, Caller, Connection, Listed};
pub use fit::Profile;
pub use name::tool_name;
pub use server::{McpError, Server};
