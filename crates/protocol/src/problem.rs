//! Validation problems, phrased so that their author can act on them.

use std::borrow::Cow;
use std::cell::RefCell;

use serde::Serialize;
use serde_json::Value;

/// Longest pointer that is reported in full.
const POINTER_BYTES_MAX: usize = 1_024;

/// A problem and its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// JSON pointer (RFC 6901) to the value at fault; empty for the whole document.
    pub pointer: String,
    /// A sentence: what was seen and what would have been right.
    pub message: String,
}

impl Problem {
    /// A problem at `pointer`, which is shortened if the author's names make it too long.
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

/// Most problems that are listed.
pub const PROBLEMS_MAX: usize = 100;

/// Collector of problems, so that the author learns of all of them at once.
#[derive(Debug, Default)]
pub struct Problems {
    list: RefCell<Vec<Problem>>,
    /// The document is about to be stored.
    is_new: bool,
}

impl Problems {
    /// A collector for a document that is about to be stored, which must obey every rule.
    pub fn of_new() -> Self {
        Self {
            is_new: true,
            ..Self::default()
        }
    }
    /// Adds a problem of a new document. What was stored before there was such a rule stays valid.
    pub fn add_if_new(&self, pointer: impl Into<String>, message: impl Into<String>) {
        if self.is_new {
            self.add(pointer, message);
        }
    }
    /// Adds a problem; beyond [`PROBLEMS_MAX`] only a note that there are more.
    pub fn add(&self, pointer: impl Into<String>, message: impl Into<String>) {
        let mut list = self.list.borrow_mut();
        match list.len() {
            0..PROBLEMS_MAX => list.push(Problem::new(pointer, message)),
            PROBLEMS_MAX => list.push(Problem::new("", "there are more problems than are listed here")),
            _ => {}
        }
    }
    /// Adds several problems.
    pub fn extend(&self, problems: Vec<Problem>) {
        for problem in problems {
            self.add(problem.pointer, problem.message);
        }
    }
    /// The value, or none after adding its problems.
    pub fn take<T>(&self, result: Result<T, Vec<Problem>>) -> Option<T> {
        result.map_err(|problems| self.extend(problems)).ok()
    }
    /// Reads something by the same rules; its problems are added at the pointers that `place` gives for theirs.
    pub fn placed<T>(&self, place: impl Fn(String) -> String, read: impl FnOnce(&Self) -> T) -> T {
        let inner = Self {
            is_new: self.is_new,
            ..Self::default()
        };
        let value = read(&inner);
        for problem in inner.list.into_inner() {
            self.add(place(problem.pointer), problem.message);
        }
        value
    }
    /// Whether there is a problem at exactly this pointer.
    pub fn has(&self, pointer: &str) -> bool {
        self.list
            .borrow()
            .iter()
            .any(|problem| problem.pointer == pointer)
    }
    /// Whether there is a problem of something inside the value at this pointer.
    pub fn has_inside(&self, pointer: &str) -> bool {
        let is_inside = |problem: &Problem| {
            let rest = problem.pointer.strip_prefix(pointer);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.list.borrow().iter().any(is_inside)
    }
    /// Whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.list.borrow().is_empty()
    }
    /// `value` if there are no problems. A missing value must have a problem.
    pub fn or<T>(self, value: Option<T>) -> Result<T, Vec<Problem>> {
        match (value, self.list.into_inner()) {
            (Some(value), problems) if problems.is_empty() => Ok(value),
            (_, problems) => {
                debug_assert!(!problems.is_empty(), "refused without a reason");
                Err(problems)
            }
        }
    }
}

/// `pointer` extended by one member, escaped as in RFC 6901.
pub fn member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Most characters of a client's text that a message quotes.
const PREVIEW_CHARS_MAX: usize = 64;

/// `text`, shortened if it is long.
pub fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(PREVIEW_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// `text` in quotes, shortened if it is long, for use in a message.
pub fn preview(text: &str) -> String {
    format!("{:?}", cut(text))
}

/// "must be v5, v6 or v7, got "v8"": `seen` is none of the `known` words.
pub fn one_of(seen: &str, known: &[&str]) -> String {
    format!("must be {}, got {}", choice(known), preview(seen))
}

/// "v5, v6 or v7".
pub fn choice(known: &[&str]) -> String {
    match known.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The JSON type of a value, with its article.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A value for use in a message.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => preview(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
    }
}
