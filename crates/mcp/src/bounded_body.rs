//! Bodies of responses, read with limits: of bytes, after decompression, and of JSON values.

use std::io;
use std::pin::Pin;

use futures_core::Stream;
use futures_util::StreamExt as _;
use reqwest::Response;
use rmcp::model::{JsonRpcError, ServerJsonRpcMessage};
use sse_stream::{Error as SseError, Sse, SseStream};

use crate::bounded_lines::{VALUES_MAX, has_too_many_values};
use crate::process::MESSAGE_BYTES_MAX;

/// Most bytes that are read of a response with an error status.
const ERROR_BYTES_MAX: usize = 16 * 1024;
/// Most bytes that are quoted of a body that is not understood.
const QUOTE_BYTES_MAX: usize = 256;

/// Events of a response.
pub(crate) type Events = Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>;

/// A body that is not used as a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("the MCP server sent a response of more than {0} {1}, which is the limit")]
    TooLarge(usize, &'static str),
    #[error("the MCP server sent a response that is no JSON-RPC message ({error}): {start}")]
    Malformed { error: serde_json::Error, start: String },
}

/// The message that a body is.
pub(crate) async fn read_message(
    mut response: Response,
) -> Result<Result<ServerJsonRpcMessage, Unusable>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > MESSAGE_BYTES_MAX {
            return Ok(Err(Unusable::TooLarge(MESSAGE_BYTES_MAX, "bytes")));
        }
        body.extend_from_slice(&piece);
    }
    if has_too_many_values(&body) {
        return Ok(Err(Unusable::TooLarge(VALUES_MAX, "JSON values")));
    }
    Ok(serde_json::from_slice(&body).map_err(|error| {
        let start = &body[..body.len().min(QUOTE_BYTES_MAX)];
        let start = String::from_utf8_lossy(start).into_owned();
        Unusable::Malformed { error, start }
    }))
}

/// The JSON-RPC error that the body of a response with an error status is, if it is one, and words for such a response.
pub(crate) async fn read_error(mut response: Response) -> (Option<JsonRpcError>, String) {
    let status = response.status();
    let mut body = Vec::new();
    // A body that ends early says less; the status is what counts.
    while let Ok(Some(piece)) = response.chunk().await {
        if body.len() + piece.len() > ERROR_BYTES_MAX {
            let words = format!("HTTP {status}, with a body of more than {ERROR_BYTES_MAX} bytes");
            return (None, words);
        }
        body.extend_from_slice(&piece);
    }
    let error = match serde_json::from_slice(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    (
        error,
        format!("HTTP {status}: {}", String::from_utf8_lossy(&body)),
    )
}

/// The events of a response. One of more bytes than this ends them.
pub(crate) fn events(response: Response, event_bytes_max: usize) -> Events {
    let mut size = EventSize::default();
    let pieces = response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(io::Error::other)?;
        match size.add(&piece) > event_bytes_max {
            true => Err(io::Error::other(format!(
                "the MCP server sent an event of more than {event_bytes_max} bytes, which is the limit"
            ))),
            false => Ok(piece),
        }
    });
    with_few_values(SseStream::from_bytes_stream(pieces))
}

/// Leaves out the data of an event that has too many JSON values: ending the stream would make the transport ask for the
/// same event again.
pub(crate) fn with_few_values(events: impl Stream<Item = Result<Sse, SseError>> + Send + 'static) -> Events {
    Box::pin(events.map(|event| {
        let mut event = event?;
        let data = event.data.as_deref().unwrap_or_default();
        if has_too_many_values(data.as_bytes()) {
            tracing::warn!(
                "an event of an MCP server has more than {VALUES_MAX} JSON values and is left out"
            );
            event.data = None;
        }
        Ok(event)
    }))
}

/// Counts the bytes of the event that a stream is at.
#[derive(Default)]
struct EventSize {
    /// Bytes of its whole lines. Comments are not kept, so they do not count.
    lines: usize,
    /// Bytes of the line that has not ended.
    line: usize,
    is_comment: bool,
    follows_return: bool,
}

impl EventSize {
    /// The size of the largest event that these bytes belong to.
    fn add(&mut self, piece: &[u8]) -> usize {
        let mut largest = 0;
        for byte in piece {
            match byte {
                b'\n' if self.follows_return => {}
                b'\n' | b'\r' => self.end_line(),
                _ => {
                    self.is_comment = if self.line == 0 {
                        *byte == b':'
                    } else {
                        self.is_comment
                    };
                    self.line += 1;
                }
            }
            self.follows_return = *byte == b'\r';
            largest = largest.max(self.lines + self.line);
        }
        largest
    }

    fn end_line(&mut self) {
        self.lines = match (self.line, self.is_comment) {
            // A blank line ends the event.
            (0, _) => 0,
            (_, true) => self.lines,
            (line, false) => self.lines + line + 1,
        };
        self.line = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(pieces: &[&str]) -> Vec<usize> {
        let mut size = EventSize::default();
        pieces.iter().map(|piece| size.add(piece.as_bytes())).collect()
    }

    #[test]
    fn an_event_has_the_bytes_of_its_lines_and_ends_at_a_blank_one() {
        assert_eq!(sizes(&["data: a\n", "data: b", "\n\n", "id: 1"]), [8, 15, 16, 5]);
        assert_eq!(sizes(&["data: a\r\n\r", "\ndata", ": b\r\r", "x"]), [8, 4, 8, 1]);
    }

    #[test]
    fn comments_without_end_count_and_whole_ones_do_not() {
        assert_eq!(sizes(&[": alive\n", ": alive\n", ": alive"]), [7, 7, 7]);
    }
}
