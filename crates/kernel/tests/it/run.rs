//! The run machine: one outcome per call whatever the order of arrivals.

use std::time::Duration;

use serde_json::json;
use toolgate_kernel::call::{CallState, ErrorCode, Outcome};
use toolgate_kernel::event::{
    ChildCall, ChildStatus, Claim, ContextCut, Event, Seq, Status, ToolInputAvailable, ToolOutputAvailable,
    ToolRef, Usage,
};
use toolgate_kernel::id::{ApprovalId, CallId, EntityId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Message;
use toolgate_kernel::run::{Arrival, Due, Rejected, Reply, Verdict};
use toolgate_kernel::tool::{Decider, Placement};
use uuid::Uuid;

use crate::story::{START, Story, asks_for, handle, message, test_agent};

fn codes(events: &[Event]) -> Vec<ErrorCode> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::ToolOutputError(e) => e.code,
            _ => None,
        })
        .collect()
}

#[test]
fn the_pipeline_refuses_in_its_order() {
    let mut story = Story::begin(&test_agent());
    let reply = asks_for(&[
        ("nothing", "{}"),
        ("strict", "{}"),
        ("strict", "{broken"),
        ("after", "{}"),
        ("granted", "{}"),
        ("strict", r#"{"n":1}"#),
        ("strict", r#"{"n":1}"#),
    ]);
    let events = story.take(Arrival::Reply(reply)).unwrap();
    use ErrorCode::*;
    let expected = [
        NotFound,
        ValidationFailed,
        ValidationFailed,
        PrerequisitesNotMet,
        PermissionDenied,
        LimitExceeded,
    ];
    assert_eq!(codes(&events), expected);
    assert!(matches!(story.run.due()[..], [Due::Call(_)]));
}

#[test]
fn a_reply_that_only_fails_is_told_to_the_model_at_once() {
    let mut story = Story::begin(&test_agent());
    let events = story
        .take(Arrival::Reply(asks_for(&[("nothing", "{}")])))
        .unwrap();
    assert!(
        matches!(events.last(), Some(Event::StepStart(e)) if e.step == 2),
        "{events:?}"
    );
}

#[test]
fn steps_end_at_the_limit_and_a_new_message_gives_new_ones() {
    let mut story = Story::begin(&test_agent());
    for _ in 0..3 {
        story
            .take(Arrival::Reply(asks_for(&[("nothing", "{}")])))
            .unwrap();
    }
    story.take(Arrival::Message(message(1))).unwrap();
    story
        .take(Arrival::Reply(asks_for(&[("nothing", "{}")])))
        .unwrap();
    assert_eq!(story.run.status(), Status::Running);
    for _ in 0..4 {
        story
            .take(Arrival::Reply(asks_for(&[("nothing", "{}")])))
            .unwrap();
    }
    assert_eq!(story.run.status(), Status::Completed);
}

#[test]
fn a_run_works_for_nobody_once_a_message_has_no_sender() {
    let mut story = Story::begin(&test_agent());
    let ada = EntityId::new(Uuid::from_u128(7));
    let signed = Message {
        from: Some(ada),
        sender: None,
        ..message(1)
    };
    let next = |story: &mut Story| {
        let reply = Arrival::Reply(asks_for(&[("nothing", "{}")]));
        story.take(reply).unwrap();
    };
    story.take(Arrival::Message(signed)).unwrap();
    assert_eq!(
        story.run.speaker(),
        None,
        "the model writes for whoever spoke before"
    );
    next(&mut story);
    assert_eq!(story.run.speaker(), Some(ada));
    // A plan's message that joins the run must not be carried out with the grants of whoever spoke before, and hers not
    // with those of whoever speaks after her.
    story.take(Arrival::Message(message(2))).unwrap();
    assert_eq!(story.run.speaker(), Some(ada));
    next(&mut story);
    assert_eq!(story.run.speaker(), None);
}

#[test]
fn a_step_that_breaks_is_tried_again_and_then_given_up() {
    let mut story = Story::begin(&test_agent());
    let broke = || Arrival::Broke {
        step: 0,
        failures: 0,
        error: "cut".into(),
        retryable: true,
        retry_after: None,
    };
    for _ in 0..2 {
        story.take(broke()).unwrap();
        assert_eq!(story.run.status(), Status::Running);
    }
    story.take(broke()).unwrap();
    assert_eq!(story.run.status(), Status::Failed);
}

#[test]
fn a_reply_that_was_taken_is_not_taken_for_the_next_step() {
    let mut story = Story::begin(&test_agent());
    let first = Reply {
        step: 1,
        ..asks_for(&[("nothing", "{}")])
    };
    story.run.take(Arrival::Reply(first.clone()), START).unwrap();
    assert_eq!(story.run.step(), 2);
    assert_eq!(
        story.run.take(Arrival::Reply(first), START),
        Err(Rejected::OutOfTurn)
    );
}

#[test]
fn of_a_tool_on_the_gateways_side_a_client_learns_nothing() {
    let mut story = Story::begin(&test_agent());
    story
        .take(Arrival::Reply(asks_for(&[("server", "{}"), ("client", "{}")])))
        .unwrap();
    let call = story.run.calls()[0].tool.call;
    let outcome = Outcome::error(ErrorCode::ExecutionFailed, "inner words");
    story
        .take(Arrival::Output {
            call,
            leg: 0,
            outcome: outcome.clone(),
            log: None,
        })
        .unwrap();
    let claim = Claim {
        holder: "h".into(),
        until: START,
        by: None,
    };
    let arrivals = [
        Arrival::Claim { call, claim },
        Arrival::Release {
            call,
            holder: "h".into(),
            by: None,
        },
        Arrival::Result {
            call,
            outcome,
            by: None,
        },
    ];
    for arrival in arrivals {
        assert_eq!(story.take(arrival), Err(Rejected::NotAClientCall));
    }
    let approval = ApprovalId {
        run: call.run,
        number: call.number,
    };
    let decide = Arrival::Decide {
        approval,
        verdict: Verdict::Deny(None),
        remember: None,
        by: Box::new(Decider::Backend),
    };
    assert_eq!(story.take(decide), Err(Rejected::Unknown));
}

#[test]
fn crashes_do_not_use_up_the_attempts_of_a_step() {
    let mut story = Story::begin(&test_agent());
    for _ in 0..20 {
        story.take(Arrival::Recovered).unwrap();
    }
    assert_eq!(story.run.status(), Status::Running);
}

#[test]
fn a_pause_lasts_until_its_moment_or_its_signal() {
    let mut story = Story::begin(&test_agent());
    story
        .take(Arrival::Reply(asks_for(&[("nap", "{}"), ("bell", "{}")])))
        .unwrap();
    assert_eq!(story.run.status(), Status::WaitingTime);
    assert!(story.run.due().is_empty(), "it costs nothing while it waits");
    assert_eq!(story.run.wake_at(), Some(START.after(Duration::from_secs(10))));
    let bell = CallId {
        run: story.run.id(),
        number: 1,
    };
    let ring = |value: &str| Arrival::Signal {
        call: bell,
        value: Json::from(json!(value)),
    };
    story.take(ring("now")).unwrap();
    assert_eq!(story.take(ring("now")), Err(Rejected::Repeated));
    assert_eq!(story.take(ring("again")), Err(Rejected::Different));
    let nap = CallId {
        run: story.run.id(),
        number: 0,
    };
    let rung = Arrival::Signal {
        call: nap,
        value: Json::null(),
    };
    assert_eq!(
        story.take(rung),
        Err(Rejected::Unknown),
        "it waits for its moment alone"
    );
    story.now = START.after(Duration::from_secs(10));
    story.take(Arrival::Tick).unwrap();
    assert_eq!(story.run.status(), Status::Running, "the next step");
}

#[test]
fn a_delegated_call_is_not_due_and_ends_by_its_output_or_its_timeout() {
    for to in [0, 1] {
        let mut story = Story::begin(&test_agent());
        story
            .take(Arrival::Reply(asks_for(&[("child", "{}"), ("child", "{}")])))
            .unwrap();
        let calls = [0, 1].map(|number| CallId {
            run: story.run.id(),
            number,
        });
        for call in calls {
            let delegated = Arrival::Delegated {
                call,
                leg: 0,
                handle: handle(to),
                check_at: None,
                child: None,
                questions: Vec::new(),
            };
            let told = story.take(delegated.clone()).unwrap();
            let Event::ToolExecuting(told) = &told[0] else {
                panic!("{told:?}")
            };
            assert_eq!((told.child.is_some(), told.task.is_some()), (to == 0, to == 1));
            assert_eq!(story.run.status(), Status::Running, "users see that it goes on");
        }
        assert!(story.run.due().is_empty(), "it costs nothing while it waits");
        assert_eq!(story.run.delegated().count(), 2);
        story.take(Arrival::Recovered).unwrap();
        assert_eq!(story.run.delegated().count(), 2, "a crash does not interrupt it");
        let timeout = story.run.calls()[0].definition.as_ref().unwrap().timeout;
        assert_eq!(story.run.wake_at(), Some(START.after(timeout)));
        let output = Arrival::Output {
            call: calls[0],
            leg: 1,
            outcome: Outcome::Output(Json::null()),
            log: None,
        };
        story.take(output).unwrap();
        story.now = START.after(timeout);
        story.take(Arrival::Tick).unwrap();
        let CallState::Settled(settled) = &story.run.calls()[1].state else {
            panic!("{:?}", story.run)
        };
        assert!(matches!(
            settled.outcome,
            Outcome::Error {
                code: ErrorCode::Timeout,
                ..
            }
        ));
        assert!(matches!(story.run.due()[..], [Due::Ask { .. }]));
    }
}

#[test]
fn a_task_may_be_asked_after_many_times_within_the_timeout_of_its_call() {
    let mut story = Story::begin(&test_agent());
    story.take(Arrival::Reply(asks_for(&[("server", "{}")]))).unwrap();
    let call = CallId {
        run: story.run.id(),
        number: 0,
    };
    let timeout = story.run.calls()[0].definition.as_ref().unwrap().timeout;
    let ask = |leg, to, check_at| Arrival::Delegated {
        call,
        leg,
        handle: handle(to),
        check_at: Some(check_at),
        child: None,
        questions: Vec::new(),
    };
    let poll = Duration::from_secs(1);
    story.take(ask(0, 1, START.after(poll))).unwrap();
    assert_eq!(story.run.wake_at(), Some(START.after(poll)));
    story.now = START.after(poll);
    assert_eq!(
        story.take(Arrival::Tick),
        Ok(Vec::new()),
        "whoever drives it asks"
    );
    story.take(ask(1, 1, START.after(timeout * 2))).unwrap();
    assert_eq!(
        story.run.wake_at(),
        Some(START.after(timeout)),
        "asking after it does not put the end off"
    );
    let other = ask(2, 2, START.after(poll));
    assert_eq!(story.take(other), Err(Rejected::OutOfTurn), "of another task");
    let late = ask(1, 1, START.after(poll));
    assert_eq!(
        story.take(late),
        Err(Rejected::OutOfTurn),
        "of a look that is out of date"
    );
    story.now = START.after(timeout);
    story.take(Arrival::Tick).unwrap();
    assert!(matches!(story.run.calls()[0].state, CallState::Settled(_)));
}

#[test]
fn the_time_in_which_a_child_run_waits_for_people_is_not_its_calls_time() {
    let mut story = Story::begin(&test_agent());
    story.take(Arrival::Reply(asks_for(&[("child", "{}")]))).unwrap();
    let call = story.run.calls()[0].tool.call;
    let timeout = story.run.calls()[0].definition.as_ref().unwrap().timeout;
    let legs = std::cell::Cell::new(0);
    let stands = |child| Arrival::Delegated {
        call,
        leg: legs.replace(legs.get() + 1),
        handle: handle(0),
        check_at: None,
        child,
        questions: Vec::new(),
    };
    let at = |status, seq| {
        Some(ChildStatus {
            status,
            seq: Seq(seq),
        })
    };
    let asked = ToolRef {
        call: CallId {
            run: RunId::new(Uuid::from_u128(9)),
            number: 0,
        },
        name: "client".into(),
        placement: Placement::Client,
        shown: false,
        offered_to: None,
        given_name: None,
    };
    fn below(event: impl Into<Event>) -> Event {
        Event::from(ChildCall {
            ignorable: true,
            agent: "other".parse().unwrap(),
            child_run_id: RunId::new(Uuid::from_u128(9)),
            event: Box::new(event.into()),
        })
    }
    story.take(stands(None)).unwrap();
    let worked = timeout / 4;
    story.now = START.after(worked);
    story.hear(vec![below(ToolInputAvailable::of(
        &asked,
        Some(Json::null()),
        Some(START.after(timeout * 9)),
        None,
        None,
        None,
    ))]);
    story.take(stands(at(Status::WaitingTool, 1))).unwrap();
    assert_eq!(story.run.status(), Status::WaitingTool);
    assert_eq!(story.run.wake_at(), None, "people have deadlines of their own");
    story.now = START.after(timeout * 3);
    assert_eq!(story.take(Arrival::Tick), Ok(Vec::new()));
    let told = story.take(stands(at(Status::WaitingApproval, 2))).unwrap();
    assert!(
        matches!(&told[..], [Event::ToolExecuting(_), Event::RunStatus(e)] if e.status == Status::WaitingApproval),
        "{told:?}"
    );
    let told = story.take(stands(at(Status::WaitingApproval, 3))).unwrap();
    assert_eq!(told.len(), 2, "the next question is told as well: {told:?}");
    story.now = START.after(timeout * 5);
    story.hear(vec![below(ToolOutputAvailable::of(
        &asked,
        Some(Json::null()),
        None,
        None,
        None,
    ))]);
    assert_eq!(
        story.run.status(),
        Status::Running,
        "what is answered is no longer waited for, whatever the last look at the child run has found"
    );
    story.take(stands(at(Status::Running, 4))).unwrap();
    assert_eq!(story.run.status(), Status::Running);
    assert_eq!(story.run.wake_at(), Some(story.now.after(timeout - worked)));
}

#[test]
fn a_cut_that_is_stored_is_not_stored_again_until_more_was_said() {
    let mut story = Story::begin(&test_agent());
    let cut = |result_bytes| {
        Arrival::Cut(Box::new(ContextCut {
            agent: "tester".parse().unwrap(),
            from: Seq::durable(1),
            told: 0,
            result_bytes: Some(result_bytes),
            summary: Some("before".into()),
            usage: Some(Usage {
                input_tokens: 100,
                ..Usage::default()
            }),
        }))
    };
    assert_eq!(story.take(cut(2_000)).unwrap().len(), 1);
    // Its write timed out and was done: whoever reads the run again takes the same cut once more.
    assert_eq!(story.take(cut(2_000)), Err(Rejected::OutOfTurn));
    assert_eq!(story.replayed().usage().input_tokens, 100);
    // A harder one is another cut, and the same one cuts again what was said since.
    assert_eq!(story.take(cut(400)).unwrap().len(), 1);
    story.take(Arrival::Reply(asks_for(&[("safe", "{}")]))).unwrap();
    let call = story.run.calls()[0].tool.call;
    let outcome = Outcome::Output(Json::null());
    story
        .take(Arrival::Output {
            call,
            leg: 0,
            outcome,
            log: None,
        })
        .unwrap();
    assert_eq!(story.take(cut(400)).unwrap().len(), 1);
}
