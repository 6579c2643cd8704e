//! The MCP bridge with a real server: `mcp-server-time`, which `make tests` installs and names in the environment.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use toolgate_client::plugins::mcp::{Bridge, Elicit, Elicitation, ElicitationAnswer, McpServer};

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
    let nobody = McpServer::http("nobody", "http://127.0.0.1:9/mcp")
        .connect()
        .await
        .unwrap_err();
    assert!(nobody.to_string().contains("error sending request"), "{nobody}");
    let script = ["-c", "echo 'no licence' >&2; exit 3"];
    let dead = McpServer::command("dead", "/bin/sh", script)
        .connect()
        .await
        .unwrap_err();
    assert!(dead.to_string().contains("\"dead\" cannot be used"), "{dead}");
}

#[tokio::test]
async fn a_server_sees_of_the_environment_only_what_it_needs_and_what_it_is_given() {
    // Cargo sets this for every test: it stands for whatever else this process was given.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let directory = tempfile::tempdir().unwrap();
    let seen = directory.path().join("seen");
    let script = ["-c".into(), "env > \"$0\"".into(), seen.clone().into_os_string()];
    McpServer::command("curious", "/bin/sh", script)
        .env("GIVEN", "yes")
        .connect()
        .await
        .unwrap_err();
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.contains("GIVEN=yes") && seen.contains("PATH="), "{seen}");
    assert!(!seen.contains("CARGO_"), "{seen}");
}

/// A server that leaves its process id, and starts a process of its own that leaves its as well.
fn family(directory: &Path) -> Option<McpServer> {
    let program = std::env::var_os("TOOLGATE_TEST_MCP_SERVER_TIME")?;
    let script = "cd \"$0\"; sleep 1000 <&- >&- 2>&- & echo $! > child; echo $$ > server; exec \"$1\" --local-timezone UTC";
    let arguments = ["-c".into(), script.into(), directory.into(), program];
    Some(McpServer::command("family", "/bin/sh", arguments))
}

fn pid(directory: &Path, name: &str) -> Pid {
    let text = std::fs::read_to_string(directory.join(name)).unwrap();
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

/// Waits until a process is gone, or only waits to be buried.
async fn gone(pid: Pid) {
    let lives = || {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    let work = async {
        while lives() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), work)
        .await
        .expect("the process ends");
}

#[tokio::test]
async fn a_server_and_what_it_started_end_when_the_plugin_is_taken_out() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = family(directory.path()) else {
        return;
    };
    let client = client();
    client
        .use_plugin(server.connect().await.unwrap().plugin)
        .await
        .unwrap();
    client.unuse("mcp:family").await.unwrap();
    gone(pid(directory.path(), "server")).await;
    gone(pid(directory.path(), "child")).await;
}

#[tokio::test]
async fn a_server_ends_also_when_its_client_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = family(directory.path()) else {
        return;
    };
    let client = client();
    client
        .use_plugin(server.connect().await.unwrap().plugin)
        .await
        .unwrap();
    drop(client);
    gone(pid(directory.path(), "server")).await;
    gone(pid(directory.path(), "child")).await;
}

#[tokio::test]
async fn a_server_that_dies_is_started_again_by_a_later_call() {
    let directory = tempfile::tempdir().unwrap();
    let Some(server) = family(directory.path()) else {
        return;
    };
    let client = client();
    client
        .use_plugin(server.connect().await.unwrap().plugin)
        .await
        .unwrap();
    let server = pid(directory.path(), "server");
    kill_process(server, Signal::KILL).unwrap();
    gone(server).await;
    // The first calls may still find the dead one: that is an error to read, and nothing else.
    let ask = || client.try_tool("mcp_family_get_current_time", json!({"timezone": "UTC"}));
    let answered = async {
        while let Err(error) = ask().await {
            assert!(error.message().contains("gone"), "{}", error.message());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), answered)
        .await
        .expect("it is started again");
    let second = pid(directory.path(), "server");
    assert_ne!(second, server);
    client.unuse("mcp:family").await.unwrap();
    gone(second).await;
    gone(pid(directory.path(), "child")).await;
    words(ask().await);
}

#[tokio::test]
async fn a_server_that_cannot_be_started_again_is_left_alone_for_a_while() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = std::env::var_os("TOOLGATE_TEST_MCP_SERVER_TIME") else {
        return;
    };
    // Works once.
    let script = "cd \"$0\"; echo start >> starts; test ! -e broken || exit 7; echo $$ > server; exec \"$1\" --local-timezone UTC";
    let arguments = ["-c".into(), script.into(), directory.path().into(), program];
    let server = McpServer::command("once", "/bin/sh", arguments);
    let client = client();
    client
        .use_plugin(server.connect().await.unwrap().plugin)
        .await
        .unwrap();
    std::fs::write(directory.path().join("broken"), "").unwrap();
    let server = pid(directory.path(), "server");
    kill_process(server, Signal::KILL).unwrap();
    gone(server).await;
    let ask = || client.try_tool("mcp_once_get_current_time", json!({"timezone": "UTC"}));
    let refused = async {
        loop {
            let error = ask().await.expect_err("it cannot be started");
            if error.message().contains("started again in") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), refused)
        .await
        .expect("it pauses");
}

