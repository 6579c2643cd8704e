//! What a worker and the gateway say to each other. A frame of the worker begins with a letter; everything in it is a claim
//! of whoever may have taken the worker over, so nothing but the exact form is accepted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use toolgate_kernel::json::Json;
use toolgate_script::{FailureKind, LogLevel, Operation};

use crate::host::{self, FetchRequest, FetchResponse, StorageOp};

/// Headers of a request, at most.
const HEADERS_MAX: usize = 64;

/// What the gateway wants of a worker.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Run a call.
    #[serde(rename_all = "camelCase")]
    Run {
        code: String,
        args: Box<RawValue>,
        cpu_millis: u64,
        memory_bytes: usize,
        output_bytes: usize,
    },
    /// Say whether this is JavaScript.
    Check(String),
    /// Say what protects the process.
    Protection,
    /// Try something that must fail: for tests.
    Probe(String),
}

/// What a worker says.
#[derive(Debug, PartialEq, Eq)]
pub enum Said<'f> {
    /// It begins a host call.
    Call {
        /// Counts up from 0.
        id: u32,
        /// What it wants, not read yet.
        operation: Operation,
        /// JSON.
        body: &'f str,
    },
    /// It keeps a line of the log.
    Log(host::LogLevel, &'f str),
    /// The call is done; this is its result.
    Done {
        /// No host call is without an answer, so the process may be used again.
        clean: bool,
        /// JSON, not read yet.
        output: &'f str,
    },
    /// The call failed.
    Failed {
        /// As above.
        clean: bool,
        /// Kind of the failure, which the gateway turns into an error code.
        kind: FailureKind,
        /// The failure in words for the author of the code; untrusted.
        message: &'f str,
    },
    /// The answer to anything but a call.
    Told(&'f str),
}

/// A worker said something that no worker says.
#[derive(Debug, PartialEq, Eq)]
pub struct Garbled;

impl<'f> Said<'f> {
    /// Reads a frame.
    pub fn parse(frame: &'f [u8]) -> Result<Self, Garbled> {
        let (letter, rest) = frame.split_first().ok_or(Garbled)?;
        let flag = |byte: &u8| match byte {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Garbled),
        };
        match letter {
            b'C' => {
                let (id, rest) = rest.split_first_chunk().ok_or(Garbled)?;
                let (operation, body) = rest.split_first().ok_or(Garbled)?;
                let operation = match operation {
                    b'f' => Operation::Fetch,
                    b's' => Operation::Storage,
                    _ => return Err(Garbled),
                };
                let (id, body) = (u32::from_be_bytes(*id), text(body)?);
                Ok(Self::Call { id, operation, body })
            }
            b'L' => {
                let (level, line) = rest.split_first().ok_or(Garbled)?;
                let level = match level {
                    b'd' => host::LogLevel::Debug,
                    b'i' => host::LogLevel::Info,
                    b'w' => host::LogLevel::Warn,
                    b'e' => host::LogLevel::Error,
                    _ => return Err(Garbled),
                };
                Ok(Self::Log(level, text(line)?))
            }
            b'D' => {
                let (clean, output) = rest.split_first().ok_or(Garbled)?;
                let (clean, output) = (flag(clean)?, text(output)?);
                Ok(Self::Done { clean, output })
            }
            b'F' => {
                let ([clean, kind], message) = rest.split_first_chunk().ok_or(Garbled)?;
                let kind = match kind {
                    b't' => FailureKind::Threw,
                    b's' => FailureKind::Syntax,
                    b'c' => FailureKind::Timeout,
                    b'm' => FailureKind::Memory,
                    b'o' => FailureKind::OutputTooLarge,
                    _ => return Err(Garbled),
                };
                let (clean, message) = (flag(clean)?, text(message)?);
                Ok(Self::Failed { clean, kind, message })
            }
            b'T' => Ok(Self::Told(text(rest)?)),
            _ => Err(Garbled),
        }
    }

    /// As a frame.
    pub fn write(&self) -> Vec<u8> {
        let (head, text): (&[u8], &str) = match self {
            Self::Call { id, operation, body } => {
                let [a, b, c, d] = id.to_be_bytes();
                let operation = match operation {
                    Operation::Fetch => b'f',
                    Operation::Storage => b's',
                };
                (&[b'C', a, b, c, d, operation], body)
            }
            Self::Log(level, line) => match level {
                host::LogLevel::Debug => (b"Ld", line),
                host::LogLevel::Info => (b"Li", line),
                host::LogLevel::Warn => (b"Lw", line),
                host::LogLevel::Error => (b"Le", line),
            },
            Self::Done { clean, output } => (&[b'D', u8::from(*clean)], output),
            Self::Failed { clean, kind, message } => {
                let kind = match kind {
                    FailureKind::Threw | FailureKind::HostGone => b't',
                    FailureKind::Syntax => b's',
                    FailureKind::Timeout => b'c',
                    FailureKind::Memory => b'm',
                    FailureKind::OutputTooLarge => b'o',
                };
                (&[b'F', u8::from(*clean), kind], message)
            }
            Self::Told(words) => (b"T", words),
        };
        [head, text.as_bytes()].concat()
    }
}

