//! The MCP door, from outside.

mod approvals;
mod calls;
mod content;
mod entry;
mod listing;
mod resources;
mod sessions;
mod talk;
mod tasks;
