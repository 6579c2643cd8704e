//! What a tool, a message, an event and a run are. Pure: no IO, no clock, no randomness, no `async`;
//! time and fresh ids arrive from outside.
//!
//! Start with [`event::Event`] (the story every door tells), then [`run::RunState`] (what a run's events say of it),
//! then [`run::Run`] (how a run takes an arrival and what is due next), then [`view`] (who may see what).

pub mod agent;
pub mod call;
pub mod context;
pub mod history;
pub mod prompt;
pub mod question;
pub mod run;
pub mod schema;
pub mod template;
pub mod tool;
pub mod words;

pub use toolgate_protocol::{event, guess, id, json, members, message, name, problem, time, view};
