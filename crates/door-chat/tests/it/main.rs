//! The chat door, from outside.

mod chat;
mod questions;
mod talk;
mod tool_questions;
mod world;
