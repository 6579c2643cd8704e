//! The fixture behind the proxy `/mcp/servers/{name}`: every pair of eras, over HTTP and over pipes.

mod between_users;
mod caller;
mod client;
mod connecting;
mod floods;
mod gateway;
mod hiding;
mod limits;
mod listing;
mod matrix;
mod raw;
mod rules;
