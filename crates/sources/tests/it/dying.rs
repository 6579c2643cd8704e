//! Servers that die in the middle of a call.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use toolgate_kernel::call::ErrorCode;
use toolgate_mcp::link::LinkError;
use toolgate_mcp::link::message::{Message, Request};
use toolgate_sources::McpSettings;

use crate::world::{Fixture, World, settings, soon, tool};

/// Longest time until a call ends whose server has died: far below its own limit, the attempts to resume its stream
/// included.
const DEAD_AFTER_MAX: Duration = Duration::from_secs(20);

/// The beginning of a stream that cannot be resumed, and of one that can.
const STREAMS: [&str; 2] = [": hello\n\n", "id: 1\ndata:\n\n"];

/// A server that answers everything but calls. It dies with this value, and its connections with it.
struct Mortal {
    url: String,
    called: Arc<Notify>,
    accepting: JoinHandle<()>,
}

impl Drop for Mortal {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Mortal {
    async fn start(stream: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let called = Arc::new(Notify::new());
        let notify = called.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(serve(client, stream, notify.clone()));
            }
        });
        Self {
            url: format!("http://{address}/mcp"),
            called,
            accepting,
        }
    }

    /// A world in which the operator has configured it as `fix`, for agents and for clients that reach it as it is.
    async fn world(&self) -> World {
        let config = json!({"url": self.url, "expose": "through"});
        let world = World::new(McpSettings {
            servers: [("fix".to_owned(), config)].into(),
            ..settings()
        });
        world.ready("fix").await;
        world
    }
}

async fn serve(mut client: TcpStream, stream: &'static str, called: Arc<Notify>) {
    let (reader, mut writer) = client.split();
    let mut reader = BufReader::new(reader);
    while let Some((line, body)) = request(&mut reader).await {
        let answer = match (line.starts_with("post "), body["method"].as_str()) {
            (true, Some("tools/call")) => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                let begun = writer.write_all(format!("{head}{stream}").as_bytes()).await;
                begun.expect("the caller waits");
                called.notify_one();
                return std::future::pending().await;
            }
            (true, Some(method)) if !body["id"].is_null() => answer("200 OK", &response(method, &body["id"])),
            (true, _) => answer("202 Accepted", ""),
            (false, _) => answer("405 Not Here", ""),
        };
        // A caller that has gone away needs no answer.
        if writer.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The first line of the next request in lower case, and its body; none at the end of the connection.
async fn request(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<(String, Value)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .await
            .ok()
            .filter(|bytes| *bytes > 0)?;
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = bytes.parse().expect("a number");
        }
        head = if head.is_empty() { line } else { head };
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    Some((head, serde_json::from_slice(&body).unwrap_or_default()))
}

fn response(method: &str, id: &Value) -> String {
    let said = match method {
        "initialize" => json!({"result": {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "mortal", "version": "1"},
        }}),
        "tools/list" => json!({"result": {"tools": [tool("wait")]}}),
        _ => json!({"error": {"code": -32601, "message": "no such method"}}),
    };
    let mut response = json!({"jsonrpc": "2.0", "id": id});
    let members = response.as_object_mut().expect("an object");
    members.extend(said.as_object().cloned().unwrap_or_default());
    response.to_string()
}

fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_call_of_a_server_that_dies_is_interrupted() {
    for stream in STREAMS {
        let server = Mortal::start(stream).await;
        let world = server.world().await;
        let (called, url) = (server.called.clone(), server.url.clone());
        let death = async {
            called.notified().await;
            drop(server);
        };
        let call = world.call("mcp_fix_wait", json!({}));
        let (ended, ()) = timeout(DEAD_AFTER_MAX, async { tokio::join!(call, death) })
            .await
            .expect("the call ends with its server");
        let failure = ended.expect_err("nobody answered");
        assert_eq!(failure.code, ErrorCode::Interrupted, "{}", failure.message);
        assert!(!failure.message.contains(&url), "{}", failure.message);
    }
}

#[tokio::test]
async fn a_call_that_is_passed_on_ends_with_its_server() {
    let server = Mortal::start(STREAMS[1]).await;
    let world = server.world().await;
    let exposed = world.servers.exposed(world.project, "fix").await.unwrap();
    let link = exposed.expect("it is exposed").server.link().expect("a link");
    let call = link.request(call_of("wait"), HeaderMap::new());
    let mut exchange = call.await.expect("it is called");
    drop(server);
    let end = timeout(DEAD_AFTER_MAX, exchange.next())
        .await
        .expect("it ends with its server");
    // Whether the end of the connection was orderly is up to the machine of the server.
    assert!(
        matches!(end, Ok(None) | Err(LinkError::Unreachable(_))),
        "{end:?}"
    );
}

#[tokio::test]
async fn calls_of_a_program_that_is_killed_end_with_it() {
    for era in ["legacy", "modern"] {
        let fixture = Fixture::new(era, &[tool("slow")]);
        let world = World::new(settings());
        let mut config = fixture.config();
        config["expose"] = json!("through");
        world.put("fix", &config).await;
        world.ready("fix").await;
        let agents = fixture.wrote("started").await;
        let exposed = world.servers.exposed(world.project, "fix").await.unwrap();
        let link = exposed.expect("it is exposed").server.link().expect("it starts");
        let clients = soon("a program of the client's own", || {
            let pid = std::fs::read_to_string(fixture.directory.path().join("started")).ok()?;
            (pid != agents).then_some(pid)
        })
        .await;
        let call = link.request(call_of("slow"), HeaderMap::new());
        let mut exchange = call.await.expect("it is called");
        fixture.wrote("called-slow").await;
        kill(&clients);
        let end = timeout(DEAD_AFTER_MAX, exchange.next())
            .await
            .expect("it ends with its server");
        assert_eq!(end.map(drop), Err(LinkError::Gone));
        std::fs::remove_file(fixture.directory.path().join("called-slow")).expect("it is there");
        let death = async {
            fixture.wrote("called-slow").await;
            kill(&agents);
        };
        let call = world.call("mcp_fix_slow", json!({}));
        let (ended, ()) = timeout(DEAD_AFTER_MAX, async { tokio::join!(call, death) })
            .await
            .expect("the call ends with its server");
        assert_eq!(ended.unwrap_err().code, ErrorCode::Interrupted);
    }
}

fn call_of(tool: &str) -> Request {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}});
    match Message::read(call.to_string().as_bytes()) {
        Ok(Message::Request(call)) => call,
        other => panic!("{other:?}"),
    }
}

fn kill(pid: &str) {
    let killed = Command::new("kill").args(["-9", pid]).status();
    assert!(killed.expect("it runs").success());
}
