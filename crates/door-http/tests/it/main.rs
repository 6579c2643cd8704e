//! The door, from outside.

mod agents;
mod approvals;
mod auth;
mod bodies;
mod deliveries;
mod ending;
mod file_links;
mod files;
mod grants;
mod jwks;
mod knowledge;
mod limits;
mod mcp_servers;
mod messages;
mod plans;
mod questions;
mod results;
mod shared_tools;
mod spaces;
mod streams;
mod tool_calls;
mod tools;
mod views;
mod waiting;
mod world;
