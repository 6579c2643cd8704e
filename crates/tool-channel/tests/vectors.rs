//! The shared vectors, as Rust reads and writes them.

use serde_json::Value;
use toolgate_tool_channel::{
    ChannelMessage, MessageError, Payload, ToolEventType, create_tool_message, deserialize_message,
    read_channel_message, serialize_message,
};

const VECTORS: &str = include_str!("../vectors/messages.json");

fn vectors(list: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(VECTORS).unwrap();
    all[list].as_array().unwrap().clone()
}

fn wrong_member(error: &MessageError) -> &'static str {
    match error {
        MessageError::Malformed(_) => "json",
        MessageError::UnknownType(_) => "type",
        MessageError::Member { member, .. } => member,
    }
}

#[test]
fn every_vector_is_read_and_written_as_it_says() {
    for vector in vectors("messages") {
        let name = &vector["name"];
        match (
            deserialize_message(vector["text"].as_str().unwrap()),
            &vector["error"],
        ) {
            (Ok(message), Value::Null) => {
                let written = serialize_message(&message);
                let tree: Value = serde_json::from_str(&written).unwrap();
                assert_eq!(tree, vector["message"], "{name}");
                assert_eq!(deserialize_message(&written).unwrap(), message, "{name}");
            }
            (Err(error), Value::String(member)) => {
                assert_eq!(wrong_member(&error), member, "{name}: {error}")
            }
            (read, expected) => panic!("{name}: {read:?}, expected {expected}"),
        }
    }
}

#[test]
fn notices_are_read_beside_tool_messages() {
    for vector in vectors("notices") {
        let name = &vector["name"];
        match (
            read_channel_message(vector["text"].as_str().unwrap()),
            &vector["error"],
        ) {
            (Ok(ChannelMessage::Notice(notice)), Value::Null) => {
                let tree: Value = serde_json::from_str(&notice.to_json()).unwrap();
                assert_eq!(tree, vector["message"], "{name}");
            }
            (Err(error), Value::String(member)) => {
                assert_eq!(wrong_member(&error), member, "{name}: {error}")
            }
            (read, expected) => panic!("{name}: {read:?}, expected {expected}"),
        }
    }
}

#[test]
fn a_created_message_has_the_present_time_and_keeps_its_payload_to_the_letter() {
    let payload: Payload = serde_json::from_str(r#"{"b":1.0,"a":12345678901234567890123}"#).unwrap();
    let message = create_tool_message(ToolEventType::ToolCompleted, "demo_id", Some(payload));
    assert!(message.timestamp > 1_700_000_000_000, "{}", message.timestamp);
    let text = serialize_message(&message);
    assert!(
        text.contains(r#""payload":{"b":1.0,"a":12345678901234567890123}"#),
        "{text}"
    );
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
    assert!(serde_json::from_str::<Payload>(&deep).is_err());
}
