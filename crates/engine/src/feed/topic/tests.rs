use toolgate_kernel::event::TextDelta;

use super::*;

fn words(word: &str) -> Vec<Event> {
    let delta = |part: char| TextDelta {
        id: "1.0".into(),
        delta: part.into(),
    };
    word.chars().map(|part| delta(part).into()).collect()
}

fn topic_at(index: u64) -> Topic {
    let mut topic = Topic::default();
    topic.add_driver();
    topic.at_least(Seq::durable(index));
    topic
}

fn places(live: &Arc<Live>) -> Vec<u64> {
    Batch::Live(live.clone()).placed().map(|(seq, _)| seq.0).collect()
}

/// What a follower of the topic is given: places and words.
fn given(receiver: &mut mpsc::Receiver<Item>) -> Vec<(u64, String)> {
    let mut given = Vec::new();
    while let Ok(Item::Batch(batch)) = receiver.try_recv() {
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
    let mut followers = nodes.each_mut().map(|node| node.register(100).receiver);
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
    let told = followers.each_mut().map(given);
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
    let mut follower = there.register(10).receiver;
    there.receive(&live, false);
    let place = given(&mut follower)[0].0;
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
