//! JSON of unknown shape: arguments, results, metadata. One opaque value from end to end.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON value kept as the text it came in. Cheap to clone.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// Keeps `text` if it is one JSON value.
    pub fn parse(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(|raw| Self(raw.into()))
    }
    /// The value as text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
    /// The value as a tree, for code that must look inside.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.as_str()).expect("a raw value is JSON")
    }
    /// Reads the value into a type.
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
impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.into())
    }
}

/// Equal as values: spacing and the order of members do not matter.
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
        Ok(Self(Box::<RawValue>::deserialize(from)?.into()))
    }
}
