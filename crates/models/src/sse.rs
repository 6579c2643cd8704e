//! Incremental decoder of server-sent events (SSE).

use std::ops::Range;

use memchr::memchr2;

/// Most bytes of one event.
pub const EVENT_BYTES_MAX: usize = 4 << 20;

/// An event is longer than [`EVENT_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Accepts bytes in any split and returns the data of each event. Event names, ids and comments are skipped:
/// every vendor repeats them in the data.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Start of the first unread line.
    line: usize,
    /// There is no line ending between `line` and here.
    scanned: usize,
    /// Data of the event that is being read; the bytes after it, up to `line`, are no longer needed.
    data: Option<Range<usize>>,
    /// The last line ended in CR: an LF that follows belongs to that line ending.
    after_cr: bool,
    /// Whether the first line was read: a byte order mark is only skipped before it.
    begun: bool,
}

impl Decoder {
    /// Appends bytes from the network.
    pub fn push(&mut self, bytes: &[u8]) {
        let spent = self.data.as_ref().map_or(self.line, |data| data.start);
        self.buffer.drain(..spent);
        self.line -= spent;
        self.scanned -= spent;
        if let Some(data) = &mut self.data {
            *data = data.start - spent..data.end - spent;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The data of the next event, or `None` until more bytes are pushed. An event without its final blank
    /// line is never returned, as the standard requires.
    pub fn next_event(&mut self) -> Result<Option<&[u8]>, TooLong> {
        while let Some(line) = self.next_line() {
            let Some(value) = self.data_of(line.clone()) else {
                if line.is_empty()
                    && let Some(data) = self.data.take()
                    && !data.is_empty()
                {
                    return if data.len() > EVENT_BYTES_MAX {
                        Err(TooLong)
                    } else {
                        Ok(Some(&self.buffer[data]))
                    };
                }
                continue;
            };
            self.data = Some(match self.data.take() {
                None => value,
                // Joined in place: the field name of the next line leaves more room than the LF needs.
                Some(data) => {
                    self.buffer[data.end] = b'\n';
                    let end = data.end + 1 + value.len();
                    self.buffer.copy_within(value, data.end + 1);
                    data.start..end
                }
            });
        }
        let begun = self.data.as_ref().map_or(self.line, |data| data.start);
        if self.buffer.len() - begun > EVENT_BYTES_MAX {
            Err(TooLong)
        } else {
            Ok(None)
        }
    }

    fn next_line(&mut self) -> Option<Range<usize>> {
        if self.after_cr && self.line < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.line] == b'\n' {
                self.line += 1;
                self.scanned = self.line;
            }
        }
        let Some(length) = memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let end = self.scanned + length;
        let mut line = self.line..end;
        self.after_cr = self.buffer[end] == b'\r';
        self.line = end + 1;
        self.scanned = self.line;
        if !self.begun {
            self.begun = true;
            if self.buffer[line.clone()].starts_with(b"\xef\xbb\xbf") {
                line.start += 3;
            }
        }
        Some(line)
    }

    /// The range of a `data` line's value.
    fn data_of(&self, line: Range<usize>) -> Option<Range<usize>> {
        let rest = self.buffer[line.clone()].strip_prefix(b"data")?;
        match rest {
            [] => Some(line.end..line.end),
            [b':', b' ', ..] => Some(line.start + 6..line.end),
            [b':', ..] => Some(line.start + 5..line.end),
            _ => None,
        }
    }
}
