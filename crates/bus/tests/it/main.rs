//! The promises of a bus.

mod in_process;
mod postgres;
mod redis;
