//! The gateway's own tools: those that keep something through a real run of an agent whose model follows a script, those
//! that reach outside against real servers on loopback.

mod again;
mod apart;
mod countdown;
mod goals;
mod image;
mod knowledge;
mod knowledge_upkeep;
mod mail;
mod meaning;
mod memory;
mod memory_scopes;
mod model_habits;
mod notify;
mod one_file;
mod redirects;
mod request;
mod sandbox;
mod search_languages;
mod secrets;
mod server;
mod space;
mod vfs;
mod web_fetch;
mod web_search;
mod wire;
mod world;
