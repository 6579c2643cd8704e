//! The stored form of an entry's events: one JSON array, with the version of the format beside it.

use serde_json::value::RawValue;
use toolgate_engine::store::StoreError;
use toolgate_kernel::event::{Event, FORMAT};

/// The events in their stored form.
pub(crate) fn write(events: &[Event]) -> String {
    serde_json::to_string(events).expect("events print as JSON")
}

/// Format version of these events: ours, unless some of them were written by a newer version and kept as they are.
pub(crate) fn format(events: &[Event]) -> u32 {
    let formats = events.iter().map(|event| match event {
        Event::Opaque(event) => event.format(),
        _ => FORMAT,
    });
    formats.fold(FORMAT, u32::max)
}

/// Parses stored events and keeps those of a newer version opaque; `Corrupt` if they are no events of any version.
pub(crate) fn read(format: u32, text: &str) -> Result<Vec<Event>, StoreError> {
    let raw: Vec<&RawValue> = serde_json::from_str(text).map_err(corrupt)?;
    raw.into_iter()
        .map(|raw| Event::read_as(format, raw))
        .collect::<Result<_, _>>()
        .map_err(corrupt)
}

fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("stored events: {error}"))
}
