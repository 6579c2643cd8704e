//! Events of a newer version. During an upgrade nodes of two versions share a store: the older one keeps what it does
//! not know as it was written and passes it on.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::Json;

/// Longest name of an event.
const KIND_CHARS_MAX: usize = 64;

/// An event that this version does not know, as it was written.
///
/// Every format keeps two members: `type`, and `ignorable`, which is true for an event that changes nothing about its
/// run, so that a version which does not know it may replay the log without it. A run with any other unknown event
/// can be read, but only a version that knows the event can drive it ([`super::Entry::beyond`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Opaque {
    pub(super) kind: Arc<str>,
    pub(super) ignorable: bool,
    format: u32,
    raw: Json,
}

/// The members that are read whatever the format.
#[derive(Deserialize)]
pub(super) struct Tag<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(default)]
    ignorable: bool,
}

impl Opaque {
    pub(super) fn keep(format: u32, tag: Tag<'_>, raw: &RawValue) -> Result<Self, serde_json::Error> {
        let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        // The name is written into event streams, where a line break would end the line.
        if tag.kind.is_empty() || tag.kind.len() > KIND_CHARS_MAX || !tag.kind.chars().all(named) {
            let kind: String = tag.kind.chars().take(KIND_CHARS_MAX).collect();
            return Err(serde::de::Error::custom(format!(
                "{kind:?} is no name of an event"
            )));
        }
        Ok(Self {
            kind: tag.kind.as_ref().into(),
            ignorable: tag.ignorable,
            format,
            raw: Json::parse(raw.get().to_owned())?,
        })
    }
    /// Its name on the wire and in the store.
    pub fn kind(&self) -> &str {
        &self.kind
    }
    /// Version of the stored form it was written in.
    pub fn format(&self) -> u32 {
        self.format
    }
}

impl Serialize for Opaque {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(out)
    }
}
