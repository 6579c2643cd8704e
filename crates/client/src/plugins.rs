//! Included plugins, each behind a Cargo feature of its name.

#[cfg(feature = "fs")]
pub mod fs;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "package")]
pub mod package;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "time")]
pub mod time;
