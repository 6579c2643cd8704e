//! The log: sequence numbers, ranges, and round trips.

use std::sync::Arc;

use serde_json::json;
use toolgate_engine::store::{LogOrder, LogRange, Pages, Store};
use toolgate_kernel::event::{Entry, Seq};
use toolgate_kernel::time::Time;

use super::samples::{EVERYTHING, create, event, extend, run, run_record, say, space, text};
use super::{Stored, checks};

checks![
    places_are_dense_in_a_space_and_start_at_one,
    every_space_counts_by_itself,
    what_is_read_is_what_was_written,
    large_and_strange_events_survive,
    an_event_of_a_newer_version_is_kept,
    a_run_log_holds_that_run_alone,
    a_range_begins_after_its_cursor,
    a_range_ends_before_its_end_and_within_its_limit,
    a_page_ends_at_its_bytes_and_says_whether_more_follows,
    a_log_is_read_backwards,
    the_tail_of_a_space_is_its_last_place,
    a_run_begins_with_its_first_entry,
    a_long_log_is_read_whole,
    what_was_never_written_is_empty,
];

async fn places_are_dense_in_a_space_and_start_at_one(store: Arc<dyn Store>) {
    let mut three = say(space(1), "a");
    three.events.extend([text("b"), text("c")]);
    let first = store.append(three).await.stored();
    let second = store.append(say(space(1), "d")).await.stored();
    assert_eq!((first.first, first.last()), (Seq::durable(1), Seq::durable(3)));
    assert_eq!((second.first, second.last()), (Seq::durable(4), Seq::durable(4)));
}

async fn every_space_counts_by_itself(store: Arc<dyn Store>) {
    store.append(say(space(1), "a")).await.stored();
    let other = store.append(say(space(2), "b")).await.stored();
    assert_eq!(other.first, Seq::durable(1));
    assert_eq!(
        store.space_log(space(2), EVERYTHING).await.stored().entries.len(),
        1
    );
}

async fn what_is_read_is_what_was_written(store: Arc<dyn Store>) {
    let call = json!({"toolCallId": format!("call_{}_0", "0".repeat(26)), "toolName": "look", "placement": "client"});
    let of_call = |kind: &str, more: serde_json::Value| {
        let mut body = call.clone();
        let fields = body.as_object_mut().expect("an object");
        fields.insert("type".into(), kind.into());
        fields.extend(more.as_object().expect("an object").clone());
        event(body)
    };
    let mut append = create(run_record(run(1), space(1)));
    append.events = vec![
        text("words"),
        event(json!({"type": "run-status", "status": "waiting_tool"})),
        of_call(
            "tool-input-available",
            json!({"input": {"deep": [1, 2.5, null, {"a": "\u{1f600}"}]}}),
        ),
        of_call("tool-output-available", json!({"output": "done"})),
        event(json!({"type": "notification", "title": "news", "body": "more"})),
    ];
    append.time = Time(1_700_000_000_123);
    let given = append.events.clone();
    let entry = store.append(append).await.stored();
    let expected = Entry {
        space: space(1),
        run: Some(run(1)),
        first: Seq::durable(1),
        time: Time(1_700_000_000_123),
        events: given,
    };
    assert_eq!(*entry, expected);
    let of_run = store.run_log(run(1), EVERYTHING).await.stored().entries;
    let of_space = store.space_log(space(1), EVERYTHING).await.stored().entries;
    assert_eq!(
        (of_run.as_slice(), of_space.as_slice()),
        ([expected.clone()].as_slice(), [expected].as_slice())
    );
}

async fn large_and_strange_events_survive(store: Arc<dyn Store>) {
    const LARGE: usize = 3_000_000;
    let mut append = say(space(1), &"x".repeat(LARGE));
    append.events.push(text(
        "\0 \u{7f} \" \\ \r\n \u{2028} \u{fffd} \u{10ffff} e\u{301} שלום ไทย 👩‍👩‍👧",
    ));
    append.events.push(text(""));
    append.events.extend((0..1000).map(|n| text(&n.to_string())));
    let given = append.events.clone();
    store.append(append).await.stored();
    assert_eq!(
        store.space_log(space(1), EVERYTHING).await.stored().entries[0].events,
        given
    );
}

