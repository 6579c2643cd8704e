//! How members of JSON objects are read: all problems are collected, each with the path of its field.

use std::cell::RefCell;

use serde_json::{Map, Value};

use crate::Metadata;
use crate::number;

/// Problems that are reported of one body; more tell nobody anything new.
const VIOLATIONS_MAX: usize = 32;

/// What is wrong with one field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Path of the field, like `message.parts[0].text`.
    pub field: String,
    /// What was found there and what is expected, as a sentence.
    pub description: String,
}

/// JSON that does not have the form it is read as, with everything that is wrong with it. Never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid(pub Vec<Violation>);

impl Invalid {
    /// One problem with one field.
    pub fn one(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self(vec![Violation {
            field: field.into(),
            description: description.into(),
        }])
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, Violation { field, description }) in self.0.iter().enumerate() {
            let join = if index == 0 { "" } else { "; " };
            write!(f, "{join}{field}: {description}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Invalid {}

/// Reads `value`, which stands at `at` in the body, by `read`.
pub(crate) fn parse<T>(
    value: Value,
    at: &str,
    read: impl FnOnce(Value, String, &Violations) -> T,
) -> Result<T, Invalid> {
    let bad = Violations::default();
    let parsed = read(value, at.to_owned(), &bad);
    match bad.0.into_inner() {
        found if found.is_empty() => Ok(parsed),
        found => Err(Invalid(found)),
    }
}

/// The problems found so far.
#[derive(Default)]
pub(crate) struct Violations(RefCell<Vec<Violation>>);

impl Violations {
    pub fn add(&self, field: impl Into<String>, description: impl Into<String>) {
        let mut found = self.0.borrow_mut();
        if found.len() < VIOLATIONS_MAX {
            found.push(Violation {
                field: field.into(),
                description: description.into(),
            });
        }
    }
}

/// An object whose members are taken out one by one. A member that is `null` is absent, as in ProtoJSON; a member
/// may also have its proto name (`message_id` for `messageId`).
pub(crate) struct Object<'r> {
    members: Map<String, Value>,
    at: String,
    bad: &'r Violations,
}

impl<'r> Object<'r> {
    /// The object at `at`; an empty one, and a problem, when `value` is something else.
    pub fn new(value: Value, at: String, bad: &'r Violations) -> Self {
        let members = match value {
            Value::Object(members) => members,
            other => {
                bad.add(shown(&at), format!("must be an object, got {}", kind(&other)));
                Map::new()
            }
        };
        Self { members, at, bad }
    }

    /// Path of a member.
    pub fn path(&self, name: &str) -> String {
        match self.at.as_str() {
            "" => name.to_owned(),
            at => format!("{at}.{name}"),
        }
    }

    pub fn bad(&self, name: &str, description: impl Into<String>) {
        self.bad.add(self.path(name), description);
    }

    /// A problem with the object itself.
    pub fn bad_here(&self, description: impl Into<String>) {
        self.bad.add(shown(&self.at), description);
    }

    /// Whether a member is there, `null` included.
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name) || self.members.contains_key(&proto_name(name))
    }

    /// A member as it is; `null` is a value here.
    pub fn any(&mut self, name: &str) -> Option<Value> {
        let taken = self.members.remove(name);
        taken.or_else(|| self.members.remove(&proto_name(name)))
    }

    fn some(&mut self, name: &str) -> Option<Value> {
        self.any(name).filter(|value| !value.is_null())
    }

    pub fn text(&mut self, name: &str) -> Option<String> {
        match self.some(name)? {
            Value::String(text) => Some(text),
            other => self.wrong(name, "a string", &other),
        }
    }

    /// A text that must be there and not be empty.
    pub fn need_text(&mut self, name: &str) -> String {
        let is_there = self.has(name);
        let text = self.text(name).unwrap_or_default();
        if text.is_empty() && !(is_there && self.was_reported(name)) {
            self.bad(name, "is required and must not be empty");
        }
        text
    }

