//! The tools that the gateway runs itself. A tool is one file: a type that implements [`ServerTool`], and a line in
//! [`Toolkit::standard`].
//!
//! Start with [`Toolkit`]; then any tool, `goals` for one that keeps something.

mod cron;
mod goals;
mod planner;
mod plans;
mod shelf;
mod signal_parent;
mod toolkit;

pub use planner::Planner;
pub use toolkit::{Parts, ServerTool, Toolkit};