async fn an_event_of_a_newer_version_is_kept(store: Arc<dyn Store>) {
    let mut append = create(run_record(run(1), space(1)));
    let future = event(json!({"type": "run-forked", "into": [1, {"deep": "\u{1f600}"}]}));
    append.events.push(future.clone());
    let entry = store.append(append).await.stored();
    let read = store.run_log(run(1), EVERYTHING).await.stored().entries;
    assert_eq!(read, [(*entry).clone()]);
    assert_eq!(read[0].events[1], future);
    assert_eq!(read[0].beyond().map(|event| event.kind()), Some("run-forked"));
}

async fn a_run_log_holds_that_run_alone(store: Arc<dyn Store>) {
    let (first, second) = (run_record(run(1), space(1)), run_record(run(2), space(1)));
    let begun = store.append(create(first.clone())).await.stored();
    store.append(say(space(1), "in between")).await.stored();
    store.append(create(second)).await.stored();
    store.append(extend(&first, begun.last())).await.stored();
    let places = |log: Vec<Entry>| log.iter().map(|entry| entry.first.index()).collect::<Vec<_>>();
    assert_eq!(
        places(store.run_log(run(1), EVERYTHING).await.stored().entries),
        [1, 4]
    );
    assert_eq!(
        places(store.run_log(run(2), EVERYTHING).await.stored().entries),
        [3]
    );
    let whole = store.space_log(space(1), EVERYTHING).await.stored().entries;
    assert_eq!(
        whole.iter().map(|entry| entry.run).collect::<Vec<_>>(),
        [Some(run(1)), None, Some(run(2)), Some(run(1)),]
    );
}

/// Three entries: sequence numbers 1 to 3, 4, and 5 to 6.
async fn three_entries(store: &Arc<dyn Store>) {
    for words in [&["a", "b", "c"][..], &["d"], &["e", "f"]] {
        let mut append = say(space(1), "");
        append.events = words.iter().map(|words| text(words)).collect();
        store.append(append).await.stored();
    }
}

async fn firsts(store: &Arc<dyn Store>, range: LogRange) -> Vec<u64> {
    let log = store.space_log(space(1), range).await.stored();
    log.entries.iter().map(|entry| entry.first.index()).collect()
}

async fn a_range_begins_after_its_cursor(store: Arc<dyn Store>) {
    three_entries(&store).await;
    let after = async |after| firsts(&store, LogRange { after, ..EVERYTHING }).await;
    assert_eq!(after(Seq(0)).await, [1, 4, 5]);
    assert_eq!(
        after(Seq::durable(2)).await,
        [1, 4, 5],
        "the third event of the first entry is after it"
    );
    assert_eq!(after(Seq::durable(3)).await, [4, 5]);
    assert_eq!(
        after(Seq(Seq::durable(3).0 + 17)).await,
        [4, 5],
        "a transient place after the third"
    );
    assert_eq!(
        after(Seq(Seq::durable(4).0 - 1)).await,
        [4, 5],
        "a transient place before the fourth"
    );
    assert_eq!(after(Seq::durable(5)).await, [5]);
    assert_eq!(after(Seq::durable(6)).await, [0; 0]);
    assert_eq!(after(Seq(u64::MAX)).await, [0; 0]);
}

async fn a_range_ends_before_its_end_and_within_its_limit(store: Arc<dyn Store>) {
    three_entries(&store).await;
    let before = async |before| {
        firsts(
            &store,
            LogRange {
                before: Some(before),
                ..EVERYTHING
            },
        )
        .await
    };
    assert_eq!(before(Seq::durable(1)).await, [0; 0]);
    assert_eq!(before(Seq::durable(2)).await, [1]);
    assert_eq!(before(Seq::durable(5)).await, [1, 4]);
    assert_eq!(before(Seq(u64::MAX)).await, [1, 4, 5]);
    let limit = async |limit| firsts(&store, LogRange { limit, ..EVERYTHING }).await;
    assert_eq!(limit(0).await, [0; 0]);
    assert_eq!(limit(2).await, [1, 4]);
}

