//! A run that is one call, which somebody asked for and no model wrote.

use serde_json::json;
use toolgate_kernel::call::{CallState, ErrorCode, Outcome};
use toolgate_kernel::event::{CallRequest, EndReason, Event, Status};
use toolgate_kernel::history::Before;
use toolgate_kernel::id::{EntityId, MessageId};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::run::{Arrival, Due, Rejected, Verdict};
use toolgate_kernel::tool::Decider;
use uuid::Uuid;

use crate::story::{Story, asks_for, test_agent};

fn person() -> EntityId {
    EntityId::new(Uuid::from_u128(3))
}

/// A run of this call, in its only step: what the engine writes for the model that is not there.
fn begin(tool: &str, input: &str) -> Story {
    let request = CallRequest {
        tool_name: tool.parse().unwrap(),
        input: Some(Json::parse(input.into()).unwrap()),
        from: Some(person()),
        sender: None,
    };
    let mut story = Story::begin_call(&test_agent(), request);
    assert!(matches!(story.run.due()[..], [Due::Ask { step: 1, .. }]));
    assert_eq!(story.run.speaker(), Some(person()));
    let request = story.run.request().unwrap().clone();
    let (tool, input) = (
        request.tool_name.as_str(),
        request.input.as_ref().unwrap().as_str(),
    );
    story.take(Arrival::Reply(asks_for(&[(tool, input)]))).unwrap();
    story
}

/// How the run ended: it has, nothing more is due, and its log says the same.
fn end(story: &Story) -> (Status, EndReason, Option<String>) {
    let end = story.run.state().end().expect("it has ended").clone();
    assert!(story.run.due().is_empty());
    assert_eq!(story.run.step(), 1, "no other step began");
    assert_eq!(format!("{:?}", story.replayed()), format!("{:?}", story.run));
    story.check_readers();
    (end.status, end.reason, end.error)
}

fn output(story: &Story, outcome: Outcome) -> Arrival {
    let call = story.run.calls()[0].tool.call;
    Arrival::Output {
        call,
        leg: 0,
        outcome,
        log: None,
    }
}

#[test]
fn the_run_ends_as_its_call_does() {
    let mut story = begin("server", "{}");
    assert!(matches!(story.run.due()[..], [Due::Call(_)]));
    let done = output(&story, Outcome::Output(json!(7).into()));
    story.take(done).unwrap();
    assert_eq!(end(&story), (Status::Completed, EndReason::Stop, None));

    let mut story = begin("server", "{}");
    let failed = output(&story, Outcome::error(ErrorCode::ExecutionFailed, "no luck"));
    story.take(failed).unwrap();
    let error = Some("EXECUTION_FAILED: no luck".to_owned());
    assert_eq!(end(&story), (Status::Failed, EndReason::ToolError, error));
}

#[test]
fn what_the_pipeline_refuses_ends_the_run_at_once() {
    for (tool, input, code) in [
        ("strict", "{}", ErrorCode::ValidationFailed),
        ("after", "{}", ErrorCode::PrerequisitesNotMet),
        ("granted", "{}", ErrorCode::PermissionDenied),
        ("nothing", "{}", ErrorCode::NotFound),
    ] {
        let story = begin(tool, input);
        let (status, reason, error) = end(&story);
        assert_eq!((status, reason), (Status::Failed, EndReason::ToolError), "{tool}");
        assert!(error.unwrap().starts_with(code.as_str()), "{tool}");
    }
}

#[test]
fn people_and_clients_are_asked_as_in_any_run() {
    let mut story = begin("asked_client", "{}");
    assert_eq!(story.run.status(), Status::WaitingApproval);
    let call = story.run.calls()[0].tool.call;
    let decide = |verdict| Arrival::Decide {
        approval: call.approval(),
        verdict,
        remember: None,
        by: Box::new(Decider::Backend),
    };
    story.take(decide(Verdict::Approve(None))).unwrap();
    assert_eq!(story.run.status(), Status::WaitingTool);
    let outcome = Outcome::Output(json!("done").into());
    story
        .take(Arrival::Result {
            call,
            outcome,
            by: None,
        })
        .unwrap();
    assert_eq!(end(&story).0, Status::Completed);

    let mut story = begin("asked", "{}");
    story
        .take(decide(Verdict::Deny(Some("too dear".into()))))
        .unwrap();
    let (status, _, error) = end(&story);
    assert_eq!(
        (status, error.as_deref()),
        (Status::Failed, Some("DENIED: too dear"))
    );

    let mut story = begin("client", "{}");
    story.now = story.run.wake_at().unwrap();
    story.take(Arrival::Tick).unwrap();
    let (status, _, error) = end(&story);
    assert_eq!(status, Status::Failed);
    assert!(error.unwrap().starts_with("TIMEOUT"));
}

#[test]
fn a_crash_in_the_middle_is_the_same_as_in_any_run() {
    let started = |tool: &str| {
        let mut story = begin(tool, "{}");
        let call = story.run.calls()[0].tool.call;
        story.take(Arrival::Started { call }).unwrap();
        story.run = story.replayed();
        story.take(Arrival::Recovered).unwrap();
        story
    };
    let (status, _, error) = end(&started("server"));
    assert_eq!(status, Status::Failed);
    assert!(error.unwrap().starts_with("INTERRUPTED"));
    let story = started("safe");
    assert!(matches!(story.run.due()[..], [Due::Call(call)] if call.state == CallState::Executing));
}

#[test]
fn nobody_can_talk_to_it_and_it_can_be_cancelled() {
    let mut story = begin("client", "{}");
    let parts = vec![Part::Text { text: "hi".into() }];
    let said = Message::new(MessageId::new(Uuid::from_u128(9)), None, parts);
    assert_eq!(story.take(Arrival::Message(said)), Err(Rejected::OutOfTurn));
    story.take(Arrival::Cancel).unwrap();
    assert_eq!(end(&story).0, Status::Cancelled);
}

#[test]
fn it_is_no_part_of_the_conversation() {
    let mut story = begin("server", r#"{"secret": 1}"#);
    let done = output(&story, Outcome::Output(json!("secret").into()));
    story.take(done).unwrap();
    let events = story.log.iter().flat_map(|entry| &entry.events);
    assert!(events.clone().any(|event| matches!(event, Event::CallRequest(_))));
    let mut before = Before::new("tester".parse().unwrap(), None);
    story.log.iter().for_each(|entry| before.add(entry));
    assert_eq!(before.exchanges(), []);
}
