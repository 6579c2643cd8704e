//! Anything that was written is read as the same, in either dialect, and across them.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_a2a::Dialect;
use toolgate_a2a::number::repaired;
use toolgate_a2a::request::SendMessage;
use toolgate_a2a::stream::StreamResponse;
use toolgate_a2a::task::Task;

use crate::values;

proptest! {
    #[test]
    fn an_event_is_read_as_it_was_written(
        (dialect, event) in values::dialect().prop_flat_map(|dialect| (Just(dialect), values::event(dialect)))
    ) {
        let written = event.to_json(dialect);
        let read = StreamResponse::from_json(written.clone(), dialect).expect("what was written is valid");
        prop_assert_eq!(&read, &event);
        prop_assert_eq!(read.to_json(dialect), written);
    }

    #[test]
    fn a_request_is_read_as_it_was_written(
        (dialect, message) in values::dialect().prop_flat_map(|dialect| (Just(dialect), values::message(dialect)))
    ) {
        let request = SendMessage::new(message);
        let written = request.to_json(dialect);
        let read = SendMessage::from_json(written.clone(), dialect).expect("what was written is valid");
        prop_assert_eq!(&read, &request);
        prop_assert_eq!(read.to_json(dialect), written);
    }

    /// What 0.3 can say is said by 1.0 too: a task that took the way through both dialects is the same.
    #[test]
    fn a_task_survives_the_way_through_both_dialects(task in values::task(Dialect::V03)) {
        let old = Task::from_json(task.to_json(Dialect::V03), Dialect::V03).expect("valid in 0.3");
        let new = Task::from_json(old.to_json(Dialect::V1), Dialect::V1).expect("valid in 1.0");
        prop_assert_eq!(&new, &task);
        prop_assert_eq!(new.to_json(Dialect::V03), task.to_json(Dialect::V03));
    }

    /// What protobuf does to a value is undone where it lost nothing.
    #[test]
    fn whole_doubles_become_integers_again(value in values::value()) {
        prop_assert_eq!(repaired(as_protobuf(&value)), exact(&value));
    }
}

/// Every number as a double.
fn as_protobuf(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().expect("a number of JSON")),
        Value::Array(items) => items.iter().map(as_protobuf).collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), as_protobuf(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// The value with those integers as doubles that a double cannot hold.
fn exact(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(whole) if whole.unsigned_abs() < 1 << 53 => json!(whole),
            _ => json!(number.as_f64().expect("a number of JSON")),
        },
        Value::Array(items) => items.iter().map(exact).collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), exact(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}
