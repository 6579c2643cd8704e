//! The chat door, from outside.

mod chat;
mod questions;
mod talk;
mod world;
