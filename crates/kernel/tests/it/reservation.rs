//! Client calls that are offered to the sender of the message first.

use std::time::Duration;

use serde_json::json;
use toolgate_kernel::call::{CallState, Outcome};
use toolgate_kernel::event::{Claim, Event};
use toolgate_kernel::id::CallId;
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Executor, Message, Sender};
use toolgate_kernel::run::{Arrival, Rejected};

use crate::story::{Story, asks_for, message, test_agent};

/// A message from a client that executes tools.
pub fn message_from(holder: &str, number: u128) -> Message {
    let executor = Executor {
        holder: holder.into(),
        tools: None,
    };
    Message {
        sender: Some(Sender {
            executor: Some(executor),
            ..Sender::default()
        }),
        ..message(number)
    }
}

fn begin_from(holder: &str) -> Story {
    let mut story = Story::begin(&test_agent());
    story.take(Arrival::Message(message_from(holder, 1))).unwrap();
    story
}

/// The model asks for a client call: its id, and for whom it is reserved. A replay reserves it for the same client.
fn call(story: &mut Story) -> (CallId, Option<String>) {
    story.run = story.replayed();
    story.take(Arrival::Reply(asks_for(&[("client", "{}")]))).unwrap();
    let call = story.run.calls().last().unwrap();
    let CallState::Open { claim, .. } = &call.state else {
        panic!("{:?}", call.state);
    };
    (call.tool.call, claim.as_ref().map(|claim| claim.holder.clone()))
}

fn claim(story: &mut Story, call: CallId, holder: &str, seconds: u64) -> Result<Vec<Event>, Rejected> {
    let claim = Claim {
        holder: holder.into(),
        until: story.now.after(Duration::from_secs(seconds)),
        by: None,
    };
    story.take(Arrival::Claim { call, claim })
}

fn result(story: &mut Story, call: CallId) {
    let outcome = Outcome::Output(Json::from(json!("done")));
    let by = None;
    story.take(Arrival::Result { call, outcome, by }).unwrap();
}

/// Passes the time until the reservation lapses.
fn lapse(story: &mut Story) {
    story.now = story.now.after(Duration::from_secs(5));
    let events = story.take(Arrival::Tick).unwrap();
    assert!(matches!(events[..], [Event::ToolReleased(_)]), "{events:?}");
}

const SENDER: Option<&str> = Some("sender");

#[test]
fn a_sender_that_is_gone_is_waited_for_once() {
    let mut story = begin_from("sender");
    let (first, reserved) = call(&mut story);
    assert_eq!(reserved.as_deref(), SENDER);
    assert!(matches!(
        claim(&mut story, first, "worker", 30),
        Err(Rejected::Held(_))
    ));
    lapse(&mut story);
    claim(&mut story, first, "worker", 30).unwrap();
    result(&mut story, first);
    for _ in 0..2 {
        let (next, reserved) = call(&mut story);
        assert_eq!(reserved, None);
        claim(&mut story, next, "worker", 30).unwrap();
        result(&mut story, next);
    }
}

#[test]
fn a_sender_that_claims_keeps_its_reservations() {
    let mut story = begin_from("sender");
    // Also with a lease that is shorter than the reservation.
    for seconds in [30, 5, 1] {
        let (call, reserved) = call(&mut story);
        assert_eq!(reserved.as_deref(), SENDER);
        claim(&mut story, call, "sender", seconds).unwrap();
        result(&mut story, call);
    }
}

#[test]
fn a_sender_that_gives_a_call_back_keeps_its_reservations() {
    let mut story = begin_from("sender");
    let (first, _) = call(&mut story);
    let release = Arrival::Release {
        call: first,
        holder: "sender".into(),
        by: None,
    };
    story.take(release).unwrap();
    claim(&mut story, first, "worker", 30).unwrap();
    result(&mut story, first);
    assert_eq!(call(&mut story).1.as_deref(), SENDER);
}

#[test]
fn nothing_is_reserved_after_another_executed_a_reserved_call() {
    // It posts a result, or claims the call after the reservation lapsed and before anybody was told.
    let mut story = begin_from("sender");
    let (first, _) = call(&mut story);
    result(&mut story, first);
    assert_eq!(call(&mut story).1, None);

    let mut story = begin_from("sender");
    let (first, _) = call(&mut story);
    story.now = story.now.after(Duration::from_secs(5));
    claim(&mut story, first, "worker", 30).unwrap();
    result(&mut story, first);
    assert_eq!(call(&mut story).1, None);
}

#[test]
fn a_sender_that_comes_back_has_its_reservations_again() {
    let mut story = begin_from("sender");
    let (first, _) = call(&mut story);
    lapse(&mut story);
    claim(&mut story, first, "sender", 30).unwrap();
    result(&mut story, first);
    let (second, reserved) = call(&mut story);
    assert_eq!(reserved.as_deref(), SENDER, "it claimed a call");
    lapse(&mut story);
    result(&mut story, second);
    story.take(Arrival::Message(message_from("sender", 2))).unwrap();
    assert_eq!(call(&mut story).1.as_deref(), SENDER, "it posted a message");
    story.take(Arrival::Message(message_from("another", 3))).unwrap();
    assert_eq!(call(&mut story).1.as_deref(), Some("another"));
}
