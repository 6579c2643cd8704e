//! The fixture behind the proxy `/mcp/servers/{name}`: every pair of eras, over HTTP and over pipes.

mod client;
mod connecting;
mod gateway;
mod matrix;
mod raw;
mod rules;
