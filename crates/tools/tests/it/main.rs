//! The tools that reach outside, asked through the toolkit, against real servers on loopback.

mod redirects;
mod request;
mod secrets;
mod server;
