//! Stored events: a sample of each, in each version, always loads.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::value::RawValue;
use toolgate_kernel::event::{Entry, Event, FORMAT, Seq};
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::view;

use crate::view::member;

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
            assert!(!matches!(event, Event::Opaque(_)), "{line}");
            kinds.insert(event.kind().to_owned());
            if version == FORMAT {
                assert_eq!(
                    serde_json::to_string(&event).unwrap(),
                    line,
                    "the current form is the sample's"
                );
            }
        }
        assert_eq!(
            kinds.len(),
            DURABLE_KINDS,
            "v{version} has a sample of each: {kinds:?}"
        );
    }
}

/// Written by a version to come; spaced as no version of ours writes.
const FUTURE: &str = include_str!("../samples/future.jsonl");

fn entry(events: Vec<Event>) -> Entry {
    Entry {
        space: SpaceId::from_bytes([1; 16]),
        run: None,
        first: Seq::durable(1),
        time: Time(1),
        events,
    }
}

#[test]
fn an_event_of_a_newer_version_is_kept_as_it_was_written() {
    let (mut ignorable, mut beyond) = (0, 0);
    for line in FUTURE.lines() {
        let raw = RawValue::from_string(line.to_owned()).unwrap();
        let event = Event::read(&raw).unwrap();
        assert!(event.is_durable(), "{line}");
        assert!(line.contains(event.kind()), "{line}");
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        assert_eq!(view(&event, &member()), None, "{line}");
        assert_eq!(view(&event, &Decider::Backend).as_deref(), Some(&event));
        match entry(vec![event]).beyond() {
            Some(_) => beyond += 1,
            None => ignorable += 1,
        }
    }
    assert_eq!((ignorable, beyond), (1, 2));
}

#[test]
fn a_known_event_in_a_newer_format_is_kept_as_it_was_written() {
    let line = r#"{"type":"run-status","status":{"is":"asleep"}}"#;
    let raw = RawValue::from_string(line.to_owned()).unwrap();
    assert!(Event::read(&raw).is_err(), "not a status of this format");
    let event = Event::read_as(FORMAT + 1, &raw).unwrap();
    assert_eq!(serde_json::to_string(&event).unwrap(), line);
    let entry = entry(vec![event]);
    let kept = entry.beyond().unwrap();
    assert_eq!((kept.kind(), kept.format()), ("run-status", FORMAT + 1));
}

#[test]
fn what_is_no_event_of_any_version_is_refused() {
    for line in [
        r#"{"status":"running"}"#,
        r#"{"type":""}"#,
        r#"{"type":"two\nlines"}"#,
        r#"{"type":7}"#,
        "[]",
    ] {
        let raw = RawValue::from_string(line.to_owned()).unwrap();
        assert!(Event::read(&raw).is_err(), "{line}");
    }
}

/// Grows with every durable event, and with it the samples.
const DURABLE_KINDS: usize = 25;