async fn a_page_ends_at_its_bytes_and_says_whether_more_follows(store: Arc<dyn Store>) {
    three_entries(&store).await;
    let page = async |limit, bytes| {
        let range = LogRange {
            limit,
            bytes,
            ..EVERYTHING
        };
        store.space_log(space(1), range).await.stored()
    };
    let whole = page(3, usize::MAX).await;
    assert_eq!((whole.entries.len(), whole.more), (3, false), "nothing is left");
    let first = page(1, usize::MAX).await;
    assert_eq!((first.entries.len(), first.more), (1, true));
    assert!(first.bytes > 0 && first.bytes < whole.bytes);
    let least = page(9, 0).await;
    assert_eq!(
        (least.entries.len(), least.more),
        (1, true),
        "an entry too large is given all the same"
    );
    let reached = page(9, first.bytes).await;
    assert_eq!(
        reached, first,
        "a page ends with the entry that reaches its bytes"
    );
    let over = page(9, first.bytes + 1).await;
    assert_eq!((over.entries.len(), over.more), (2, true));
    let none = page(0, usize::MAX).await;
    assert_eq!((none.entries.len(), none.more), (0, true));
    let mut pages = Pages::of_space(
        space(1),
        LogRange {
            bytes: 0,
            ..EVERYTHING
        },
    );
    let mut read = Vec::new();
    while let Some(page) = pages.next(&*store).await.stored() {
        assert_eq!(page.entries.len(), 1);
        read.extend(page.entries);
    }
    assert_eq!(read, whole.entries, "pages join without a gap or a repeat");
}

async fn a_log_is_read_backwards(store: Arc<dyn Store>) {
    three_entries(&store).await;
    let backwards = LogRange {
        order: LogOrder::NewestFirst,
        ..EVERYTHING
    };
    assert_eq!(firsts(&store, backwards).await, [5, 4, 1]);
    let (after, before) = (Seq::durable(2), Some(Seq::durable(5)));
    assert_eq!(firsts(&store, LogRange { after, ..backwards }).await, [5, 4, 1]);
    assert_eq!(firsts(&store, LogRange { before, ..backwards }).await, [4, 1]);
    assert_eq!(
        firsts(
            &store,
            LogRange {
                limit: 1,
                ..backwards
            }
        )
        .await,
        [5]
    );
    let mut pages = Pages::of_space(
        space(1),
        LogRange {
            limit: 2,
            ..backwards
        },
    );
    let newest = pages.next(&*store).await.stored().expect("a page");
    let oldest = pages.next(&*store).await.stored().expect("a page");
    assert_eq!((newest.more, oldest.more), (true, false));
    assert_eq!(oldest.entries[0].first, Seq::durable(1));
    assert_eq!(pages.next(&*store).await.stored(), None);
}

async fn the_tail_of_a_space_is_its_last_place(store: Arc<dyn Store>) {
    assert_eq!(store.space_tail(space(1)).await.stored(), Seq(0));
    three_entries(&store).await;
    assert_eq!(store.space_tail(space(1)).await.stored(), Seq::durable(6));
    assert_eq!(store.space_tail(space(2)).await.stored(), Seq(0));
}

async fn a_run_begins_with_its_first_entry(store: Arc<dyn Store>) {
    assert_eq!(store.run_start(run(1)).await.stored(), None);
    let record = run_record(run(1), space(1));
    store.append(say(space(1), "before")).await.stored();
    let begun = store.append(create(record.clone())).await.stored();
    store.append(extend(&record, begun.last())).await.stored();
    assert_eq!(store.run_start(run(1)).await.stored(), Some((*begun).clone()));
}

async fn a_long_log_is_read_whole(store: Arc<dyn Store>) {
    const ENTRIES: u64 = 40;
    let record = run_record(run(1), space(1));
    let mut version = store.append(create(record.clone())).await.stored().last();
    for _ in 1..ENTRIES {
        let mut append = extend(&record, version);
        append.events.push(text(&"x".repeat(5000)));
        version = store.append(append).await.stored().last();
    }
    let whole = store.run_log(run(1), EVERYTHING).await.stored().entries;
    assert_eq!(whole.len() as u64, ENTRIES);
    assert_eq!(whole.last().map(Entry::last), Some(version));
    assert_eq!(
        store.space_log(space(1), EVERYTHING).await.stored().entries,
        whole
    );
    let within = LogRange {
        after: Seq::durable(2),
        limit: 30,
        ..EVERYTHING
    };
    assert_eq!(
        store.space_log(space(1), within).await.stored().entries,
        whole[1..31]
    );
}

async fn what_was_never_written_is_empty(store: Arc<dyn Store>) {
    assert_eq!(store.run_log(run(1), EVERYTHING).await.stored().entries, []);
    assert_eq!(store.space_log(space(1), EVERYTHING).await.stored().entries, []);
    assert_eq!(store.run(run(1)).await.stored(), None);
    assert_eq!(store.next_wake().await.stored(), None);
}
