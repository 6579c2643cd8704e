//! MCP servers as a tool source, with a server that does what its directory says.

mod asking;
mod calls;
mod catalog;
mod dying;
mod hiding;
mod logs;
mod origin;
mod processes;
mod restarts;
mod review;
mod world;
