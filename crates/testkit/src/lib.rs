//! Test fixtures: scripted models, fake tools, fault injection, a held clock, a PostgreSQL server, and the stores' conformance
//! suite.

pub mod broken_bus;
pub mod bus_conformance;
pub mod fake_tools;
pub mod faulty_store;
pub mod held_clock;
pub mod mail_server;
pub mod model_script;
pub mod model_server;
#[cfg(unix)]
pub mod postgres_server;
pub mod project_settings;
pub mod redis_server;
pub mod scripted_model;
pub mod store_conformance;
pub mod task_source;
