use toolgate_kernel::event::TextDelta;

use super::*;

const LIMITS: BacklogLimits = BacklogLimits {
    bytes: 1 << 20,
    stall: std::time::Duration::from_secs(30),
};

fn words(word: &str) -> Vec<Event> {
    let delta = |part: char| TextDelta {
        id: "1.0".into(),
        delta: part.into(),
    };
    word.chars().map(|part| delta(part).into()).collect()
}

fn topic_at(index: u64) -> Topic {
    let mut topic = Topic::new(Arc::default());
    topic.add_driver();
    topic.at_least(Seq::durable(index));
    topic
}

fn places(live: &Arc<Live>) -> Vec<u64> {
    Batch::Live(live.clone()).placed().map(|(seq, _)| seq.0).collect()
}

/// What a follower of the topic is given: places and words.
fn given(backlog: &Backlog) -> Vec<(u64, String)> {
    let mut given = Vec::new();
    while let Some(Item::Batch(batch)) = backlog.try_take() {
        given.extend(batch.placed().map(|(seq, event)| match event {
            Event::TextDelta(delta) => (seq.0, delta.delta.clone()),
            other => panic!("{other:?}"),
        }));
    }
    given
}

#[test]
fn two_nodes_that_stream_at_once_give_different_numbers_which_only_grow() {
    let runs = [RunId::from_bytes([1; 16]), RunId::from_bytes([2; 16])];
    let mut nodes = [topic_at(5), topic_at(5)];
    let followers = nodes.each_mut().map(|node| node.register(LIMITS).backlog);
    let mut publish = |lane: u8, word: &str| {
        let at = usize::from(lane);
        nodes[at].publish(lane, runs[at], Time(0), words(word)).unwrap()
    };
    // Neither has heard of the other yet.
    let sent = [
        publish(0, "ab"),
        publish(1, "xyz"),
        publish(0, "c"),
        publish(1, "w"),
    ];
    let mut numbers: Vec<u64> = sent.iter().flat_map(places).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 7, "{numbers:?}");
    assert!(numbers.iter().all(|number| Seq(*number).index() == 5));
    for live in &sent {
        nodes[usize::from(live.run == runs[0])].receive(live, false);
    }
    let told = followers.each_ref().map(|backlog| given(backlog));
    assert_eq!(
        told[0].iter().map(|(_, word)| word.as_str()).collect::<String>(),
        "abcxyzw"
    );
    assert_eq!(
        told[1].iter().map(|(_, word)| word.as_str()).collect::<String>(),
        "xyzwabc"
    );
    for told in &told {
        assert!(told.is_sorted_by(|a, b| a.0 < b.0), "{told:?}");
    }
}

#[test]
fn what_was_published_before_a_commit_and_heard_after_it_stands_after_it() {
    let run = RunId::from_bytes([1; 16]);
    let (mut here, mut there) = (topic_at(5), topic_at(5));
    let live = here.publish(3, run, Time(0), words("a")).unwrap();
    there.advance(Seq::durable(6), None);
    let follower = there.register(LIMITS).backlog;
    there.receive(&live, false);
    let place = given(&follower)[0].0;
    assert!(Seq(place) > Seq::durable(6) && Seq(place).index() == 6);
    assert_eq!(place % Seq::LANES, 3, "it keeps its lane");
}

#[test]
fn a_step_has_room_for_tens_of_thousands_of_events_and_never_reaches_the_next_durable_place() {
    let mut topic = topic_at(5);
    let run = RunId::from_bytes([1; 16]);
    let lane = (Seq::LANES - 1) as u8;
    let mut last = Seq(0);
    let mut count = 0;
    while let Some(live) = topic.publish(lane, run, Time(0), words("a")) {
        last = live.first;
        count += 1;
    }
    assert!(count > 50_000, "{count}");
    assert!(last < Seq::durable(6));
    topic.advance(Seq::durable(6), None);
    assert!(
        topic.publish(lane, run, Time(0), words("a")).is_some(),
        "room again"
    );
}

#[test]
fn a_burst_of_two_thousand_small_batches_waits_for_a_reader_and_large_ones_cut_it() {
    let mut topic = topic_at(5);
    let run = RunId::from_bytes([1; 16]);
    let follower = topic.register(LIMITS).backlog;
    for _ in 0..2_000 {
        topic.publish(0, run, Time(0), words("a")).unwrap();
    }
    assert_eq!(given(&follower).len(), 2_000);
    let large = || {
        vec![Event::from(TextDelta {
            id: "1.0".into(),
            delta: "x".repeat(LIMITS.bytes / 2),
        })]
    };
    for _ in 0..3 {
        topic.publish(0, run, Time(0), large()).unwrap();
    }
    assert!(given(&follower).is_empty(), "it is cut");
}

#[test]
fn the_ring_of_a_step_is_bounded_in_bytes_and_its_room_comes_back() {
    let totals = Arc::new(Totals::default());
    let mut topic = Topic::new(totals.clone());
    topic.add_driver();
    topic.at_least(Seq::durable(1));
    let run = RunId::from_bytes([1; 16]);
    let large = || {
        vec![Event::from(TextDelta {
            id: "1.0".into(),
            delta: "x".repeat(1 << 20),
        })]
    };
    for _ in 0..(2 * RING_BYTES_MAX) >> 20 {
        topic.publish(0, run, Time(0), large()).unwrap();
    }
    assert!(topic.ring_bytes <= RING_BYTES_MAX);
    assert_eq!(totals.rings.load(Ordering::Relaxed), topic.ring_bytes);
    topic.forget(run);
    assert_eq!(totals.rings.load(Ordering::Relaxed), 0);
    topic.publish(0, run, Time(0), large()).unwrap();
    drop(topic);
    assert_eq!(totals.rings.load(Ordering::Relaxed), 0);
}
