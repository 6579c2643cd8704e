//! The messages of an answer, whichever form it has: one as JSON, or several as an event stream.

use reqwest::Response;
use serde_json::Value;

/// Most bytes of one message.
const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// An answer that is read as it comes.
pub struct Messages {
    response: Response,
    is_stream: bool,
    buffer: Vec<u8>,
    is_over: bool,
    /// Why there is no message: the problem that the gateway told.
    words: Option<String>,
}

impl Messages {
    /// The messages of this answer.
    pub fn of(response: Response) -> Self {
        let kind = response.headers().get("content-type");
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        Self {
            response,
            is_stream,
            buffer: Vec::new(),
            is_over: false,
            words: None,
        }
    }

    /// The next message; none at the end. An error says why it cannot be read.
    pub async fn next(&mut self) -> Result<Option<Value>, String> {
        loop {
            if self.is_stream
                && let Some(event) = self.take_event()
            {
                match message(&event) {
                    Some(message) => return Ok(Some(message)),
                    None => continue,
                }
            }
            if self.is_over {
                return Ok(None);
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.buffer.extend_from_slice(&bytes),
                Ok(None) => self.is_over = true,
                Err(_) => return Err("the gateway closed the connection in the middle of an answer".into()),
            }
            if self.buffer.len() > MESSAGE_BYTES_MAX {
                return Err(format!("a message has more than {MESSAGE_BYTES_MAX} bytes"));
            }
            if self.is_over && !self.is_stream {
                return Ok(self.whole());
            }
        }
    }

    /// What the gateway said instead of a message.
    pub fn words(&self) -> Option<String> {
        self.words.clone()
    }

    /// The whole body as one message; a problem is none.
    fn whole(&mut self) -> Option<Value> {
        let body = std::mem::take(&mut self.buffer);
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        if value.get("jsonrpc").is_some() {
            return Some(value);
        }
        self.words = value["detail"].as_str().map(str::to_owned);
        None
    }

    /// The next whole event of the stream.
    fn take_event(&mut self) -> Option<Vec<u8>> {
        let end = self.buffer.windows(2).position(|two| two == b"\n\n")?;
        let rest = self.buffer.split_off(end + 2);
        Some(std::mem::replace(&mut self.buffer, rest))
    }
}

/// The message of an event; none of a comment, and of one that only says how to come back.
fn message(event: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(event).ok()?;
    let data: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .collect();
    serde_json::from_str(data.join("\n").trim()).ok()
}
