//! Stored events: a sample of each, in each version, always loads.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::value::RawValue;
use toolgate_kernel::event::{Event, FORMAT};

#[test]
fn every_stored_event_of_every_version_still_loads() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    for version in 1..=FORMAT {
        let text = std::fs::read_to_string(samples.join(format!("v{version}.jsonl"))).unwrap();
        let mut kinds = BTreeSet::new();
        for line in text.lines() {
            let raw = RawValue::from_string(line.to_owned()).unwrap();
            let event = Event::read(&raw).unwrap_or_else(|error| panic!("v{version}: {line}: {error}"));
            assert!(event.is_durable(), "{line}");
            kinds.insert(event.kind());
            if version == FORMAT {
                assert_eq!(serde_json::to_string(&event).unwrap(), line, "the current form is the sample's");
            }
        }
        assert_eq!(kinds.len(), DURABLE_KINDS, "v{version} has a sample of each: {kinds:?}");
    }
}

/// Grows with every durable event, and with it the samples.
const DURABLE_KINDS: usize = 18;
