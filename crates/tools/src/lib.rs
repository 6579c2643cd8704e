//! The tools that the gateway runs itself. A tool is one file: a type that implements [`ServerTool`], and a line in
//! [`Toolkit::standard`].
//!
//! Start with [`Toolkit`]; then any tool, `goals` for one that keeps something.

mod goals;
mod guard;
mod outside;
mod request;
mod secrets;
mod shelf;
mod toolkit;
mod web;

pub use guard::{AllowList, BadHost};
pub use secrets::{BadSecret, Secrets};
pub use toolkit::{Parts, ServerTool, Toolkit, World};
pub use web::Manners;
