//! Clients that open connections and do nothing with them, or too little: others are answered all the same.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::harness::{Gateway, LOOK, SECRET_KEY, soon};

/// More than the gateway of these tests has descriptors for.
const HALF_SENT: usize = 300;

async fn connect(gateway: &Gateway) -> TcpStream {
    TcpStream::connect(gateway.address()).await.expect("it listens")
}

/// Sends `text`, whatever becomes of the connection.
async fn send(stream: &mut TcpStream, text: &str) {
    // It may have been closed for another one.
    let _ = stream.write_all(text.as_bytes()).await;
}

/// Everything until the gateway closes the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // A reset ends it too.
    let _ = soon("the connection is closed", stream.read_to_end(&mut text)).await;
    String::from_utf8_lossy(&text).into_owned()
}

/// Everything up to the end of the header.
async fn header(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(soon("a header", stream.read_u8()).await.expect("a header"));
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn get(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {SECRET_KEY}\r\naccept: text/event-stream\r\n\r\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_sent_headers_beyond_the_descriptors_keep_nobody_out() {
    let gateway = Gateway::start(&[("TEST_OPEN_FILES", "160")]).await;
    let mut half_sent = Vec::new();
    for _ in 0..HALF_SENT {
        let mut stream = connect(&gateway).await;
        send(&mut stream, "GET /healthz HTTP/1.1\r\nhost: x\r\n").await;
        half_sent.push(stream);
    }
    let mut stream = connect(&gateway).await;
    send(&mut stream, &get("/readyz")).await;
    assert!(header(&mut stream).await.starts_with("HTTP/1.1 200"));
    let log = gateway.log();
    assert!(
        log.contains("the limit of open files is too low for http.connections.max"),
        "{log}"
    );
    drop(half_sent);
}

/// A gateway in which one timeout is short. The others are as usual: on a busy machine any of them may pass first.
async fn impatient(setting: &str) -> Gateway {
    Gateway::start(&[(setting, "100ms")]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_has_a_timeout() {
    let gateway = impatient("TOOLGATE_HTTP_CONNECTIONS_HEADER_TIMEOUT").await;
    let mut half_sent = connect(&gateway).await;
    send(&mut half_sent, "GET /healthz HTTP/1.1\r\nhost: x\r\n").await;
    assert_eq!(rest(half_sent).await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_connection_has_a_timeout() {
    let gateway = impatient("TOOLGATE_HTTP_CONNECTIONS_IDLE_TIMEOUT").await;
    let mut idle = connect(&gateway).await;
    send(&mut idle, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(rest(idle).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_has_a_timeout() {
    let gateway = impatient("TOOLGATE_HTTP_BODY_TIMEOUT").await;
    let mut slow = connect(&gateway).await;
    let post = get("/v1/spaces")
        .replace("GET", "POST")
        .replace("\r\n\r\n", "\r\n");
    send(
        &mut slow,
        &format!("{post}content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"),
    )
    .await;
    let mut refused = header(&mut slow).await;
    refused.push_str(&rest(slow).await);
    assert!(
        refused.starts_with("HTTP/1.1 408") && refused.contains("http.body_timeout"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_nobody_reads_has_a_timeout() {
    let gateway = impatient("TOOLGATE_HTTP_CONNECTIONS_WRITE_TIMEOUT").await;
    let api = gateway.api();
    // A file that no socket buffer holds, to a client that reads nothing of it.
    let space = api.post("/v1/spaces", &serde_json::json!({})).await.text("id");
    let path = format!("/v1/spaces/{space}/files/large.bin");
    let stored = api
        .request(reqwest::Method::PUT, &path)
        .body(vec![b'x'; 4 << 20])
        .send()
        .await
        .unwrap();
    assert!(stored.status().is_success(), "{stored:?}");
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut deaf = socket.connect(gateway.address()).await.unwrap();
    send(&mut deaf, &get(&path)).await;
    soon("the write timeout", async {
        let cut = "toolgate_http_connections_cut_total{why=\"write\"} 1";
        while !api
            .get("/metrics")
            .await
            .body
            .as_str()
            .is_some_and(|text| text.contains(cut))
        {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    drop(deaf);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_too_many_is_told_so_and_a_free_place_is_used() {
    let gateway = Gateway::start(&[("TOOLGATE_HTTP_CONNECTIONS_MAX", "3")]).await;
    let space = gateway
        .api()
        .post("/v1/spaces", &serde_json::json!({}))
        .await
        .text("id");
    let path = format!("/v1/spaces/{space}/events");
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(&gateway).await;
        send(&mut stream, &get(&path)).await;
        assert!(header(&mut stream).await.starts_with("HTTP/1.1 200"));
        streams.push(stream);
    }
    let mut fourth = connect(&gateway).await;
    send(&mut fourth, &get("/healthz")).await;
    let refused = rest(fourth).await;
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("http.connections.max"),
        "{refused}"
    );
    streams.pop();
    soon("a free place", async {
        loop {
            let mut stream = connect(&gateway).await;
            send(&mut stream, &get("/healthz")).await;
            if header(&mut stream).await.starts_with("HTTP/1.1 200") {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_accept_is_survived() {
    let gateway = Gateway::start(&[]).await;
    gateway.limit_open_files(4);
    let mut early = connect(&gateway).await;
    send(&mut early, &get("/healthz")).await;
    soon("a failed accept", async {
        while !gateway.log().contains("a connection could not be accepted") {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    gateway.limit_open_files(1024);
    assert!(header(&mut early).await.starts_with("HTTP/1.1 200"));
}
