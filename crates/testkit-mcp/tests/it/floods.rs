//! Servers that ask, list and keep silent without end.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use toolgate_door_mcp::through::Limits;
use toolgate_mcp::Server;

use crate::caller::{Caller, Incoming, response};
use crate::gateway::{Gateway, exposed};

/// A program of one era. Its tools: `ask` asks 64 times, and when its client has read that, as
/// often again, each time after the last was refused, `many` asks a
/// thousand things at once, `task` makes a task of which it says nothing more, `twice` asks under one id until it is refused.
const PROGRAM: &str = r#"
import json, sys
era = sys.argv[1]
MODERN = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
def send(message):
    print(json.dumps(dict(message, jsonrpc="2.0")), flush=True)
FORM = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
def ask(number):
    send({"id": number, "method": "elicitation/create", "params": FORM})
def refusals(count):
    while count > 0:
        count -= "error" in json.loads(sys.stdin.readline())
discovered = 0
for line in sys.stdin:
    asked = json.loads(line)
    method, result = asked.get("method"), {}
    if "id" not in asked:
        continue
    if method == "server/discover":
        if era != "modern":
            send({"id": asked["id"], "error": {"code": -32601, "message": "unknown"}})
            continue
        discovered += 1
        if len(sys.argv) > 2 and discovered > 1:
            continue
        result = dict(MODERN, supportedVersions=["2026-07-28"], capabilities={"tools": {}})
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "flood", "version": "1"}}
    if method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("ask", "many", "task", "twice", "large", "small")]
        result = dict(MODERN, tools=tools) if era == "modern" else {"tools": tools}
    if method == "tasks/get":
        continue
    if method == "tools/call":
        tool = asked["params"]["name"]
        result = {"content": [{"type": "text", "text": "done"}]}
        if tool == "ask":
            for number in range(64):
                ask(number)
            sys.stdin.readline()  # the client has read them
            for number in range(64, 200):
                ask(number)
                refusals(1)
        if tool == "twice":
            ask(1)
            ask(1)
            refusals(1)
        if tool == "large":
            result = {"content": [{"type": "text", "text": "x" * (5 << 20)}]}
        if tool == "many":
            wanted = {"q%d" % number: {"method": "elicitation/create", "params": FORM} for number in range(1000)}
            result = {"resultType": "input_required", "inputRequests": wanted}
        if tool == "task":
            now = "2026-11-18T00:00:00Z"
            result = {"resultType": "task", "taskId": "t", "status": "working", "createdAt": now,
                      "lastUpdatedAt": now, "ttlMs": None, "pollIntervalMs": 10}
    send({"id": asked["id"], "result": result})
"#;

/// Questions of a server that may wait for its client.
const QUESTIONS_MAX: usize = 64;

async fn gateway(arguments: &[&str]) -> Gateway {
    let arguments = ["-c", PROGRAM].iter().chain(arguments).copied();
    let server = Server::command("fixture", "python3", arguments).inherit(std::env::vars_os());
    let limits = Limits {
        handshake: Duration::from_secs(5),
        ..Limits::default()
    };
    Gateway::before_server(exposed(server), limits).await
}

/// What the client of a session is asked during a call, and the call's response.
async fn asked(session: &Caller, tool: &str) -> (usize, Value) {
    let mut incoming = Incoming::of(session.call_in_session(tool).await);
    let mut questions = 0;
    loop {
        let message = incoming.next().await.expect("the answer has a response");
        match message.get("method") {
            Some(_) => {
                questions += 1;
                if questions == QUESTIONS_MAX {
                    let read = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
                    assert_eq!(session.send(&read).await.status(), StatusCode::ACCEPTED);
                }
            }
            None => return (questions, message),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_without_end_is_refused_and_its_client_is_asked_a_few_times() {
    let gateway = gateway(&["legacy"]).await;
    let session = Caller::user(&gateway.url, "ann").session().await;
    for (tool, questions) in [("ask", QUESTIONS_MAX), ("twice", 1)] {
        let (asked, done) = asked(&session, tool).await;
        assert_eq!(done["result"]["content"][0]["text"], "done", "{tool}: {done}");
        assert_eq!(asked, questions, "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_large_is_left_out_and_others_on_the_pipe_go_on() {
    let gateway = gateway(&["modern"]).await;
    gateway.exposed.lock().unwrap().timeout = Duration::from_secs(15);
    let [ann, bob] = ["ann", "bob"].map(|name| Caller::user(&gateway.url, name));
    let (large, small) = tokio::join!(ann.call("large"), bob.call("small"));
    let small = &small["result"]["content"][0]["text"];
    assert_eq!(small, "done", "a call of another user");
    let late = large["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(late.starts_with("TIMEOUT"), "{late}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_a_thousand_things_at_once_fails_its_call() {
    let gateway = gateway(&["modern"]).await;
    let session = Caller::user(&gateway.url, "ann").session().await;
    let (asked, done) = asked(&session, "many").await;
    let words = done["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("1000 questions"), "{done}");
    assert_eq!(asked, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_of_its_task_fails_the_call_of_an_older_client() {
    let gateway = gateway(&["modern"]).await;
    let session = Caller::user(&gateway.url, "ann").session().await;
    let done = response(session.call_in_session("task").await).await;
    assert!(done["error"]["message"].is_string(), "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_refuses_a_session_and_leaves_its_place() {
    let gateway = gateway(&["modern", "silent"]).await;
    let ann = Caller::user(&gateway.url, "ann");
    // More than one user may have at once, so that a place that is not given back is missed.
    for _ in 0..2 {
        let attempts = (0..8).map(|_| {
            let ann = ann.clone();
            tokio::spawn(async move { ann.initialize().await })
        });
        for attempt in attempts.collect::<Vec<_>>() {
            let refused = attempt.await.unwrap();
            assert_eq!(refused.status(), StatusCode::OK);
            let refused: Value = refused.json().await.unwrap();
            assert_eq!(
                refused["error"]["message"],
                json!("the MCP server cannot be reached")
            );
        }
    }
}