    pub fn flag(&mut self, name: &str) -> Option<bool> {
        match self.some(name)? {
            Value::Bool(flag) => Some(flag),
            other => self.wrong(name, "true or false", &other),
        }
    }

    /// A whole number of 32 bits; `10.0` and `"10"` are the forms that protobuf libraries write and accept.
    pub fn integer(&mut self, name: &str) -> Option<i32> {
        let value = self.some(name)?;
        let number = match number::repaired(value.clone()) {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        match number.and_then(|number| i32::try_from(number).ok()) {
            Some(number) => Some(number),
            None => self.wrong(name, "a whole number of 32 bits", &value),
        }
    }

    /// A number that counts something.
    pub fn count(&mut self, name: &str) -> Option<u32> {
        let number = self.integer(name)?;
        let count = u32::try_from(number).ok();
        if count.is_none() {
            self.bad(name, format!("must not be negative, got {number}"));
        }
        count
    }

    pub fn metadata(&mut self, name: &str) -> Option<Metadata> {
        match self.some(name)? {
            Value::Object(members) => Some(members),
            other => self.wrong(name, "an object", &other),
        }
    }

    /// A member that is read by `read`.
    pub fn inner<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value, String, &'r Violations) -> T,
    ) -> Option<T> {
        let value = self.some(name)?;
        Some(read(value, self.path(name), self.bad))
    }

    /// A member that must be there.
    pub fn need<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value, String, &'r Violations) -> T,
    ) -> Option<T> {
        let inner = self.inner(name, read);
        if inner.is_none() {
            self.bad(name, "is required");
        }
        inner
    }

    /// A list whose items are read by `read`; empty when absent.
    pub fn list<T>(
        &mut self,
        name: &str,
        mut read: impl FnMut(Value, String, &'r Violations) -> Option<T>,
    ) -> Vec<T> {
        let items = match self.some(name) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                let _: Option<()> = self.wrong(name, "a list", &other);
                return Vec::new();
            }
        };
        let path = self.path(name);
        let items = items.into_iter().enumerate();
        items
            .filter_map(|(index, item)| read(item, format!("{path}[{index}]"), self.bad))
            .collect()
    }

    /// A list of strings; empty when absent.
    pub fn texts(&mut self, name: &str) -> Vec<String> {
        self.list(name, |value, at, bad| match value {
            Value::String(text) => Some(text),
            other => {
                bad.add(at, format!("must be a string, got {}", kind(&other)));
                None
            }
        })
    }

    /// The members that nobody has taken.
    pub fn rest(self) -> Map<String, Value> {
        self.members
    }

    /// Whether a problem with this member is known already.
    pub fn was_reported(&self, name: &str) -> bool {
        let path = self.path(name);
        self.bad.0.borrow().iter().any(|found| found.field == path)
    }

    fn wrong<T>(&self, name: &str, expected: &str, got: &Value) -> Option<T> {
        self.bad(name, format!("must be {expected}, got {}", kind(got)));
        None
    }
}

/// The members of an object that is written. What is absent is left out.
#[derive(Default)]
pub(crate) struct Members(Map<String, Value>);

impl Members {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// A list, left out when it is empty.
    pub fn with_list<T: Into<Value>>(self, name: &str, items: impl IntoIterator<Item = T>) -> Self {
        let items: Vec<Value> = items.into_iter().map(Into::into).collect();
        match items.is_empty() {
            true => self,
            false => self.with(name, items),
        }
    }

    pub fn with_metadata(self, metadata: Option<&Metadata>) -> Self {
        self.with_some("metadata", metadata.cloned())
    }

    pub fn value(self) -> Value {
        Value::Object(self.0)
    }
}

/// What a value is, for messages to people.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The path of the body itself has no name.
fn shown(at: &str) -> &str {
    if at.is_empty() { "body" } else { at }
}

/// A member's name in the proto: `messageId` is `message_id`.
fn proto_name(name: &str) -> String {
    let mut proto = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            proto.push('_');
        }
        proto.push(letter.to_ascii_lowercase());
    }
    proto
}
