//! MCP servers at an address that go away and come back.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use toolgate_client::Client;
use toolgate_client::plugins::mcp::McpServer;

use crate::{client, words};

/// Longest wait for a call that must not hang: far below a tool's time limit of a minute.
const SOON: Duration = Duration::from_secs(30);

/// Longest time until a call ends whose server was killed: the attempts to resume its stream included.
const DEAD_AFTER_MAX: Duration = Duration::from_secs(15);

/// Adds two numbers; written with the official SDK. The port is its argument, 0 for a free one.
const NEWER: &str = r#"
import socket, sys, uvicorn
from mcp.server import MCPServer
server = MCPServer("adder")
@server.tool()
def add(a: int, b: int) -> int:
    "Adds two numbers."
    return a + b
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])
"#;

/// The same in the older protocol, whose sessions do not outlive the server.
const OLDER: &str = r#"
import json, sys, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
sessions = set()
tool = {"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def answer(self, status, body=None, session=None):
        data = b"" if body is None else json.dumps({"jsonrpc": "2.0", **body}).encode()
        self.send_response(status)
        if data: self.send_header("content-type", "application/json")
        if session: self.send_header("mcp-session-id", session)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self): self.answer(405)
    def do_DELETE(self): self.answer(200)
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, id, session = message.get("method"), message.get("id"), self.headers.get("mcp-session-id")
        if method == "initialize":
            session = uuid.uuid4().hex
            sessions.add(session)
            about = {"name": "adder", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
            self.answer(200, {"id": id, "result": result}, session)
        elif session is None:
            self.answer(400, {"id": id, "error": {"code": -32600, "message": "no session"}})
        elif session not in sessions:
            self.answer(404)
        elif id is None:
            self.answer(202)
        elif method == "tools/list":
            self.answer(200, {"id": id, "result": {"tools": [tool]}})
        elif method == "tools/call":
            given = message["params"]["arguments"]
            text = {"type": "text", "text": str(given["a"] + given["b"])}
            self.answer(200, {"id": id, "result": {"content": [text]}})
        else:
            self.answer(200, {"id": id, "error": {"code": -32601, "message": "no such method"}})
server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// Takes a call, writes that to the file of its second argument, and never answers. `--stdio` instead of a port makes it
/// speak on its pipes and write its process id to the file of the third; over HTTP the third is `resumable` for a stream
/// with an event id.
const STUCK: &str = r#"
import json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
tool = {"name": "add", "inputSchema": {"type": "object"}}
def result(method):
    if method == "initialize":
        about = {"name": "adder", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
    return {"tools": [tool]} if method == "tools/list" else None
def stick():
    open(sys.argv[2], "w").write("called")
    time.sleep(600)
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def answer(self, status, body=None):
        data = b"" if body is None else json.dumps({"jsonrpc": "2.0", **body}).encode()
        self.send_response(status)
        if data: self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self): self.answer(405)
    def do_DELETE(self): self.answer(200)
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, id = message.get("method"), message.get("id")
        if id is None: self.answer(202)
        elif method == "tools/call":
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b"id: 1\ndata:\n\n" if sys.argv[3] == "resumable" else b": hello\n\n")
            self.wfile.flush()
            stick()
        elif (given := result(method)) is None:
            self.answer(200, {"id": id, "error": {"code": -32601, "message": "no such method"}})
        else: self.answer(200, {"id": id, "result": given})
if sys.argv[1] == "--stdio":
    for line in sys.stdin:
        message = json.loads(line)
        method, id = message.get("method"), message.get("id")
        if id is None: continue
        if method == "tools/call":
            open(sys.argv[3], "w").write(str(__import__("os").getpid()))
            stick()
        given = result(method)
        body = {"result": given} if given else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": id, **body}), flush=True)
server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// A server process that ends with this value.
struct Adder {
    child: Child,
    port: u16,
}

impl Adder {
    /// Starts the script at a port; waits until it listens. `None` where no Python with the SDK is installed.
    fn start(script: &str, port: u16) -> Option<Self> {
        Self::start_with(script, port, &[])
    }

