//! The payload of a message that has to fit: which members it has, and which are left out when they are too large.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// Leaves out the largest members until the message fits, and names them: they are read over HTTP.
pub(crate) fn fit(mut payload: Members, message: impl Fn(&Members) -> String, bytes_max: usize) -> String {
    let mut omitted: Vec<String> = Vec::new();
    loop {
        let text = message(&payload);
        if text.len() <= bytes_max {
            return text;
        }
        let Some(name) = payload.take_largest() else {
            return text;
        };
        omitted.push(name);
        payload.set("omitted", &omitted);
    }
}

/// Members that a message is never without: they say what it is about.
const KEPT: [&str; 5] = ["event", "toolCallId", "runId", "approvalId", "omitted"];

/// The members of an object, in its order and as they were written.
pub(crate) struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    /// All members that an event has after the redaction, or a receipt. A new one, such as a text to be spoken, needs
    /// nothing here.
    pub fn of(told: &impl Serialize) -> Self {
        let text = serde_json::to_string(told).expect("what is told has text keys");
        serde_json::from_str(&text).expect("what is told is an object")
    }
    pub fn add(&mut self, name: &str, value: &impl Serialize) {
        let value = to_raw_value(value).expect("an id is JSON");
        self.0.push((name.into(), value));
    }
    fn set(&mut self, name: &str, value: &impl Serialize) {
        self.0.retain(|(known, _)| known != name);
        self.add(name, value);
    }
    pub fn rename(&mut self, from: &str, to: &str) {
        for (name, _) in &mut self.0 {
            if name == from {
                *name = to.into();
            }
        }
    }
    pub fn take_text(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(known, _)| known == name)?;
        serde_json::from_str(self.0.remove(place).1.get()).ok()
    }
    fn take_largest(&mut self) -> Option<String> {
        let may_go = |(_, (name, _)): &(usize, &(String, Box<RawValue>))| !KEPT.contains(&name.as_str());
        let members = self.0.iter().enumerate().filter(may_go);
        let (place, _) = members.max_by_key(|(_, (_, value))| value.get().len())?;
        Some(self.0.remove(place).0)
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
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Members;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Pairs)
    }
}
