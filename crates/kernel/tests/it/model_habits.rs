//! Inputs as a small model really writes them, and what it is told when they do not fit.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_kernel::agent::{self, Agent};
use toolgate_kernel::call::CallState;
use toolgate_kernel::event::Event;
use toolgate_kernel::prompt::Turn;
use toolgate_kernel::run::Arrival;

use crate::agent::{catalog, defaults};
use crate::story::{Story, asks_for};

fn habits_agent() -> Arc<Agent> {
    let search = json!({"type": "object", "required": ["topic"], "properties": {
        "topic": {"type": "string"}, "query": {"type": "string", "minLength": 1},
        "at": {"type": "string", "format": "date-time"},
    }});
    let config = json!({"instructions": "test", "tools": [
        {"name": "search", "description": "d", "executionType": "prebuilt", "execution": {"action": "any"}, "parameters": search},
        {"name": "mirror", "description": "d", "executionType": "basic", "execution": {"mode": "pass-through"}},
        {"name": "after", "description": "d", "executionType": "basic", "prerequisites": ["search"], "execution": {"mode": "pass-through"}},
        {"name": "strict", "description": "d", "executionType": "basic", "execution": {"mode": "pass-through"},
         "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
        {"name": "create_order", "description": "d", "executionType": "basic", "approval": "always"},
        {"name": "refund", "description": "d", "executionType": "basic", "approval": "always", "parameters": {
            "type": "object", "properties": {"orderId": {"type": "string", "pattern": "^[A-Z]-[0-9]+$"}}}},
        {"name": "wait", "description": "d", "executionType": "waiting"},
    ]});
    let catalog = catalog(&["any"]);
    Arc::new(agent::parse(&"tester".parse().unwrap(), &config, &defaults(&catalog)).unwrap())
}

/// What the model reads after these calls, which all fail.
fn told(calls: &[(&str, &str)]) -> Vec<Value> {
    let mut story = Story::begin(&habits_agent());
    story.take(Arrival::Reply(asks_for(calls))).unwrap();
    let turns = story.run.turns();
    let Some(Turn::Results(results)) = turns.last().map(AsRef::as_ref) else {
        panic!("no results: {turns:?}");
    };
    assert!(results.iter().all(|result| result.is_error));
    results.iter().map(|result| result.output.to_value()).collect()
}

/// Input of a call after it was read.
fn taken(tool: &str, input: Value) -> Value {
    let mut story = Story::begin(&habits_agent());
    let events = story
        .take(Arrival::Reply(asks_for(&[(tool, &input.to_string())])))
        .unwrap();
    let refused = events
        .iter()
        .find(|event| matches!(event, Event::ToolOutputError(_)));
    assert!(refused.is_none(), "{refused:?}");
    story.run.calls()[0].input().to_value()
}

#[test]
fn a_model_reads_errors_as_text_that_ends_with_the_next_call() {
    let told = told(&[
        ("nothing", "{}"),
        ("strict", "{}"),
        ("after", "{}"),
        ("strict", "{"),
    ]);
    assert_eq!(
        told[0],
        "Error: there is no tool named \"nothing\". Call one of these: after, create_order, mirror, refund, \
         search, strict, wait."
    );
    assert_eq!(
        told[1],
        "Error: Missing required parameter: n. Call strict again with this corrected."
    );
    assert_eq!(
        told[2],
        "Error: after needs a successful call of search first. Call search, then call after again."
    );
    let malformed = told[3].as_str().unwrap();
    assert!(
        malformed.starts_with("Error: the arguments are not JSON")
            && malformed.ends_with("Call strict again with this corrected."),
        "{malformed}"
    );
}

#[test]
fn an_event_keeps_the_code_of_an_error_that_a_model_reads_as_text() {
    let mut story = Story::begin(&habits_agent());
    let events = story.take(Arrival::Reply(asks_for(&[("strict", "{}")]))).unwrap();
    let error = events.iter().find_map(|event| match event {
        Event::ToolOutputError(e) => Some((json!(e.code), e.error_text.clone())),
        _ => None,
    });
    let expected = (
        json!("VALIDATION_FAILED"),
        Some("Missing required parameter: n".into()),
    );
    assert_eq!(error, Some(expected));
}

#[test]
fn empty_text_and_null_for_an_optional_member_are_as_if_left_out() {
    let blank = json!({"topic": "", "query": "", "at": null});
    assert_eq!(taken("search", blank), json!({"topic": ""}));
    // The gateway does not know what an empty text means to a tool of others.
    let blank = json!({"query": "", "at": null});
    assert_eq!(taken("mirror", blank.clone()), blank);
    assert_eq!(
        taken("wait", json!({"seconds": 5, "until": ""})),
        json!({"seconds": 5})
    );
}

#[test]
fn a_wait_takes_one_moment_that_is_still_to_come() {
    // It is 2027-01-15T08:00:00Z.
    let both = json!({"seconds": 600, "until": "2023-04-02T09:00:00Z"});
    let mut story = Story::begin(&habits_agent());
    story
        .take(Arrival::Reply(asks_for(&[("wait", &both.to_string())])))
        .unwrap();
    let CallState::Paused(pause) = &story.run.calls()[0].state else {
        panic!("{:?}", story.run.calls()[0].state);
    };
    assert_eq!(
        (pause.until.to_string().as_str(), pause.signal),
        ("2027-01-15T08:10:00.000Z", false)
    );
    taken("wait", json!({"seconds": 600, "until": "2027-01-15T08:10:00Z"}));
    taken("wait", json!({"until": "2027-01-15T07:59:59Z"}));
    let told = told(&[
        ("wait", r#"{"until":"2023-04-02T09:00:00Z"}"#),
        ("wait", r#"{"seconds":600,"until":"2027-01-16T08:00:00Z"}"#),
    ]);
    assert_eq!(
        told[0],
        "Error: \"until\" is over: 2023-04-02T09:00:00.000Z. Today is Friday 2027-01-15, tomorrow is Saturday \
         2027-01-16. Call wait again with the right day."
    );
    assert_eq!(
        told[1],
        "Error: \"seconds\" and \"until\" name two moments. Call wait again with seconds alone, without until."
    );
}

// 10. Invents contacts; 11. bends a value to the pattern. Both fit the schema: only a person can see that they are wrong.
#[test]
fn what_a_model_makes_up_within_the_schema_is_shown_to_whoever_approves() {
    for (tool, input) in [
        ("create_order", json!({"customer": {"email": "tom@example.com"}})),
        ("refund", json!({"orderId": "A-7788"})),
    ] {
        let mut story = Story::begin(&habits_agent());
        let asks = asks_for(&[(tool, &input.to_string())]);
        story.take(Arrival::Reply(asks)).unwrap();
        let call = &story.run.calls()[0];
        assert!(
            matches!(call.state, CallState::AwaitsApproval { .. }),
            "{:?}",
            call.state
        );
        assert_eq!(call.input().to_value(), input);
    }
    let told = told(&[("refund", r#"{"orderId":"7788"}"#)]);
    assert!(
        told[0]
            .as_str()
            .unwrap()
            .ends_with("Call refund again with this corrected."),
        "{told:?}"
    );
}