fn text(bytes: &[u8]) -> Result<&str, Garbled> {
    std::str::from_utf8(bytes).map_err(|_| Garbled)
}

/// The level of a line as the realm says it.
pub(crate) fn level(level: LogLevel) -> host::LogLevel {
    match level {
        LogLevel::Debug => host::LogLevel::Debug,
        LogLevel::Info => host::LogLevel::Info,
        LogLevel::Warn => host::LogLevel::Warn,
        LogLevel::Error => host::LogLevel::Error,
    }
}

/// What a host call asks for.
#[derive(Debug, PartialEq)]
pub enum Wish {
    /// An HTTP request.
    Fetch(FetchRequest),
    /// The key-value store.
    Storage(StorageOp),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FetchBody {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    text: Option<String>,
    base64: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StorageBody {
    op: String,
    key: Option<String>,
    /// `null` is a value, and none is none.
    #[serde(default, deserialize_with = "given")]
    value: Option<Json>,
    prefix: Option<String>,
}

fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(value).map(Some)
}

impl StorageBody {
    fn read(self) -> Option<StorageOp> {
        Some(match (self.op.as_str(), self.key, self.value, self.prefix) {
            ("get", Some(key), None, None) => StorageOp::Get { key },
            ("set", Some(key), Some(value), None) => StorageOp::Set { key, value },
            ("delete", Some(key), None, None) => StorageOp::Delete { key },
            ("list", None, None, Some(prefix)) => StorageOp::List { prefix },
            _ => return None,
        })
    }
}

impl Wish {
    /// Reads the body of a host call.
    pub fn parse(operation: Operation, body: &str) -> Result<Self, Garbled> {
        match operation {
            Operation::Storage => {
                let storage: StorageBody = serde_json::from_str(body).map_err(|_| Garbled)?;
                storage.read().map(Self::Storage).ok_or(Garbled)
            }
            Operation::Fetch => {
                let fetch: FetchBody = serde_json::from_str(body).map_err(|_| Garbled)?;
                let body = match (fetch.text, fetch.base64) {
                    (None, None) => None,
                    (Some(text), None) => Some(text.into_bytes()),
                    (None, Some(base64)) => Some(STANDARD.decode(base64).map_err(|_| Garbled)?),
                    (Some(_), Some(_)) => return Err(Garbled),
                };
                if fetch.headers.len() > HEADERS_MAX {
                    return Err(Garbled);
                }
                Ok(Self::Fetch(FetchRequest {
                    method: fetch.method,
                    url: fetch.url,
                    headers: fetch.headers,
                    body,
                }))
            }
        }
    }
}

/// The answer to a host call, for the worker.
pub(crate) fn answer(id: u32, answer: &Result<String, String>) -> Vec<u8> {
    let (flag, text) = match answer {
        Ok(text) => (1, text),
        Err(text) => (0, text),
    };
    [&id.to_be_bytes()[..], &[flag], text.as_bytes()].concat()
}

/// Reads an answer of the gateway, which is trusted.
pub(crate) fn read_answer(frame: &[u8]) -> Option<(u32, Result<String, String>)> {
    let (id, rest) = frame.split_first_chunk()?;
    let (flag, text) = rest.split_first()?;
    let text = String::from_utf8(text.to_vec()).ok()?;
    let answer = if *flag == 1 { Ok(text) } else { Err(text) };
    Some((u32::from_be_bytes(*id), answer))
}

/// A response as the code reads it. Text is sent as it is, unless base64 is shorter.
pub(crate) fn response(response: FetchResponse) -> String {
    let FetchResponse {
        status,
        url,
        headers,
        body,
    } = response;
    let reason = http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    let mut answer = serde_json::json!({
        "status": status, "statusText": reason.unwrap_or_default(), "url": url, "headers": headers,
    });
    let text = String::from_utf8(body);
    let plain = |text: &String| text.bytes().filter(|byte| *byte < 0x20).count() <= text.len() / 16;
    match text {
        Ok(text) if plain(&text) => answer["text"] = text.into(),
        Ok(text) => answer["base64"] = STANDARD.encode(text).into(),
        Err(error) => answer["base64"] = STANDARD.encode(error.as_bytes()).into(),
    }
    answer.to_string()
}
