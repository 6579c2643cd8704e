//! The tools that the gateway runs itself. A tool is one file: a type that implements [`ServerTool`], and a line in
//! [`Toolkit::standard`].
//!
//! Start with [`Toolkit`]; then any tool, `goals` for one that keeps something.

mod goals;
pub mod knowledge;
mod memory;
pub mod notify;
mod overflow;
mod shelf;
mod space;
mod toolkit;
mod vfs;

pub use toolkit::{Parts, ServerTool, Toolkit};