    fn start_with(script: &str, port: u16, more: &[&str]) -> Option<Self> {
        let mut child = Command::new(python()?)
            .args(["-c", script, &port.to_string()])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().parse().expect("it prints its port");
        Some(Self { child, port })
    }

    async fn bridged(&self) -> Client {
        let url = format!("http://127.0.0.1:{}/mcp", self.port);
        let bridge = McpServer::http("adder", url).connect().await.unwrap();
        let client = client();
        client.use_plugin(bridge.plugin).await.unwrap();
        client
    }
}

impl Drop for Adder {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn python() -> Option<PathBuf> {
    let Some(program) = std::env::var_os("TOOLGATE_TEST_MCP_SERVER_TIME") else {
        eprintln!("not tested: `make tests` names an MCP server in TOOLGATE_TEST_MCP_SERVER_TIME");
        return None;
    };
    Some(Path::new(&program).with_file_name("python"))
}

async fn add(client: &Client, a: i64, b: i64) -> Result<String, toolgate_client::ToolError> {
    let call = client.try_tool("mcp_adder_add", json!({"a": a, "b": b}));
    let outcome = tokio::time::timeout(SOON, call)
        .await
        .expect("a call does not hang");
    outcome.map(|sum| sum.to_string())
}

async fn check(script: &str) {
    let Some(first) = Adder::start(script, 0) else {
        return;
    };
    let client = first.bridged().await;
    assert!(add(&client, 20, 22).await.unwrap().contains("42"));
    let port = first.port;
    drop(first);
    let second = Adder::start(script, port);
    assert!(add(&client, 30, 33).await.unwrap().contains("63"));
    assert!(add(&client, 1, 1).await.unwrap().contains('2'));
    drop(second);
    let gone = words(add(&client, 1, 1).await);
    assert!(gone.starts_with("UNAVAILABLE: "), "{gone}");
    assert!(!gone.contains("::") && !gone.contains("rmcp"), "{gone}");
}

#[tokio::test]
async fn a_server_that_restarts_is_reached_again_and_one_that_is_gone_is_unavailable() {
    check(NEWER).await;
}

#[tokio::test]
async fn a_server_whose_sessions_are_lost_is_reached_again() {
    check(OLDER).await;
}

/// Waits until the server has written that it was called.
async fn called(mark: &Path) -> String {
    let written = async {
        loop {
            match std::fs::read_to_string(mark) {
                Ok(text) if !text.is_empty() => return text,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(SOON, written)
        .await
        .expect("the call arrives")
}

async fn check_call_of_a_server_that_dies(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let Some(server) = Adder::start_with(STUCK, 0, &[mark.to_str().unwrap(), kind]) else {
        return;
    };
    let client = server.bridged().await;
    let call = tokio::spawn(async move { words(add(&client, 1, 1).await) });
    called(&mark).await;
    drop(server);
    let gone = tokio::time::timeout(DEAD_AFTER_MAX, call)
        .await
        .expect("the call ends with its server")
        .unwrap();
    assert!(gone.starts_with("UNAVAILABLE: "), "{gone}");
}

#[tokio::test]
async fn a_call_under_way_ends_with_its_server() {
    check_call_of_a_server_that_dies("plain").await;
}

#[tokio::test]
async fn a_call_under_way_ends_with_its_server_also_when_its_stream_could_be_resumed() {
    check_call_of_a_server_that_dies("resumable").await;
}

#[tokio::test]
async fn a_call_under_way_ends_with_the_process_of_its_server() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mark, pid) = (folder.path().join("mark"), folder.path().join("pid"));
    let (mark_text, pid_text) = (mark.to_str().unwrap(), pid.to_str().unwrap());
    let server = McpServer::command("adder", python, ["-c", STUCK, "--stdio", mark_text, pid_text]);
    let client = client();
    client
        .use_plugin(server.connect().await.unwrap().plugin)
        .await
        .unwrap();
    let call = tokio::spawn(async move { words(add(&client, 1, 1).await) });
    called(&mark).await;
    let pid = called(&pid).await.parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).expect("not zero");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let gone = tokio::time::timeout(DEAD_AFTER_MAX, call)
        .await
        .expect("the call ends with its server")
        .unwrap();
    assert!(gone.starts_with("UNAVAILABLE: "), "{gone}");
}
