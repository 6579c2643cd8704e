//! The kernel through its front door.

mod events;
mod run;
mod view;
