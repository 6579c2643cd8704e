//! The stored form of an entry's events: one JSON array, with the version of the format beside it.

use serde_json::value::RawValue;
use toolgate_engine::store::StoreError;
use toolgate_kernel::event::{Event, FORMAT};

/// The events as they are stored.
pub(crate) fn write(events: &[Event]) -> String {
    serde_json::to_string(events).expect("events print as JSON")
}

/// The events back; `Corrupt` when they are not what this version can read.
pub(crate) fn read(format: u32, text: &str) -> Result<Vec<Event>, StoreError> {
    if format > FORMAT {
        return Err(StoreError::Corrupt(format!(
            "events in format {format}, written by a newer version; this one reads up to {FORMAT}"
        )));
    }
    let raw: Vec<&RawValue> = serde_json::from_str(text).map_err(corrupt)?;
    raw.into_iter()
        .map(Event::read)
        .collect::<Result<_, _>>()
        .map_err(corrupt)
}

fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("stored events: {error}"))
}
