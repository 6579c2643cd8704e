//! The MCP bridge with a real server: `mcp-server-time`, which `make tests` installs and names in the environment.

use serde_json::json;
use toolgate_client::plugins::mcp::{Bridge, McpServer};

use crate::{client, words};

/// The server, where it is installed.
fn time_server() -> Option<McpServer> {
    let program = std::env::var_os("TOOLGATE_TEST_MCP_SERVER_TIME");
    if program.is_none() {
        eprintln!("not tested: `make tests` names an MCP server in TOOLGATE_TEST_MCP_SERVER_TIME");
    }
    Some(McpServer::command("time", program?, ["--local-timezone", "UTC"]))
}

#[tokio::test]
async fn tools_of_a_server_are_tools_of_the_client_until_it_is_taken_out() {
    let Some(server) = time_server() else { return };
    let Bridge { plugin, warnings } = server.connect().await.unwrap();
    assert_eq!(warnings, [""; 0]);
    let client = client();
    client.use_plugin(plugin).await.unwrap();
    assert!(client.has_plugin("mcp:time") && client.has_tool("mcp_time_convert_time"));
    let asked = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let told = client.try_tool("mcp_time_convert_time", asked).await.unwrap();
    assert!(told.to_string().contains("21:00"), "{told}");
    let wrong = json!({"source_timezone": "Mars", "time": "12:00", "target_timezone": "UTC"});
    words(client.try_tool("mcp_time_convert_time", wrong).await);
    client.unuse("mcp:time").await.unwrap();
    assert!(!client.has_tool("mcp_time_convert_time"));
}

#[tokio::test]
async fn only_the_tools_that_were_asked_for_are_bridged() {
    let Some(server) = time_server() else { return };
    let bridge = server.only(["convert_time"]).connect().await.unwrap();
    let client = client();
    client.use_plugin(bridge.plugin).await.unwrap();
    let names: Vec<String> = client
        .client_tool_definitions()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(names, ["mcp_time_convert_time"]);
}

#[tokio::test]
async fn a_server_that_does_not_start_or_ends_at_once_is_an_error_in_words() {
    let missing = McpServer::command("gone", "/does/not/exist", [""; 0])
        .connect()
        .await
        .unwrap_err();
    assert!(missing.to_string().contains("does not start"), "{missing}");
    let script = ["-c", "echo 'no licence' >&2; exit 3"];
    let dead = McpServer::command("dead", "/bin/sh", script)
        .connect()
        .await
        .unwrap_err();
    assert!(dead.to_string().contains("\"dead\" cannot be used"), "{dead}");
}
