//! Server-sent events, as far as MCP uses them: the data of each event is one message.

use super::LinkError;

/// Splits bytes into the data of events.
#[derive(Default)]
pub(super) struct Events {
    buffer: Vec<u8>,
    /// How much of the buffer has no end of an event in it.
    searched: usize,
}

impl Events {
    /// Adds bytes; fails when an event has more than `max` of them.
    pub(super) fn push(&mut self, bytes: &[u8], max: usize) -> Result<(), LinkError> {
        if self.buffer.len() + bytes.len() > max {
            return Err(LinkError::TooLarge(max));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The data of the next whole event that has some.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        while let Some((length, skip)) = self.end() {
            let data = data(&self.buffer[..length]);
            self.buffer.drain(..length + skip);
            self.searched = 0;
            if !data.is_empty() {
                return Some(data);
            }
        }
        None
    }

    /// Where the first event ends, and how long the blank line after it is.
    fn end(&mut self) -> Option<(usize, usize)> {
        let from = self.searched.saturating_sub(3);
        for at in from..self.buffer.len() {
            let rest = &self.buffer[at..];
            for blank in [&b"\r\n\r\n"[..], b"\n\n", b"\r\r"] {
                if rest.starts_with(blank) {
                    return Some((at, blank.len()));
                }
            }
        }
        self.searched = self.buffer.len();
        None
    }
}

fn data(event: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    for line in event.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let Some(value) = line.strip_prefix(b"data:") else {
            continue;
        };
        if !data.is_empty() {
            data.push(b'\n');
        }
        data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&str]) -> Vec<String> {
        let mut events = Events::default();
        let mut read = Vec::new();
        for piece in pieces {
            events.push(piece.as_bytes(), 1_000).unwrap();
            while let Some(data) = events.next() {
                read.push(String::from_utf8(data).unwrap());
            }
        }
        read
    }

    #[test]
    fn events_are_found_however_they_are_cut() {
        assert_eq!(
            read(&["id: 1\ndata: {}\n", "\ndata: a\ndata: b\n\n"]),
            ["{}", "a\nb"]
        );
        assert_eq!(read(&[": alive\n\n", "retry: 5\r\ndata:x\r\n\r", "\n"]), ["x"]);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        assert!(events.push(&[b'a'; 20], 10).is_err());
    }
}
