//! What the code in a realm may ask of whoever runs it.

use std::time::Duration;

/// What carries host calls out of the realm and their answers back. Every method fails only when whoever runs the realm
/// is gone, which ends the script.
pub trait Host {
    /// Begins a host call. Ids count up from 0; `body` is JSON.
    fn begin(&mut self, id: u32, operation: Operation, body: &str) -> Result<(), HostGone>;
    /// Keeps a line of the log.
    fn log(&mut self, level: LogLevel, text: &str) -> Result<(), HostGone>;
    /// Waits for the answer to any call that was begun, at most so long: its id and a text, or why there is none.
    fn answer(&mut self, wait: Option<Duration>) -> Result<Option<Answer>, HostGone>;
}

/// The answer to a host call.
pub type Answer = (u32, Result<String, String>);

/// Whoever runs the realm is gone.
#[derive(Debug)]
pub struct HostGone;

/// What is asked of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// An HTTP request: `{"method", "url", "headers": [[name, value]], "text"? or "base64"?}`.
    Fetch,
    /// The key-value store: `{"op": "get" | "set" | "delete" | "list", …}`.
    Storage,
}

/// How a line of the log was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// `console.debug` and `console.trace`.
    Debug,
    /// `console.log` and `console.info`.
    Info,
    /// `console.warn`.
    Warn,
    /// `console.error`.
    Error,
}
