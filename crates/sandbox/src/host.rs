//! What the code in a sandbox can reach: what its [`Host`] gives it, and nothing else.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use toolgate_kernel::json::Json;

/// What the code in a sandbox can reach. Every method decides for itself whether the code may; an error is thrown in the
/// code, with its words, so it holds nothing that the author of the code must not know. Futures are dropped when the call
/// ends.
#[async_trait]
pub trait Host: Send + Sync {
    /// Sends an HTTP request.
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, String>;
    /// Reads or changes the key-value store. `Get` gives the value if there is one, `List` an array of keys, the others
    /// nothing.
    async fn storage(&self, operation: StorageOp) -> Result<Option<Json>, String>;
    /// Keeps a line of the log. At most 64 KiB in one call.
    fn log(&self, level: LogLevel, text: &str);
}

/// A host that gives nothing: for code without permissions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

#[async_trait]
impl Host for NoHost {
    async fn fetch(&self, _: FetchRequest) -> Result<FetchResponse, String> {
        Err("fetch is not permitted here; a plugin asks for it by the permission \"fetch:HOST\"".into())
    }
    async fn storage(&self, _: StorageOp) -> Result<Option<Json>, String> {
        Err("storage is not permitted here; a plugin asks for it by the permission \"storage\"".into())
    }
    fn log(&self, _: LogLevel, _: &str) {}
}

/// An HTTP request that the code asks for. Nothing of it is checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// Method, in capitals.
    pub method: String,
    /// Address.
    pub url: String,
    /// Headers, with names in small letters.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Option<Vec<u8>>,
}

/// The response to a request of the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchResponse {
    /// Status.
    pub status: u16,
    /// Address that responded.
    pub url: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// An operation on the key-value store.
#[derive(Debug, Clone, PartialEq)]
pub enum StorageOp {
    /// Reads a value.
    Get {
        /// Its key.
        key: String,
    },
    /// Keeps a value.
    Set {
        /// Its key.
        key: String,
        /// The value.
        value: Json,
    },
    /// Removes a value.
    Delete {
        /// Its key.
        key: String,
    },
    /// Lists keys.
    List {
        /// What they begin with.
        prefix: String,
    },
}

/// How a line of the log was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

impl LogLevel {
    /// As it is written in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// The text with its control characters and line separators escaped: code cannot write lines of its own into a log.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            true => line.extend(c.escape_default()),
            false => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn what_code_logs_stays_one_line_without_control_characters() {
        assert_eq!(one_line("grüße, \"you\""), "grüße, \"you\"");
        let forged = "done\r\n2026-01-01 ERROR forged \u{1b}[31m\u{9b}\u{2028}";
        let written = "done\\r\\n2026-01-01 ERROR forged \\u{1b}[31m\\u{9b}\\u{2028}";
        assert_eq!(one_line(forged), written);
    }
}
