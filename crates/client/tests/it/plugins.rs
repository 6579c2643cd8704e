//! The plugins that come with the SDK.

#[cfg(feature = "fs")]
mod fs;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp")]
mod mcp_restart;
#[cfg(feature = "package")]
mod package;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "time")]
mod time;
