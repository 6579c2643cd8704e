//! MCP servers as a tool source, with a server that does what its directory says.

mod asking;
mod calls;
mod catalog;
mod processes;
mod review;
mod world;
