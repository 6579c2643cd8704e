//! The A2A door, from outside.

mod bindings;
mod card;
mod client_tools;
mod forms;
mod list;
mod push;
mod questions;
mod streams;
mod talk;
mod tasks;
