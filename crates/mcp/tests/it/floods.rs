//! A server that asks and tells without end.

use serde_json::Value;
use toolgate_mcp::{Abilities, Answer, CallRequest, Connection, Server, Step};

use crate::soon;

/// Speaks the older protocol. Its tools: `flood` asks a thousand times and reads no answer, `twice` asks two things under
/// one id, `large` asks in many bytes, `often` asks a thousand times and waits for each answer, `words` says much in one
/// notice of progress.
const PROGRAM: &str = r#"
import json, sys
def send(message):
    print(json.dumps(dict(message, jsonrpc="2.0")), flush=True)
def ask(number, words="Who?"):
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    send({"id": number, "method": "elicitation/create",
          "params": {"mode": "form", "message": words, "requestedSchema": form}})
for line in sys.stdin:
    asked = json.loads(line)
    method, result = asked.get("method"), {}
    if "id" not in asked:
        continue
    if method == "server/discover":
        send({"id": asked["id"], "error": {"code": -32601, "message": "unknown"}})
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "flood", "version": "1"}}
    if method == "tools/call":
        tool, token = asked["params"]["name"], asked["params"]["_meta"]["progressToken"]
        if tool == "flood":
            for number in range(1000):
                ask(number)
            continue
        if tool == "twice":
            ask(1)
            ask(1)
            continue
        if tool == "large":
            for number in range(4):
                ask(number, "x" * (3 << 20))
            continue
        if tool == "often":
            for number in range(1000):
                send({"id": number, "method": "ping"})
                sys.stdin.readline()
        if tool == "words":
            send({"method": "notifications/progress",
                  "params": {"progressToken": token, "progress": 1, "message": "ä" * (1 << 20)}})
        result = {"content": [{"type": "text", "text": "done"}]}
    send({"id": asked["id"], "result": result})
"#;

async fn connect() -> Connection {
    let server = Server::command("flood", "python3", ["-c", PROGRAM]).inherit(std::env::vars_os());
    let server = server.protocol(Some("2025-11-25".into())).abilities(Abilities {
        elicitation: true,
        ..Abilities::default()
    });
    soon("connect", server.connect()).await.unwrap()
}

fn call(tool: &str) -> CallRequest {
    CallRequest {
        tool: tool.into(),
        ..CallRequest::default()
    }
}

#[tokio::test]
async fn a_server_that_asks_more_than_may_wait_is_disconnected() {
    for tool in ["flood", "twice", "large"] {
        let connection = connect().await;
        // Nobody reads what it asks.
        let open = soon("call", connection.caller().open(call(tool))).await.unwrap();
        soon(tool, connection.ended()).await;
        drop(open);
    }
}

#[tokio::test]
async fn a_server_that_reads_its_responses_may_ask_often() {
    let connection = connect().await;
    let mut open = soon("call", connection.caller().open(call("often")))
        .await
        .unwrap();
    let Step::Done(Ok(Answer::Complete(result))) = soon("result", open.next()).await else {
        panic!("the call is complete");
    };
    assert_eq!(result.content[0]["text"], Value::from("done"));
}

#[tokio::test]
async fn the_words_of_progress_have_a_limit() {
    let connection = connect().await;
    let mut open = soon("call", connection.caller().open(call("words")))
        .await
        .unwrap();
    let Step::Progress(progress) = soon("progress", open.next()).await else {
        panic!("progress comes first");
    };
    assert_eq!(progress.message.unwrap(), "ä".repeat(2 << 10));
}