/// A server at an address, written in Python with the official SDK: adds two numbers.
const ADDER: &str = r#"
import socket, uvicorn
from mcp.server import MCPServer
server = MCPServer("adder")
@server.tool()
def add(a: int, b: int) -> int:
    "Adds two numbers."
    return a + b
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])
"#;

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_server_at_an_address_is_bridged_as_well() {
    let Some(program) = std::env::var_os("TOOLGATE_TEST_MCP_SERVER_TIME") else {
        return;
    };
    let python = Path::new(&program).with_file_name("python");
    let spawned = Command::new(python)
        .args(["-c", ADDER])
        .stdout(Stdio::piped())
        .spawn();
    let mut process = Process(spawned.unwrap());
    let mut port = String::new();
    BufReader::new(process.0.stdout.take().unwrap())
        .read_line(&mut port)
        .unwrap();
    let server = McpServer::http("adder", format!("http://127.0.0.1:{}/mcp", port.trim()));
    let client = client();
    client
        .use_plugin(server.connect().await.unwrap().plugin)
        .await
        .unwrap();
    let sum = client
        .try_tool("mcp_adder_add", json!({"a": 20, "b": 22}))
        .await
        .unwrap();
    assert!(sum.to_string().contains("42"), "{sum}");
    drop(process);
    words(client.try_tool("mcp_adder_add", json!({"a": 1, "b": 1})).await);
    client.unuse("mcp:adder").await.unwrap();
}

/// A program that speaks the newest protocol, written with the official SDK: `grow` adds a tool and says so.
const GROWER: &str = r#"
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
server = MCPServer("grower")
@server.tool()
async def grow(number: int, ctx: Context) -> str:
    "Adds a tool."
    server.add_tool(lambda: f"tool {number}", name=f"extra_{number}", description="One more tool.")
    await ctx.notify_tools_changed()
    return "done"
server.run("stdio")
"#;

/// A program that speaks the older protocol, in which a server asks in the middle of a call.
const ASKER: &str = r#"
import json, sys
say = lambda message: print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
form = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 30}}}
can_ask, call = False, None
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        can_ask = "elicitation" in message["params"]["capabilities"]
        about = {"name": "asker", "version": "1"}
        say({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}})
    elif method == "tools/list":
        say({"id": id, "result": {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call" and can_ask:
        call = id
        say({"id": "q", "method": "elicitation/create", "params": {"message": "Who is there?", "requestedSchema": form}})
    elif method == "tools/call":
        say({"id": id, "result": {"content": [{"type": "text", "text": "nobody can be asked"}]}})
    elif id == "q":
        say({"id": call, "result": {"content": [{"type": "text", "text": json.dumps(message["result"])}]}})
    elif id is not None:
        say({"id": id, "error": {"code": -32601, "message": "no such method"}})
"#;

fn python(name: &str, script: &str) -> Option<McpServer> {
    let program = std::env::var_os("TOOLGATE_TEST_MCP_SERVER_TIME")?;
    let python = Path::new(&program).with_file_name("python");
    Some(McpServer::command(name, python, ["-c", script]))
}

#[tokio::test]
async fn tools_that_a_server_adds_become_tools_of_the_client() {
    let Some(server) = python("grower", GROWER) else {
        return;
    };
    let client = client();
    client
        .use_plugin(server.connect().await.unwrap().plugin)
        .await
        .unwrap();
    assert!(!client.has_tool("mcp_grower_extra_0"));
    // Whoever has not subscribed yet misses a change, so there are several.
    let grown = async {
        for number in 0.. {
            let asked = json!({"number": number});
            client.try_tool("mcp_grower_grow", asked).await.unwrap();
            for _ in 0..20 {
                if client.has_tool("mcp_grower_extra_0") {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), grown)
        .await
        .expect("the new tools are listed");
    let told = client.try_tool("mcp_grower_extra_0", json!({})).await.unwrap();
    assert!(told.to_string().contains("tool 0"), "{told}");
    client.unuse("mcp:grower").await.unwrap();
    assert!(!client.has_tool("mcp_grower_extra_0"));
}

/// Says a name, and leaves the rest.
struct Ada;

#[toolgate_client::async_trait]
impl Elicit for Ada {
    async fn elicit(&self, elicitation: Elicitation) -> ElicitationAnswer {
        match elicitation {
            Elicitation::Form { message, schema } => {
                assert_eq!(message, "Who is there?");
                assert_eq!(schema["properties"]["name"]["type"], "string");
                ElicitationAnswer::Accept(json!({"name": "Ada"}).as_object().cloned())
            }
            Elicitation::Url { .. } => ElicitationAnswer::Decline,
        }
    }
}

#[tokio::test]
async fn what_a_server_asks_goes_to_the_hook_and_without_one_it_cannot_ask() {
    let Some(server) = python("asker", ASKER) else {
        return;
    };
    let asked = client();
    let plugin = server.clone().on_elicitation(Ada).connect().await.unwrap().plugin;
    asked.use_plugin(plugin).await.unwrap();
    let told = asked.try_tool("mcp_asker_ask", json!({})).await.unwrap();
    let told: serde_json::Value = serde_json::from_str(told.as_str().unwrap()).unwrap();
    assert_eq!(
        told,
        json!({"action": "accept", "content": {"name": "Ada", "age": 30}})
    );
    let silent = client();
    let plugin = server.connect().await.unwrap().plugin;
    silent.use_plugin(plugin).await.unwrap();
    let told = silent.try_tool("mcp_asker_ask", json!({})).await.unwrap();
    assert_eq!(told, "nobody can be asked");
}
