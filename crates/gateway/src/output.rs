//! Prints to standard output, which another program may read.

use std::io::{ErrorKind, Write as _};

/// Whether standard output is still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    There,
    /// The reader has closed the pipe, as `head` does. That is not an error.
    Gone,
}

/// Prints the whole text at once.
pub fn print(text: &str) -> std::io::Result<Reader> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error),
    }
}
