//! An index: one record of a set that says what the set's other records are. Every change of the set expects the version of
//! the index that it has read, so changes are made one after the other, on whichever node.

use serde::Serialize;
use serde::de::DeserializeOwned;
use toolgate_kernel::json::Json;

use crate::records::{Amendment, Change, Expected, NewRecord, Record};
use crate::store::StoreError;

/// Id of the record that holds the index.
pub const INDEX: &str = "index";

/// An index as it was read, with the version that a change of it expects.
#[derive(Debug, Clone, Default)]
pub struct ReadIndex<I> {
    /// The index; empty while nothing is stored.
    pub index: I,
    /// 0 while nothing is stored.
    pub version: u64,
}

impl<I: Default + DeserializeOwned + Serialize> ReadIndex<I> {
    /// From the stored record. An index that cannot be read is an error that names `what` it is of.
    pub fn of(record: Option<Record>, what: &str) -> Result<Self, StoreError> {
        let Some(record) = record else {
            return Ok(Self::default());
        };
        let broken = |error| StoreError::Corrupt(format!("the index of {what}: {error}"));
        Ok(Self {
            index: record.body.read().map_err(broken)?,
            version: record.version,
        })
    }

    /// Stores the next index after these changes, if the stored one is still the one that was read.
    pub fn replaced_by(&self, next: &I, mut changes: Vec<Change>) -> Amendment {
        let body = serde_json::to_value(next).expect("an index has text keys");
        changes.push(put(INDEX.into(), body.into()));
        Amendment {
            expected: vec![Expected {
                id: INDEX.into(),
                version: Some(self.version).filter(|version| *version > 0),
            }],
            changes,
            ..Amendment::default()
        }
    }
}

/// Stores a record that no search finds.
pub fn put(id: String, body: Json) -> Change {
    Change::Put(NewRecord {
        id,
        body,
        text: None,
        data: None,
        due: None,
    })
}
