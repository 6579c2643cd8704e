//! JSON of unknown shape: arguments, results, metadata. One opaque value from end to end.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON value kept as its original text. Cheap to clone. Input from outside is guaranteed to parse
/// as a tree: a text that nests too deep, or holds a number or character that cannot be represented, is rejected.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// Wraps `text` if it is one JSON value.
    pub fn parse(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text)?.try_into()
    }
    /// The value as text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
    /// Parses the value into a tree, for code that must look inside.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.as_str()).expect("a raw value is JSON")
    }
    /// Parses the value into a type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }
    /// JSON `null`.
    pub fn null() -> Self {
        Self(RawValue::from_string("null".into()).expect("null is JSON").into())
    }
    /// A JSON string holding `text`.
    pub fn string(text: &str) -> Self {
        Self::from(&Value::from(text))
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self(
            RawValue::from_string(value.to_string())
                .expect("a value prints as JSON")
                .into(),
        )
    }
}
impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}
impl TryFrom<Box<RawValue>> for Json {
    type Error = serde_json::Error;
    fn try_from(raw: Box<RawValue>) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Readable>(raw.get())?;
        Ok(Self(raw.into()))
    }
}

/// Equal as values: whitespace and the order of members do not matter.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() || self.to_value() == other.to_value()
    }
}
impl fmt::Debug for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from)?
            .try_into()
            .map_err(de::Error::custom)
    }
}

/// Deepest nesting of a parsed value; one built in code may be deeper.
pub const DEPTH_MAX: usize = 127;

/// Whether `value` has more than `levels` levels of arrays and objects. Recurses no deeper than that.
pub fn deeper_than(value: &Value, levels: usize) -> bool {
    let deeper = |inner: &Value| deeper_than(inner, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(deeper),
        Value::Object(members) => levels == 0 || members.values().any(deeper),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Parses like a tree and keeps nothing. `RawValue` only skips over the text, so it may hold what no tree can:
/// `1e999`, half a surrogate pair, a million brackets.
struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}
impl<'de> Visitor<'de> for Readable {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}
