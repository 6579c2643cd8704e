//! Lines of a child, each with a limited number of JSON values. What is two bytes on the wire (`0,`) may be a hundred in
//! memory once it is taken apart, so bytes alone do not bound what a line costs: an image is large and is one value, a list
//! of tools that takes gigabytes is small and is millions.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Most values of one line. A page of 500 tools with a hundred members each has a fifth of it.
pub(crate) const VALUES_MAX: usize = 250_000;

/// Whether a message that is read whole has more than [`VALUES_MAX`] values.
pub(crate) fn has_too_many_values(message: &[u8]) -> bool {
    let mut line = Line::default();
    message.iter().any(|byte| {
        line.see(*byte);
        line.values > VALUES_MAX
    })
}

/// Cuts lines that hold too many values. What is left of such a line is no JSON, which the transport leaves out; the request
/// that it answers gets no response.
pub(crate) struct BoundedLines<R> {
    inner: R,
    line: Line,
}

impl<R> BoundedLines<R> {
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            line: Line::default(),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let start = into.filled().len();
            ready!(Pin::new(&mut this.inner).poll_read(context, into))?;
            let read = into.filled().len() - start;
            if read == 0 {
                return Poll::Ready(Ok(()));
            }
            let kept = this.line.keep(&mut into.filled_mut()[start..]);
            into.set_filled(start + kept);
            // Nothing is the end of the stream: what was cut must not look like it.
            if kept > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// Where a line stands.
#[derive(Default)]
struct Line {
    values: usize,
    in_text: bool,
    is_escaped: bool,
}

impl Line {
    /// Moves what is kept of these bytes to their front, and says how many that are.
    fn keep(&mut self, bytes: &mut [u8]) -> usize {
        let mut kept = 0;
        for at in 0..bytes.len() {
            let byte = bytes[at];
            match byte {
                // A text has no line break in JSON: the next line begins anew, whatever this one was.
                b'\n' => *self = Self::default(),
                _ => self.see(byte),
            }
            if self.values <= VALUES_MAX {
                bytes[kept] = byte;
                kept += 1;
            }
        }
        kept
    }

    fn see(&mut self, byte: u8) {
        match (byte, self.in_text) {
            (_, true) if self.is_escaped => self.is_escaped = false,
            (b'\\', true) => self.is_escaped = true,
            (b'"', _) => self.in_text = !self.in_text,
            (b',' | b'[' | b'{', false) => self.values += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    async fn check(given: &str, expected: &str) {
        let mut read = String::new();
        let mut lines = BoundedLines::new(given.as_bytes());
        lines.read_to_string(&mut read).await.unwrap();
        assert!(
            read == expected,
            "{} bytes, expected {}",
            read.len(),
            expected.len()
        );
    }

    #[tokio::test]
    async fn lines_of_few_values_pass_as_they_are() {
        let image = format!("{{\"data\":\"{}\"}}\n", "A,[{".repeat(1 << 20));
        let quoted = format!("[\"{}\"]\n", "\\\",".repeat(VALUES_MAX));
        let lines = format!("{{\"a\":[1,2]}}\n{image}{quoted}{{}}\n");
        check(&lines, &lines).await;
    }

    #[tokio::test]
    async fn a_line_of_too_many_values_is_cut_and_the_next_is_whole() {
        let zeros = "0,".repeat(VALUES_MAX);
        let cut = format!("[{}0\n", "0,".repeat(VALUES_MAX - 1));
        let next = "{\"id\":1}\n";
        check(&format!("[{zeros}{zeros}0]\n{next}"), &format!("{cut}{next}")).await;
    }

    #[test]
    fn values_of_a_message_on_many_lines_are_counted_together() {
        let half = "0,\n".repeat(VALUES_MAX / 2);
        assert!(!has_too_many_values(format!("[\n{half}0]").as_bytes()));
        assert!(has_too_many_values(format!("[\n{half}{half}0]").as_bytes()));
    }
}
