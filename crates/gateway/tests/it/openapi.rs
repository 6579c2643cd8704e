//! The OpenAPI document of all doors: kept beside the code, and sound.

use std::path::Path;

use serde_json::Value;
use toolgate_testkit_http::contract::Contract;

use crate::harness::binary;

/// Set to anything, this makes the test write the document instead of comparing it.
const REWRITE: &str = "REWRITE_GOLDEN";

/// The document as the binary prints it.
fn printed() -> String {
    let output = binary().arg("openapi").output().expect("the binary starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim_end().to_owned() + "\n"
}

fn document() -> Value {
    serde_json::from_str(&printed()).unwrap()
}

#[test]
fn the_kept_document_is_what_the_handlers_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(&path, printed()).unwrap();
    }
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert!(
        kept == document(),
        "openapi.json is stale: run this test with {REWRITE}=1"
    );
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| walk(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    let document = document();
    let mut references = Vec::new();
    walk(&document, &mut references);
    assert!(references.len() > 100);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

#[test]
fn every_operation_has_a_name_of_its_own_and_tells_its_refusals() {
    let document = document();
    let mut names = std::collections::BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is used twice");
            if path.starts_with("/v1/") {
                let needs_no_key = operation["security"] == serde_json::json!([{}]);
                let told = ["401", "429", "503"].into_iter();
                for status in told.filter(|status| *status != "401" || !needs_no_key) {
                    assert!(
                        operation["responses"].get(status).is_some(),
                        "{method} {path} does not tell {status}"
                    );
                }
            }
        }
    }
    assert!(names.len() > 25);
}

#[test]
fn every_stored_event_is_told() {
    let contract = Contract::new(&printed());
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/tests/samples");
    let text =
        std::fs::read_to_string(samples.join(format!("v{}.jsonl", toolgate_kernel::event::FORMAT))).unwrap();
    for line in text.lines() {
        let mut event: Value = serde_json::from_str(line).unwrap();
        if event["type"] == "child-call" {
            // It is told as what the child run asks, with two members more.
            let mut asked = event["event"].take();
            asked["agent"] = event["agent"].take();
            asked["childRunId"] = event["childRunId"].take();
            event = asked;
        }
        event["seq"] = 1.into();
        event["spaceId"] = "space_00000000000000000000000000".into();
        event["time"] = "2026-01-01T00:00:00.000Z".into();
        contract.check_event(&event);
    }
}
