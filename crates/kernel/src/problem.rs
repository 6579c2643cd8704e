//! What is wrong with something a person wrote, said so that they can act on it.

use serde::Serialize;

/// One thing wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// JSON pointer (RFC 6901) to the value at fault; empty for the whole document.
    pub pointer: String,
    /// A sentence: what was seen and what would have been right.
    pub message: String,
}

impl Problem {
    /// A problem at `pointer`.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
        }
    }
}

/// `pointer` extended by one member, escaped as RFC 6901 says.
pub fn member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
