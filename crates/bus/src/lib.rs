//! Carries live events and wake-ups between nodes: by direct calls in one process, over a Redis stream, or by
//! notifications of PostgreSQL. Every bus passes the same conformance suite (`toolgate_testkit::bus_conformance`).
//!
//! Start with [`InProcessBus`]; then `link` (what the buses over a network share), `redis` and `postgres`.

mod backoff;
mod in_process;
mod link;
mod peers;
mod postgres;
mod redis;
mod send_queue;
mod wire;

pub use in_process::InProcessBus;
pub use postgres::{Dial, Dialed, PostgresBus};
pub use redis::{BadRedisAddress, RedisBus};
