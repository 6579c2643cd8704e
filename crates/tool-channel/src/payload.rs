//! What a message says beyond its type: any JSON object.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// A JSON object, kept as it was written: numbers and the order of members do not change on the way.
#[derive(Debug, Clone)]
pub struct Payload(Box<RawValue>);

/// The value is no JSON object, or nests too deep to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payload must be a JSON object")]
pub struct NotAnObject;

impl Payload {
    /// The payload that `value` is as JSON.
    pub fn of(value: &impl Serialize) -> Result<Self, NotAnObject> {
        to_raw_value(value).map_err(|_| NotAnObject)?.try_into()
    }
    /// The object as JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
    /// Reads the whole object as a type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }
    /// One member of the object.
    pub fn get(&self, name: &str) -> Option<Value> {
        let mut members: Map<String, Value> = self.read().ok()?;
        members.remove(name)
    }
}

impl TryFrom<Box<RawValue>> for Payload {
    type Error = NotAnObject;
    fn try_from(raw: Box<RawValue>) -> Result<Self, NotAnObject> {
        // Read once as a tree, because raw text may hold what no tree can: a number out of range, a million brackets.
        match serde_json::from_str::<Map<String, Value>>(raw.get()) {
            Ok(_) => Ok(Self(raw)),
            Err(_) => Err(NotAnObject),
        }
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}
impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from)?
            .try_into()
            .map_err(serde::de::Error::custom)
    }
}

/// Equal as values: whitespace and the order of members do not matter.
impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        let tree = |payload: &Self| payload.read::<Value>().ok();
        self.as_str() == other.as_str() || tree(self) == tree(other)
    }
}
