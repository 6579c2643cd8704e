//! What the kernel promises, checked through its front door.

mod agent;
mod agent_tools;
mod by_name;
mod check;
mod client_tools;
mod consent;
mod definitions;
mod events;
mod history;
mod hostile;
mod json;
mod model_habits;
mod odd;
mod official_suite;
mod profile;
mod query;
mod questions;
mod random_runs;
mod requested_call;
mod run;
mod run_state;
mod schema;
mod servers;
mod story;
mod view;
mod work;
