//! The installed plugins of a project, through the crate's front door.

mod dependencies;
mod nodes;
mod trust;
mod versions;
mod world;
