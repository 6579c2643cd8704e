//! What is printed on standard output for somebody, or something, that reads it.

use std::io::{ErrorKind, Write as _};

/// Whether anybody still reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    There,
    /// It has read enough, as `head` does. That is no error.
    Gone,
}

/// Prints all of it at once.
pub fn print(text: &str) -> std::io::Result<Reader> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error),
    }
}
