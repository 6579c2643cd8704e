//! Runs one JavaScript function body in a realm of its own, within limits: the inside of a sandbox worker. It knows
//! no process, no protocol and no gateway; what the code may reach is what the [`Host`] gives it.
//!
//! A [`Realm`] is a fresh QuickJS runtime. It runs one call and is gone: no call sees what another left behind. It can be
//! made ahead of the call, so that nobody waits for it.
//!
//! The limits here are the polite ones: many native functions of QuickJS never look at the clock. Whoever runs code of
//! strangers runs it in a process that can be killed.
//!
//! Start with `realm`; `prelude/names.js` lists what the code finds.

mod failure;
mod host;
mod natives;
mod realm;
mod web;
mod zone;

pub use failure::{Failure, FailureKind};
pub use host::{Host, HostGone, LogLevel, Operation};
pub use realm::{Limits, Realm, Script, Spent};

/// Host calls of one script that may be under way at the same time; further ones wait in the realm.
pub const HOST_CALLS_AT_ONCE: usize = 8;
/// Host calls of one script in all.
pub const HOST_CALLS_MAX: u32 = 256;
/// Bytes that one host call carries at most.
pub const HOST_CALL_BYTES_MAX: usize = 1 << 20;
/// Bytes that all host calls of one script carry together.
pub const HOST_BYTES_MAX: usize = 8 << 20;
/// Bytes of one line of the log.
pub const LOG_LINE_BYTES_MAX: usize = 4 << 10;
/// Bytes of all lines of the log of one script, each counted with [`LOG_LINE_COST`] more.
pub const LOG_BYTES_MAX: usize = 64 << 10;
/// What a line of the log counts besides its text: one costs the operator's log more than its text.
pub const LOG_LINE_COST: usize = 1 << 10;
/// Timers of one script that wait.
pub const TIMERS_MAX: usize = 1_000;
