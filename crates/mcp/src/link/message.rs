//! JSON-RPC messages whose contents stay as they were written: member order, unknown members, the text of numbers.

use std::fmt;

use serde::de::{self, DeserializeOwned, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// One JSON-RPC message.
#[derive(Debug, Clone)]
pub enum Message {
    /// Wants a response.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// Ends a request.
    Response(Response),
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Named by the response.
    pub id: Id,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Option<Members>,
}

/// A notification.
#[derive(Debug, Clone)]
pub struct Notification {
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Option<Members>,
}

/// A response.
#[derive(Debug, Clone)]
pub struct Response {
    /// The request; none when the sender could not read its id.
    pub id: Option<Id>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Its result.
    Result(Box<RawValue>),
    /// Its error: an object with `code` and `message`.
    Error(Box<RawValue>),
}

/// Id of a request, as it was written: a string or a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(Box<str>);

impl Id {
    /// An id that is this text.
    pub fn text(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string().into())
    }

    /// As JSON.
    pub fn raw(&self) -> Box<RawValue> {
        RawValue::from_string(self.0.to_string()).expect("an id is JSON")
    }

    /// The id that a value is.
    pub fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        (is_number || text.starts_with('"')).then(|| Self(text.into()))
    }
}

/// Members of an object in their order, each as it was written.
#[derive(Debug, Clone, Default)]
pub struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    /// The members of a value that is an object.
    pub fn of(raw: &RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    /// A member.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    /// A member that has this form.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// A member that is an object.
    pub fn object(&self, name: &str) -> Option<Self> {
        Self::of(self.get(name)?)
    }

    /// Replaces a member in its place, or adds it at the end.
    pub fn set(&mut self, name: &str, value: impl Serialize) {
        let value = to_raw_value(&value).expect("what is sent can be written as JSON");
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, name: &str) -> Option<Box<RawValue>> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// Keeps the members that fit.
    pub fn retain(&mut self, fits: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| fits(name));
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), &**value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As one value.
    pub fn raw(&self) -> Box<RawValue> {
        to_raw_value(self).expect("members can be written as JSON")
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Members;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    // Two readers could choose different ones: what was checked would not be what is used.
                    if members.get(&name).is_some() {
                        return Err(de::Error::custom(format!("the member {name:?} is there twice")));
                    }
                    members.0.push((name, value));
                }
                Ok(members)
            }
        }
        from.deserialize_map(Read)
    }
}

/// Bytes that are no JSON-RPC message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// They are not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// They are JSON, and something else.
    #[error("no JSON-RPC message: {0}")]
    Form(&'static str),
}

impl Message {
    /// Reads one message.
    pub fn read(bytes: &[u8]) -> Result<Self, BadMessage> {
        let raw: &RawValue =
            serde_json::from_slice(bytes).map_err(|error| BadMessage::Json(error.to_string()))?;
        let mut members: Members = serde_json::from_str(raw.get())
            .map_err(|_| BadMessage::Form("expected an object without repeated members"))?;
        if members.read::<String>("jsonrpc").as_deref() != Some("2.0") {
            return Err(BadMessage::Form("jsonrpc must be \"2.0\""));
        }
        let id = members.get("id").filter(|id| id.get() != "null");
        let has_id = id.is_some();
        let id = id.and_then(Id::read);
        if has_id && id.is_none() {
            return Err(BadMessage::Form("id must be a string or a number"));
        }
        if members.get("method").is_none() {
            let outcome = match (members.remove("result"), members.remove("error")) {
                (Some(result), None) => Outcome::Result(result),
                (None, Some(error)) => Outcome::Error(error),
                _ => return Err(BadMessage::Form("expected method, result or error")),
            };
            return Ok(Self::Response(Response { id, outcome }));
        }
        let method = members
            .read("method")
            .ok_or(BadMessage::Form("method must be a string"))?;
        let params = match members.get("params") {
            None => None,
            Some(params) => Some(Members::of(params).ok_or(BadMessage::Form("params must be an object"))?),
        };
        Ok(match id {
            Some(id) => Self::Request(Request { id, method, params }),
            None => Self::Notification(Notification { method, params }),
        })
    }

    /// As JSON, on one line.
    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a message can be written as JSON")
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("jsonrpc", "2.0")?;
        match self {
            Self::Request(Request { id, method, params }) => {
                map.serialize_entry("id", &id.raw())?;
                map.serialize_entry("method", method)?;
                if let Some(params) = params {
                    map.serialize_entry("params", params)?;
                }
            }
            Self::Notification(Notification { method, params }) => {
                map.serialize_entry("method", method)?;
                if let Some(params) = params {
                    map.serialize_entry("params", params)?;
                }
            }
            Self::Response(Response { id, outcome }) => {
                map.serialize_entry("id", &id.as_ref().map(Id::raw))?;
                match outcome {
                    Outcome::Result(result) => map.serialize_entry("result", result)?,
                    Outcome::Error(error) => map.serialize_entry("error", error)?,
                }
            }
        }
        map.end()
    }
}

impl Request {
    /// A member of its parameters that has this form.
    pub fn param<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.params.as_ref()?.read(name)
    }
}

impl Notification {
    /// A notification with these parameters.
    pub fn new(method: &str, params: impl Serialize) -> Self {
        let params = to_raw_value(&params).expect("parameters can be written as JSON");
        Self {
            method: method.to_owned(),
            params: Members::of(&params),
        }
    }
}

impl Outcome {
    /// A result that the gateway makes.
    pub fn result(value: impl Serialize) -> Self {
        Self::Result(to_raw_value(&value).expect("a result can be written as JSON"))
    }

    /// An error that the gateway makes.
    pub fn error(code: i64, message: impl Into<String>) -> Self {
        let error = serde_json::json!({"code": code, "message": message.into()});
        Self::Error(to_raw_value(&error).expect("an error can be written as JSON"))
    }

    /// Its error code.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Result(_) => None,
            Self::Error(error) => Members::of(error)?.read("code"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_written_as_it_was_read() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","z":1.0,"a":12345678901234567890123}}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":{"z":[1e3,{"b":1,"a":2}],"unknown":null}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
        ] {
            let read = Message::read(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(read.write()).unwrap(), text);
        }
    }

    #[test]
    fn a_member_that_is_there_twice_is_refused() {
        let twice = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#;
        assert!(Message::read(twice).is_err());
        assert!(Message::read(b"[]").is_err());
        assert!(Message::read(br#"{"jsonrpc":"2.0","id":{},"method":"x"}"#).is_err());
    }
}
