//! The client's side finds out which era a server speaks, whatever way the server has to say so.

use std::pin::pin;

use serde_json::json;
use toolgate_mcp::Server;
use toolgate_testkit_mcp::{Eras, Fixture, serve_http};

use crate::gateway::{listen, soon, spawn};

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_every_era_list_their_tools() {
    for eras in [Eras::Both, Eras::Modern, Eras::Legacy] {
        let (listener, url) = listen("mcp").await;
        let _server = spawn(async move { drop(serve_http(listener, Fixture::new(eras)).await) });
        let server = Server::http("fixture", url);
        let connection = soon("connect", server.connect()).await;
        let connection = connection.unwrap_or_else(|error| panic!("{eras:?}: {error}"));
        let tools = soon("list", connection.list_raw()).await.unwrap();
        assert!(tools.len() > 30, "{eras:?}: {}", tools.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_lists_millions_of_values_is_not_taken_apart() {
    // One line of two megabytes, which would be a hundred times as much in memory.
    const SCRIPT: &str = r#"
import json, sys
lists = 0
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
              "serverInfo": {"name": "many", "version": "1"}}
    if asked["method"] == "tools/list":
        lists += 1
        zeros = [0] * 1000000 if lists == 1 else [0]
        result = {"tools": [{"name": "many", "inputSchema": {"type": "object", "enum": zeros}}]}
    if asked["method"] == "server/discover":
        answer = {"error": {"code": -32601, "message": "no"}}
    else:
        answer = {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}, separators=(",", ":")), flush=True)
"#;
    let server = Server::command("many", "python3", ["-c", SCRIPT]).inherit(std::env::vars_os());
    let connection = soon("connect", server.connect()).await.unwrap();
    let (mut first, mut second) = (pin!(connection.list_raw()), pin!(connection.list_raw()));
    let now = std::future::ready;
    // Either may reach the program first.
    let answered = async {
        tokio::select! {
            tools = &mut first => (tools, tokio::select! { biased; _ = second => true, () = now(()) => false }),
            tools = &mut second => (tools, tokio::select! { biased; _ = first => true, () = now(()) => false }),
        }
    };
    // The line is left out, so the request that it answers has no response; the next one has.
    let (tools, are_both_answered) = soon("a list", answered).await;
    assert!(!are_both_answered, "a line of a million values was taken apart");
    assert_eq!(tools.unwrap()[0]["inputSchema"]["enum"], json!([0]));
}
