//! What the kernel promises, checked through its front door.

mod agent;
mod agent_tools;
mod client_tools;
mod json;
mod odd;
mod profile;
mod schema;
