//! The worst that clients may do to the gateway's memory: large pages and streams that they do not read, bodies and headers
//! that do not end, all at once. The limits are asserted by `crates/gateway/tests/it/attack_memory.rs`; here the
//! release build's peak is printed.

use std::net::SocketAddr;

use anyhow::Context;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::http::Connection;
use crate::process;
use crate::protocol::KEY;
use crate::server::Server;

const MESSAGE_BYTES: usize = 1_000_000;
const MESSAGES: usize = 48;
const PAGES: usize = 64;
const STREAMS: usize = 64;
const BODIES: usize = 32;
const BODY_BYTES: usize = 8 << 20;
const HEADERS: usize = 900;
const HEADER_BYTES: usize = 15 << 10;

/// Does the worst, and gives the most memory that the gateway has ever used, in MiB.
pub async fn peak(server: &Server) -> anyhow::Result<f64> {
    let address = server.process.address;
    let authorization = format!("authorization: Bearer {KEY}\r\n");
    let mut backend = Connection::new(address, &authorization);
    let space = backend.json("POST", "/v1/spaces", "{}").await?;
    let space = space["id"].as_str().context("a space has an id")?;
    let path = |what: &str| format!("/v1/spaces/{space}/{what}");
    let message = json!({"text": "x".repeat(MESSAGE_BYTES), "respond": false}).to_string();
    for _ in 0..MESSAGES {
        backend.json("POST", &path("messages"), &message).await?;
    }
    let mut held = Vec::new();
    for (count, accept) in [(PAGES, "application/json"), (STREAMS, "text/event-stream")] {
        for _ in 0..count {
            let head = format!(
                "GET {} HTTP/1.1\r\nhost: x\r\n{authorization}accept: {accept}\r\n\r\n",
                path("events?limit=500")
            );
            held.push(unread(address, &head).await?);
        }
    }
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: x\r\n{authorization}content-type: application/json\r\ncontent-length: {BODY_BYTES}\r\n\r\n"
    );
    let body = vec![b' '; BODY_BYTES - 1];
    for _ in 0..BODIES {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(head.as_bytes()).await?;
        // One that is refused may be closed.
        let _ = stream.write_all(&body).await;
        held.push(stream);
    }
    let half = format!("GET / HTTP/1.1\r\nx-filler: {}", "x".repeat(HEADER_BYTES));
    for _ in 0..HEADERS {
        let mut stream = TcpStream::connect(address).await?;
        // One too many is closed.
        let _ = stream.write_all(half.as_bytes()).await;
        held.push(stream);
    }
    backend.exchange("GET", "/healthz", "", |_| {}).await?;
    drop(held);
    Ok(process::peak(&server.process.pids()))
}

/// Sends a request and reads the first bytes of the answer only.
async fn unread(address: SocketAddr, head: &str) -> anyhow::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    let mut stream = socket.connect(address).await?;
    stream.write_all(head.as_bytes()).await?;
    stream.read_exact(&mut [0; 12]).await?;
    Ok(stream)
}
