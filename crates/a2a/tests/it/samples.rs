//! Bodies as the specification, the SDKs and seed documents write them.

use serde_json::{Value, json};
use toolgate_a2a::card::AgentCard;
use toolgate_a2a::client_tools::{ToolCall, ToolResult, URI};
use toolgate_a2a::error::{ERROR_KINDS, Error, ErrorKind};
use toolgate_a2a::message::Role;
use toolgate_a2a::method::Operation;
use toolgate_a2a::part::{Content, Part};
use toolgate_a2a::request::{ListTasks, SendMessage};
use toolgate_a2a::task::TaskState;
use toolgate_a2a::{Dialect, rpc};

#[test]
fn a_request_of_each_dialect_says_the_same() {
    let new = json!({
        "message": {
            "messageId": "m1", "role": "ROLE_USER", "contextId": "c1",
            "parts": [
                {"text": "hi"},
                {"raw": "aGk=", "mediaType": "text/plain", "filename": "hi.txt"},
                {"url": "https://example.com/a.png", "mediaType": "image/png"},
                {"data": {"a": 1}},
            ],
        },
        "configuration": {"returnImmediately": true, "historyLength": 3},
    });
    let old = json!({
        "message": {
            "kind": "message", "messageId": "m1", "role": "user", "contextId": "c1",
            "parts": [
                {"kind": "text", "text": "hi"},
                {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain", "name": "hi.txt"}},
                {"kind": "file", "file": {"uri": "https://example.com/a.png", "mimeType": "image/png"}},
                {"kind": "data", "data": {"a": 1}},
            ],
        },
        "configuration": {"blocking": false, "historyLength": 3},
    });
    let new = SendMessage::from_json(new, Dialect::V1).expect("valid in 1.0");
    let old = SendMessage::from_json(old, Dialect::V03).expect("valid in 0.3");
    assert_eq!(new, old);
    assert_eq!(new.message.role, Role::User);
    assert_eq!(new.message.parts[1].content, Content::Raw(b"hi".to_vec()));
}

#[test]
fn names_of_the_proto_are_read_too() {
    let request = json!({"message": {"message_id": "m", "role": "ROLE_USER", "context_id": "c", "parts": [{"text": "", "media_type": "text/plain"}]}});
    let request = SendMessage::from_json(request, Dialect::V1).expect("valid");
    assert_eq!(request.message.context_id.as_deref(), Some("c"));
    assert_eq!(request.message.parts[0].media_type.as_deref(), Some("text/plain"));
    let list =
        ListTasks::from_json(json!({"page_size": 10.0, "status": "TASK_STATE_WORKING"})).expect("valid");
    assert_eq!(
        (list.page_size, list.status),
        (Some(10), Some(TaskState::Working))
    );
}

#[test]
fn a_value_that_is_no_object_survives_0_3() {
    let part = Part::from(Content::Data(json!([1, 2])));
    let written = part.to_json(Dialect::V03);
    assert_eq!(
        written,
        json!({"kind": "data", "data": {"value": [1, 2]}, "metadata": {"data_part_compat": true}})
    );
    assert_eq!(Part::from_json(written, Dialect::V03), Ok(part));
}

#[test]
fn a_call_is_exact_after_protobuf_has_had_it() {
    let call = ToolCall {
        call_id: "call_1".into(),
        name: "get_location".into(),
        arguments: json!({"z": 10, "a": 9007199254740993_i64}),
        expires_at: None,
    };
    let mut part = call.to_part();
    part.content = Content::Data(json!({"a": 9007199254740992.0, "z": 10.0}));
    assert_eq!(ToolCall::of_part(&part), Some(call));
    let result = ToolResult {
        call_id: "call_1".into(),
        is_error: true,
    };
    assert_eq!(ToolResult::of_part(&result.mark(Part::text("no"))), Some(result));
    assert_eq!(ToolCall::of_part(&Part::text("no").tagged(URI, json!(3))), None);
}

#[test]
fn errors_have_the_codes_of_the_protocol() {
    let error = Error::new(ErrorKind::TaskNotFound, "no such task");
    let info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org", "metadata": {}});
    assert_eq!(
        error.to_rpc(),
        json!({"code": -32001, "message": "no such task", "data": [info]})
    );
    assert_eq!(
        error.to_rest(),
        (
            404,
            json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "no such task", "details": [info]}})
        )
    );
    for kind in ERROR_KINDS {
        let error = Error::new(kind, "why");
        assert_eq!(Error::from_rpc(&error.to_rpc()), error);
        if kind.reason().is_some() {
            let (status, body) = error.to_rest();
            assert_eq!(Error::from_rest(status, &body), error);
        }
    }
}

#[test]
fn a_method_is_known_in_the_dialect_that_calls_it_so() {
    let methods = [
        ("SendMessage", Some((Operation::SendMessage, Dialect::V1))),
        ("message/send", Some((Operation::SendMessage, Dialect::V03))),
        ("tasks/resume", Some((Operation::ResumeTask, Dialect::V03))),
        (
            "ListTaskPushNotificationConfigs",
            Some((Operation::ListPushConfigs, Dialect::V1)),
        ),
        ("tasks/list", None),
    ];
    for (name, expected) in methods {
        assert_eq!(Operation::of_method(name), expected, "{name}");
    }
}

#[test]
fn what_is_no_request_of_json_rpc_is_told_with_the_id_it_has() {
    let cases = [
        (json!([]), Value::Null, -32600),
        (
            json!({"jsonrpc": "2.0", "id": {}, "method": "a"}),
            Value::Null,
            -32600,
        ),
        (
            json!({"jsonrpc": "2.0", "id": "x".repeat(257), "method": "a"}),
            Value::Null,
            -32600,
        ),
        (
            json!({"jsonrpc": "1.0", "id": 3, "method": "a"}),
            json!(3),
            -32600,
        ),
        (
            json!({"jsonrpc": "2.0", "id": "x", "method": 1}),
            json!("x"),
            -32600,
        ),
        (
            json!({"jsonrpc": "2.0", "id": "x", "method": "a", "params": [1]}),
            json!("x"),
            -32602,
        ),
    ];
    for (body, id, code) in cases {
        let malformed = rpc::Request::from_json(body).expect_err("no request");
        assert_eq!((malformed.id, malformed.error.kind.code()), (id, code));
    }
}

#[test]
fn a_card_of_0_3_and_one_that_is_both_are_read() {
    let old = json!({
        "protocolVersion": "0.3.0", "name": "Old", "description": "d", "version": "1", "url": "http://h/a",
        "preferredTransport": "JSONRPC", "additionalInterfaces": [{"url": "http://h/rest", "transport": "HTTP+JSON"}],
        "capabilities": {"streaming": true}, "defaultInputModes": ["text"], "defaultOutputModes": ["text"],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": []}], "supportsAuthenticatedExtendedCard": true,
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}, "security": [{"key": []}],
    });
    let card = AgentCard::from_json(old).expect("a card of 0.3");
    let reached: Vec<_> = card
        .interfaces
        .iter()
        .map(|at| (at.url.as_str(), at.version.as_str()))
        .collect();
    assert_eq!(reached, [("http://h/a", "0.3"), ("http://h/rest", "0.3")]);
    assert!(card.capabilities.extended_card);
    assert_eq!(AgentCard::from_json(card.to_hybrid_json()), Ok(card.clone()));
    assert_eq!(AgentCard::from_json(card.to_json()), Ok(card));
}
