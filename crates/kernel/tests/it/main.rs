//! What the kernel promises, checked through its front door.

mod agent;
mod agent_tools;
mod client_tools;
mod events;
mod history;
mod json;
mod odd;
mod profile;
mod run;
mod schema;
mod view;
