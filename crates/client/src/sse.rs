//! Incremental decoder of server-sent events (SSE).

use memchr::memchr;

/// Most bytes of one event: more than the gateway allows.
pub(crate) const EVENT_BYTES_MAX: usize = 16 << 20;

/// An event is longer than [`EVENT_BYTES_MAX`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Accepts bytes in any split and returns the data of each event. The event's name and id are in the data as
/// well.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: Vec<u8>,
    /// Everything before this offset is read.
    read: usize,
    data: String,
}

impl Decoder {
    /// Appends bytes from the network.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.buffer.drain(..self.read);
        self.read = 0;
        self.buffer.extend_from_slice(bytes);
        match self.buffer.len() + self.data.len() > EVENT_BYTES_MAX {
            true => Err(TooLong),
            false => Ok(()),
        }
    }

    /// The data of the next event, or `None` until more bytes are pushed.
    pub fn next_event(&mut self) -> Option<String> {
        while let Some(length) = memchr(b'\n', &self.buffer[self.read..]) {
            let line = &self.buffer[self.read..self.read + length];
            self.read += length + 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() && !self.data.is_empty() {
                return Some(std::mem::take(&mut self.data));
            }
            if let Some(value) = line.strip_prefix(b"data:") {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                let value = value.strip_prefix(b" ").unwrap_or(value);
                self.data.push_str(&String::from_utf8_lossy(value));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str =
        "retry: 5\n: beat\n\nid: 1\nevent: a\ndata: {\"x\":\ndata: 1}\n\nid: 2\r\ndata:two\r\n\r\ndata: cut";

    #[test]
    fn events_are_the_same_however_the_bytes_are_split() {
        for size in 1..STREAM.len() {
            let mut decoder = Decoder::default();
            let mut events = Vec::new();
            for piece in STREAM.as_bytes().chunks(size) {
                decoder.push(piece).unwrap();
                events.extend(std::iter::from_fn(|| decoder.next_event()));
            }
            assert_eq!(events, ["{\"x\":\n1}", "two"], "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut decoder = Decoder::default();
        let piece = vec![b'x'; EVENT_BYTES_MAX / 2];
        assert_eq!(decoder.push(&piece), Ok(()));
        assert_eq!(decoder.push(&piece), Ok(()));
        assert_eq!(decoder.push(&piece), Err(TooLong));
    }
}
