//! Packages of `examples/plugins`, loaded and executed in this process.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolgate_client::Client;
use toolgate_client::plugins::package::{CuratorKeys, Mode, PackageError, Trust, plugin};
use toolgate_kernel::time::Time;

use crate::{client, words};

const NOW: Time = Time(1_800_000_000_000);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins")
}

fn example(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name).join(format!("{name}.json"))).expect("the package")
}

fn trust() -> Trust {
    let pem = std::fs::read_to_string(folder().join("curator.pub.pem")).expect("the key");
    Trust {
        curators: CuratorKeys::read(&json!({ "toolgate-examples": pem }), "").expect("a key"),
        ..Trust::default()
    }
}

/// A client with one tool, `try_it`, of an unsigned package.
async fn trying(code: &str, permissions: Value) -> Client {
    let development = Trust {
        mode: Mode::Development,
        ..Trust::default()
    };
    let client = client();
    let plugin = plugin(&draft(code, permissions), &development, NOW).unwrap();
    client.use_plugin(plugin).await.unwrap();
    client
}

fn draft(code: &str, permissions: Value) -> Vec<u8> {
    let tool = json!({ "name": "try_it", "description": "Tries.", "executorCode": code });
    json!({ "id": "draft", "name": "Draft", "version": "0.1.0", "tools": [tool], "permissions": permissions })
        .to_string()
        .into_bytes()
}

/// Whether `value` has everything that `expected` has.
fn has(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(value), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| value.get(name).is_some_and(|value| has(value, expected))),
        (Value::Array(value), Value::Array(expected)) => {
            value.len() == expected.len()
                && value
                    .iter()
                    .zip(expected)
                    .all(|(value, expected)| has(value, expected))
        }
        (Value::Number(value), Value::Number(expected)) => value.as_f64() == expected.as_f64(),
        _ => value == expected,
    }
}

#[tokio::test]
async fn every_tool_of_every_example_does_what_it_says() {
    let client = client();
    for name in [
        "calculator",
        "csv-summary",
        "json-diff",
        "text-statistics",
        "time",
    ] {
        client
            .use_plugin(plugin(&example(name), &trust(), NOW).unwrap())
            .await
            .unwrap();
    }
    let cases: Vec<(String, Value, Value)> =
        serde_json::from_slice(&std::fs::read(folder().join("cases.json")).expect("the cases"))
            .expect("cases");
    for (tool, args, expected) in cases {
        let outcome = match client.try_tool(&tool, args.clone()).await {
            Ok(output) => output,
            // What was thrown, with its kind before and its place behind.
            Err(error) => {
                let message = error.message().trim_start_matches("Error: ");
                json!({ "error": message.split(" (line ").next() })
            }
        };
        assert!(
            has(&outcome, &expected),
            "{tool} {args}: {outcome} is not {expected}"
        );
    }
}

#[tokio::test]
async fn what_is_not_signed_as_it_must_be_is_refused() {
    let name = |error: PackageError| match error {
        PackageError::Rejected { rejection, .. } => rejection.code(),
        PackageError::Unsigned(_) => "unsigned",
        PackageError::ToolsOnly(_) => "tools only",
        PackageError::Storage(_) => "storage",
        PackageError::Invalid(_) => "invalid",
        other => panic!("{other}"),
    };
    let refused = |document: &[u8], trust: &Trust| name(plugin(document, trust, NOW).map(drop).unwrap_err());
    assert_eq!(refused(&draft("return 1;", json!([])), &trust()), "unsigned");
    assert_eq!(refused(&example("time"), &Trust::default()), "UNKNOWN_CURATOR");
    let mut changed: Value = serde_json::from_slice(&example("time")).unwrap();
    changed["permissions"] = json!(["fetch:evil.example.net"]);
    let development = Trust {
        mode: Mode::Development,
        ..trust()
    };
    assert_eq!(
        refused(changed.to_string().as_bytes(), &development),
        "PACKAGE_CHANGED"
    );
    let members = changed.as_object_mut().unwrap();
    members.remove("packageHash");
    members.remove("packageSignature");
    assert_eq!(refused(changed.to_string().as_bytes(), &trust()), "tools only");
    let lenient = Trust {
        tools_only_signatures: true,
        ..trust()
    };
    assert_eq!(refused(changed.to_string().as_bytes(), &lenient), "tools only");
    changed["permissions"] = json!([]);
    plugin(changed.to_string().as_bytes(), &lenient, NOW).unwrap();
    assert_eq!(
        refused(&draft("return 1;", json!(["storage"])), &development),
        "storage"
    );
    assert_eq!(refused(b"{", &development), "invalid");
}

#[tokio::test]
async fn code_that_does_not_end_or_takes_all_memory_is_an_error() {
    let endless = trying("for (;;) {}", json!([])).await;
    assert!(!words(endless.try_tool("try_it", json!({})).await).is_empty());
    let greedy = trying(
        "const all = []; for (;;) all.push('x'.repeat(1e6) + all.length);",
        json!([]),
    )
    .await;
    assert!(words(greedy.try_tool("try_it", json!({})).await).contains("memory"));
    let broken = trying("return }", json!([])).await;
    assert!(words(broken.try_tool("try_it", json!({})).await).contains("SyntaxError"));
}

#[tokio::test]
async fn code_reaches_the_hosts_that_it_asks_for_and_no_others() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 302 Found\r\nlocation: http://localhost:1/\r\n\r\n",
        ] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 4_096];
            assert!(stream.read(&mut asked).await.unwrap() > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let code = "const response = await fetch(args.url); return { status: response.status, text: await response.text() };";
    let client = trying(code, json!(["fetch:127.0.0.1"])).await;
    let ask = |url: String| client.try_tool("try_it", json!({ "url": url }));
    let said = ask(format!("http://127.0.0.1:{port}/")).await.unwrap();
    assert_eq!(said, json!({ "status": 200, "text": "hello" }));
    assert!(words(ask(format!("http://127.0.0.1:{port}/")).await).contains("the request failed"));
    assert!(
        words(ask(format!("http://localhost:{port}/")).await).contains("localhost is not among the hosts")
    );
    serving.await.unwrap();
}
