//! Hostile input: nothing panics, and everything that is wrong is named by its path.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_a2a::card::AgentCard;
use toolgate_a2a::error::Error;
use toolgate_a2a::push::PushConfig;
use toolgate_a2a::request::{GetTask, ListTasks, PushConfigOf, SendMessage, TaskById};
use toolgate_a2a::stream::StreamResponse;
use toolgate_a2a::task::Task;
use toolgate_a2a::{Dialect, rpc};

use crate::values;

fn read_everything(value: &Value) {
    for dialect in [Dialect::V1, Dialect::V03] {
        if let Ok(read) = Task::from_json(value.clone(), dialect) {
            read.to_json(dialect);
        }
        if let Ok(read) = StreamResponse::from_json(value.clone(), dialect) {
            read.to_json(dialect);
        }
        if let Ok(read) = SendMessage::from_json(value.clone(), dialect) {
            read.to_json(dialect);
        }
        if let Ok(read) = PushConfig::from_json(value.clone(), dialect) {
            read.to_json(dialect);
        }
        if let Ok(read) = PushConfigOf::from_json(value.clone(), dialect) {
            read.to_json(dialect);
        }
    }
    if let Ok(read) = AgentCard::from_json(value.clone()) {
        read.to_hybrid_json();
    }
    let _ = (
        GetTask::from_json(value.clone()),
        ListTasks::from_json(value.clone()),
    );
    let _ = (
        TaskById::from_json(value.clone()),
        rpc::Request::from_json(value.clone()),
    );
    let _ = rpc::response(value.clone());
    Error::from_rpc(value).to_rpc();
    Error::from_rest(400, value).to_rest();
}

/// A valid event with one value of it, anywhere, replaced by something else.
fn broken() -> impl Strategy<Value = Value> {
    let event = values::dialect()
        .prop_flat_map(|dialect| values::event(dialect).prop_map(move |event| event.to_json(dialect)));
    (event, values::value(), any::<prop::sample::Index>()).prop_map(|(mut event, other, index)| {
        let mut left = index.index(count(&event));
        replace(&mut event, &mut left, &other);
        event
    })
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0_usize,
    }
}

fn replace(value: &mut Value, left: &mut usize, other: &Value) {
    if *left == 0 {
        *value = other.clone();
    }
    *left = left.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, left, other)),
        Value::Object(members) => members.values_mut().for_each(|item| replace(item, left, other)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn no_value_makes_anything_panic(value in values::value()) {
        read_everything(&value);
    }

    #[test]
    fn no_broken_event_makes_anything_panic(value in broken()) {
        read_everything(&value);
        let wrapped = json!({"message": value.clone(), "configuration": value});
        read_everything(&wrapped);
    }
}

fn check(request: Value, expected: &[&str]) {
    let invalid = SendMessage::from_json(request, Dialect::V1).expect_err("something is wrong");
    let fields: Vec<_> = invalid
        .0
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(fields, expected);
}

#[test]
fn every_wrong_field_is_named() {
    check(json!({}), &["message"]);
    check(json!([]), &["body", "message"]);
    check(
        json!({"message": {"parts": []}}),
        &["message.messageId", "message.role", "message.parts"],
    );
    check(
        json!({"message": {"messageId": "m", "role": "user", "parts": [{"text": "a", "url": "b"}, {}, {"raw": "%"}]}}),
        &[
            "message.role",
            "message.parts[0]",
            "message.parts[1]",
            "message.parts[2].raw",
            "message.parts[2]",
        ],
    );
    check(
        json!({
            "message": {"messageId": 1, "role": "ROLE_USER", "parts": [{"text": "a"}], "extensions": [3]},
            "configuration": {"historyLength": -1, "returnImmediately": "yes"},
        }),
        &[
            "message.messageId",
            "message.extensions[0]",
            "configuration.returnImmediately",
            "configuration.historyLength",
        ],
    );
}
