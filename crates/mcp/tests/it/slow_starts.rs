//! A program that takes longer to start than the first request waits. Time is held, and moved by the test.

use std::sync::mpsc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::time::advance;
use toolgate_mcp::{Connection, Server};

use crate::soon;

/// Longer than the SDK waits for a response to `server/discover`.
const PROBE: Duration = Duration::from_secs(11);
/// Longer than it is waited for on the second start.
const SECOND_PROBE: Duration = Duration::from_secs(31);
/// How long time is held at most, in real time. When it runs again every wait that hangs ends at once.
const HELD_MAX: Duration = Duration::from_secs(100);

/// Speaks the older protocol at its first start, as one that sees `server/discover` too late, and says on a socket what
/// happens. Arguments: the port, a file that marks the first start, and whether later starts speak the newer protocol.
const PROGRAM: &str = r#"
import json, os, socket, sys
port, mark, later = sys.argv[1:]
is_first = not os.path.exists(mark)
open(mark, "w").close()
start = "first" if is_first else "second"
news = socket.create_connection(("127.0.0.1", int(port)))
def say(what):
    news.sendall((start + " " + what + "\n").encode())
for line in sys.stdin:
    asked = json.loads(line)
    result = {}
    if asked["method"] == "server/discover":
        say("asked")
        if is_first or later != "newer":
            continue
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                  "ttlMs": 0, "cacheScope": "private"}
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "slow", "version": "1"}}
    if asked["method"] == "tools/list":
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                  "tools": [{"name": start, "inputSchema": {"type": "object"}}]}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

/// Connects to the program, and moves the time on when it has been asked: by `PROBE` the first time, by `second` the
/// second time. Gives the socket of the first start too.
async fn connect(later: &str, second: Duration) -> (Connection, tokio::net::TcpStream) {
    let directory = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mark = directory.path().join("started").display().to_string();
    let server = Server::command("slow", "python3", ["-c", PROGRAM, &port, &mark, later]);
    let server = server.inherit(std::env::vars_os());
    let clock = async {
        let first = asked(&listener, "first asked\n").await;
        advance(PROBE).await;
        let _second = asked(&listener, "second asked\n").await;
        advance(second).await;
        first
    };
    let (connection, first) = tokio::join!(soon("connect", server.connect()), soon("asked", clock));
    (connection.unwrap(), first)
}

/// Waits until a program that has just started says that it was asked.
async fn asked(listener: &TcpListener, expected: &str) -> tokio::net::TcpStream {
    let (mut news, _) = listener.accept().await.unwrap();
    let mut said = vec![0; expected.len()];
    news.read_exact(&mut said).await.unwrap();
    assert_eq!(String::from_utf8(said).unwrap(), expected);
    news
}

/// Holds the time until it is dropped: time that is paused moves by itself only while nothing blocks.
fn hold() -> mpsc::Sender<()> {
    let (hold, held) = mpsc::channel();
    tokio::task::spawn_blocking(move || held.recv_timeout(HELD_MAX).is_err());
    hold
}

async fn listed(connection: &Connection) -> serde_json::Value {
    let tools = soon("list", connection.list_raw()).await.unwrap();
    tools[0]["name"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_program_that_starts_slowly_once_is_not_taken_for_an_older_one() {
    let _held = hold();
    let (connection, mut first) = connect("newer", Duration::ZERO).await;
    assert_eq!(connection.about().protocol, "2026-07-28");
    assert_eq!(listed(&connection).await, "second");
    // The one that was started first has ended.
    let mut rest = Vec::new();
    soon("the end of the first", first.read_to_end(&mut rest))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_program_that_never_answers_is_spoken_to_as_an_older_one() {
    let _held = hold();
    let (connection, _first) = connect("older", SECOND_PROBE).await;
    assert_eq!(connection.about().protocol, "2025-11-25");
    assert_eq!(listed(&connection).await, "first");
}
