//! What the gateway and its SDKs say to each other: ids, names, times, JSON, messages, tool definitions, events and
//! problems. Pure, and light to build, because every program with the Rust SDK compiles it: JSON Schema and whatever
//! decides about runs is in the kernel, which has these modules under the same names.
//!
//! Start with [`event::Event`] (what is stored, streamed and listed), then [`view`] (who may see what of it).

pub mod call;
pub mod definition;
pub mod event;
pub mod guess;
pub mod history;
pub mod id;
pub mod json;
pub mod members;
pub mod message;
pub mod model;
pub mod name;
pub mod problem;
pub mod question;
pub mod schema_limits;
pub mod tidy;
pub mod time;
pub mod tool;
pub mod view;
