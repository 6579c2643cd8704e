//! The tool sources that come with the gateway: its own tools, `request` and `image-generator`. A tool of its own is one
//! file: a type that implements [`ServerTool`], and a line in [`Toolkit::standard`].
//!
//! Start with [`Toolkit`]; then any tool, `goals` for one that keeps something.

mod cron;
mod due;
mod goals;
mod image;
pub mod knowledge;
mod memory;
pub mod notify;
mod outbound;
mod planner;
mod plans;
pub mod readable;
mod records;
mod request;
mod search;
mod signal_parent;
mod space;
mod state_editor;
mod toolkit;
mod vfs;
mod web;

pub use image::Images;
pub use outbound::{OutboundResolver, OutboundSettings};
pub use planner::Planner;
pub use plans::PlanLimits;
pub use search::Search;
pub use state_editor::Editor;
pub use toolkit::{Parts, ServerTool, Toolkit};
pub use web::Manners;
