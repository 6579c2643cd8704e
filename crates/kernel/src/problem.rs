//! What is wrong with something a person wrote, said so that they can act on it.

use std::borrow::Cow;
use std::cell::RefCell;

use serde::Serialize;
use serde_json::Value;

/// Longest pointer that is told whole.
const POINTER_BYTES_MAX: usize = 1_024;

/// One thing wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// JSON pointer (RFC 6901) to the value at fault; empty for the whole document.
    pub pointer: String,
    /// A sentence: what was seen and what would have been right.
    pub message: String,
}

impl Problem {
    /// A problem at `pointer`, which is cut when somebody's names make it too long to repeat.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let mut pointer = pointer.into();
        if pointer.len() > POINTER_BYTES_MAX {
            pointer.truncate(pointer.floor_char_boundary(POINTER_BYTES_MAX));
            pointer.push('…');
        }
        Self {
            pointer,
            message: message.into(),
        }
    }
}

/// Most problems that one answer lists.
pub const PROBLEMS_MAX: usize = 100;

/// Problems as they are found, so that a person learns of all of them at once.
#[derive(Debug, Default)]
pub struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    /// Notes one; beyond [`PROBLEMS_MAX`] it only notes that there are more.
    pub fn add(&self, pointer: impl Into<String>, message: impl Into<String>) {
        let mut list = self.0.borrow_mut();
        match list.len() {
            0..PROBLEMS_MAX => list.push(Problem::new(pointer, message)),
            PROBLEMS_MAX => list.push(Problem::new("", "there are more problems than are listed here")),
            _ => {}
        }
    }
    /// Notes several.
    pub fn extend(&self, problems: Vec<Problem>) {
        for problem in problems {
            self.add(problem.pointer, problem.message);
        }
    }
    /// The value, or else its problems are noted.
    pub fn take<T>(&self, result: Result<T, Vec<Problem>>) -> Option<T> {
        result.map_err(|problems| self.extend(problems)).ok()
    }
    /// Whether something was found at exactly this place.
    pub fn has(&self, pointer: &str) -> bool {
        self.0.borrow().iter().any(|problem| problem.pointer == pointer)
    }
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
    /// `value` when nothing was found. What has no value must have been noted.
    pub fn or<T>(self, value: Option<T>) -> Result<T, Vec<Problem>> {
        match (value, self.0.into_inner()) {
            (Some(value), problems) if problems.is_empty() => Ok(value),
            (_, problems) => {
                debug_assert!(!problems.is_empty(), "refused without a reason");
                Err(problems)
            }
        }
    }
}

/// `pointer` extended by one member, escaped as RFC 6901 says.
pub fn member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Longest piece of somebody's text that a message repeats.
const PREVIEW_CHARS_MAX: usize = 64;

/// `text`, cut when it is long.
pub(crate) fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(PREVIEW_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// `text` in quotes, cut when it is long: what a message shows of what was seen.
pub fn preview(text: &str) -> String {
    format!("{:?}", cut(text))
}

/// What kind of value it is, with its article.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A value as a message shows it.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => preview(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
    }
}
