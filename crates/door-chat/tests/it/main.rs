//! The chat door, from outside.

mod chat;
mod world;
