use toolgate_kernel::event::TextDelta;

use super::*;

fn text(delta: &str) -> Event {
    Event::from(TextDelta {
        id: "1.0".into(),
        delta: delta.into(),
    })
}

fn live(events: Vec<Event>) -> Notice {
    let live = Live {
        run: RunId::from_bytes([8; 16]),
        first: Seq(5_000_033),
        time: Time(1_800_000_000_000),
        events,
    };
    Notice::Live {
        space: SpaceId::from_bytes([7; 16]),
        live: Arc::new(live),
        again: false,
    }
}

/// Each event that comes out, with its place.
fn placed(notices: &[Notice]) -> Vec<(u64, Event)> {
    let placed = |notice: &Notice| match notice {
        Notice::Live { live, .. } => {
            let at = |index: usize| live.first.0 + index as u64 * Seq::LANES;
            let events = live.events.iter().cloned().enumerate();
            events.map(|(index, event)| (at(index), event)).collect()
        }
        _ => Vec::new(),
    };
    notices.iter().flat_map(placed).collect()
}

#[test]
fn a_stored_sample_of_the_first_form_is_read() {
    let space = SpaceId::from_bytes([7; 16]);
    let run = RunId::from_bytes([8; 16]);
    let text = format!(
        r#"{{"node":"{}","life":18446744073709551615,"number":3,"notices":[{{"type":"committed","space":"{space}","run":"{run}","first":6000000,"last":8000000,"ends_step":true}},{{"type":"wanted","space":"{space}"}}]}}"#,
        NodeId::from_bytes([1; 16])
    );
    let batch = Batch::parse(&text).unwrap();
    assert_eq!(
        (batch.life, batch.number, batch.lost, batch.leaves),
        (u64::MAX, 3, false, false)
    );
    let notices: Vec<_> = batch.notices.iter().flat_map(|raw| read(raw)).collect();
    let [
        Notice::Committed {
            last,
            ends_step: true,
            ..
        },
        Notice::Wanted { space: wanted },
    ] = &notices[..]
    else {
        panic!("{notices:?}");
    };
    assert_eq!((*last, *wanted), (Seq::durable(8), space));
}

#[test]
fn what_only_a_newer_version_knows_is_skipped() {
    let space = SpaceId::from_bytes([7; 16]);
    let newer = [
        r#"{"type":"eclipse","of":"the moon"}"#.to_owned(),
        r#"{"type":"poke","run":7}"#.to_owned(),
        r#"{"type":"revoked","access":{"type":"moon"}}"#.to_owned(),
        r#"[]"#.to_owned(),
    ];
    for text in newer {
        assert!(read(&RawValue::from_string(text).unwrap()).is_empty());
    }
    let more = format!(r#"{{"type":"wanted","space":"{space}","why":"new"}}"#);
    assert_eq!(
        read(&RawValue::from_string(more).unwrap()).len(),
        1,
        "a new member is no new notice"
    );
}

#[test]
fn an_unknown_live_event_leaves_its_place_free() {
    let notice = live(vec![text("a"), text("b"), text("c")]);
    let written = write(&notice).parts.remove(0);
    let second = serde_json::to_string(&text("b")).unwrap();
    let newer = written
        .get()
        .replace(&second, r#"{"type":"hologram","id":"1.0"}"#);
    let read = read(&RawValue::from_string(newer).unwrap());
    let first = 5_000_033;
    assert_eq!(
        placed(&read),
        [(first, text("a")), (first + 2 * Seq::LANES, text("c"))]
    );
}

#[test]
fn large_live_events_travel_in_parts_and_one_that_is_too_large_is_told_of() {
    let piece = "ü".repeat(NOTICE_BYTES_MAX / 8);
    let events: Vec<_> = (0..9).map(|_| text(&piece)).collect();
    let notice = live(events);
    let written = write(&notice);
    assert!(written.parts.len() > 1 && !written.lost);
    assert!(
        written
            .parts
            .iter()
            .all(|part| part.get().len() <= NOTICE_BYTES_MAX)
    );
    let came: Vec<_> = written.parts.iter().flat_map(|part| read(part)).collect();
    assert_eq!(placed(&came), placed(&[notice]));

    let written = write(&live(vec![
        text("a"),
        text(&"x".repeat(NOTICE_BYTES_MAX)),
        text("c"),
    ]));
    assert!(written.lost);
    let came: Vec<_> = written.parts.iter().flat_map(|part| read(part)).collect();
    let first = 5_000_033;
    assert_eq!(
        placed(&came),
        [(first, text("a")), (first + 2 * Seq::LANES, text("c"))]
    );
}
