//! People who watch: how much later an event arrives on another node, and what each of many viewers costs one node.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http::{Connection, member};
use crate::process;
use crate::protocol::{AGENT, KEY, SCENARIOS};
use crate::report::quantile;
use crate::server::Running;

/// Runs whose events are timed.
const RUNS: usize = 100;
/// Longest wait for a viewer to have seen everything.
const CATCH_UP: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);
/// Spaces that the viewers are spread over.
const SPACES: usize = 100;
/// Long enough for buffers and allocators to settle.
const REST: Duration = Duration::from_secs(2);

fn authorization() -> String {
    format!("authorization: Bearer {KEY}\r\naccept: text/event-stream\r\n")
}

/// A run's events, read on its own node and on the last node: how much later the second reader has them.
pub async fn crossing(nodes: &[SocketAddr], title: &str) -> anyhow::Result<String> {
    let (first, last) = (nodes[0], nodes[nodes.len() - 1]);
    let mut backend = Connection::new(first, &authorization());
    let space = backend.json("POST", "/v1/spaces", "{}").await?;
    let space = space["id"].as_str().context("a space has an id")?.to_owned();
    let seen = Rc::new(RefCell::new(HashMap::new()));
    let viewer = tokio::task::spawn_local({
        let (seen, path) = (seen.clone(), format!("/v1/spaces/{space}/events"));
        async move {
            Connection::new(last, &authorization())
                .events_of("GET", &path, "", |event| note(event, &mut seen.borrow_mut()))
                .await
        }
    });
    let body = json!({"agent": AGENT, "spaceId": space, "message": SCENARIOS[0].prompt()}).to_string();
    let mut here = HashMap::new();
    for _ in 0..RUNS {
        backend
            .events("/v1/runs", &body, |event| note(event, &mut here))
            .await?;
    }
    let deadline = Instant::now() + CATCH_UP;
    let missing = || {
        here.keys()
            .filter(|seq| !seen.borrow().contains_key(*seq))
            .count()
    };
    while missing() > 0 && Instant::now() < deadline {
        tokio::time::sleep(POLL).await;
    }
    let missing = missing();
    viewer.abort();
    let seen = seen.borrow();
    let late: Vec<f64> = here
        .iter()
        .filter_map(|(seq, &at)| Some(millis(at, *seen.get(seq)?)))
        .collect();
    let (p50, p99) = (
        quantile(late.iter().copied(), 0.5),
        quantile(late.iter().copied(), 0.99),
    );
    Ok(format!(
        "{title}: a viewer has a text delta {p50:.2} ms (p99 {p99:.2}) after whoever started the run; {missing} of {} not seen\n",
        here.len()
    ))
}

/// Notes when a delta was read, by its place.
fn note(event: &[u8], seen: &mut HashMap<String, Instant>) {
    if member(event, r#""type":""#) != Some(b"text-delta") {
        return;
    }
    let Ok(event) = serde_json::from_slice::<serde_json::Value>(event) else {
        return;
    };
    seen.insert(event["seq"].to_string(), Instant::now());
}

/// How many milliseconds later the second moment is; negative when it came first.
fn millis(first: Instant, second: Instant) -> f64 {
    match second.checked_duration_since(first) {
        Some(later) => later.as_secs_f64() * 1e3,
        None => -(first - second).as_secs_f64() * 1e3,
    }
}

/// Opens so many event streams at one node, and gives the memory of each.
pub async fn many(node: &Running, count: usize) -> anyhow::Result<String> {
    let mut backend = Connection::new(node.address, &authorization());
    let mut spaces = Vec::new();
    for _ in 0..SPACES {
        let space = backend.json("POST", "/v1/spaces", "{}").await?;
        spaces.push(space["id"].as_str().context("a space has an id")?.to_owned());
    }
    // As after the viewers: what the start and the spaces have left behind is no viewer's.
    tokio::time::sleep(REST).await;
    let before = process::memory(&node.pids());
    let mut viewers = Vec::new();
    let mut refused = None;
    for number in 0..count {
        match view(node.address, &spaces[number % SPACES]).await {
            Ok(viewer) => viewers.push(viewer),
            Err(fault) => {
                refused = Some(fault);
                break;
            }
        }
    }
    tokio::time::sleep(REST).await;
    let with = process::memory(&node.pids());
    let open = viewers.len();
    let each = (with - before) * 1024.0 / open.max(1) as f64;
    let refused = refused.map_or(String::new(), |fault| format!("; then: {fault:#}"));
    Ok(format!(
        "{open} viewers on one node: {before:.1} MiB before, {with:.1} MiB with them, {each:.1} KiB each{refused}\n"
    ))
}

async fn view(node: SocketAddr, space: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(node).await?;
    let head = format!(
        "GET /v1/spaces/{space}/events HTTP/1.1\r\nhost: x\r\n{}\r\n",
        authorization()
    );
    stream.write_all(head.as_bytes()).await?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await?;
    anyhow::ensure!(status.ends_with(b"200"), "{}", String::from_utf8_lossy(&status));
    Ok(stream)
}
