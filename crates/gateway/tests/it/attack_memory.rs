//! The worst that users are allowed to ask for, all at once and unread: the gateway's memory stays bounded, and others
//! are answered.

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, put_agent, put_worker, soon, worker};

/// Most memory that the gateway may ever have used, in KiB.
const PEAK_KIB_MAX: u64 = 256 * 1024;
const USERS: usize = 4;
/// As long as one text may be.
const MESSAGE_BYTES: usize = 1_000_000;
const MESSAGES: usize = 12;
/// As large as `http.body_bytes_max` allows.
const BODY_BYTES: usize = 8 << 20;
/// As large as `content.progress_bytes_max` allows.
const PROGRESS_BYTES: usize = (16 << 10) - 2;

/// A gateway that lets slow clients stay for as long as they like.
async fn patient_gateway(models: &ModelServer) -> Gateway {
    let gateway = Gateway::start(&[
        ("TOOLGATE_HTTP_CONNECTIONS_HEADER_TIMEOUT", "10m"),
        ("TOOLGATE_HTTP_CONNECTIONS_WRITE_TIMEOUT", "10m"),
        ("TOOLGATE_HTTP_BODY_TIMEOUT", "10m"),
        ("TOOLGATE_ENGINE_READER_STALL", "10m"),
    ])
    .await;
    let mut config = worker(models);
    config["access"] = json!("public");
    put_agent(&gateway.api(), "worker", &config).await;
    gateway
}

/// A connection that takes next to nothing of what it is sent.
async fn deaf(gateway: &Gateway) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(gateway.address()).await.expect("it listens")
}

fn head(user: &Api, method: &str, path: &str, more: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\n{}{more}\r\n",
        user.header_lines()
    )
}

/// Asks for `path` and reads the first line of the answer only.
async fn unread(gateway: &Gateway, user: &Api, path: &str, accept: &str) -> TcpStream {
    let mut stream = deaf(gateway).await;
    let head = head(user, "GET", path, &format!("accept: {accept}\r\n"));
    stream.write_all(head.as_bytes()).await.expect("it reads headers");
    let mut status = [0; 12];
    soon("an answer", stream.read_exact(&mut status))
        .await
        .expect("an answer");
    stream
}

struct Attacker {
    user: Api,
    space: String,
}

impl Attacker {
    /// A user with a space full of the largest messages.
    async fn new(gateway: &Gateway, number: usize) -> Self {
        let user = gateway.api().as_user(&format!("mallory-{number}"));
        let space = user.post("/v1/spaces", &json!({})).await.text("id");
        let this = Self { user, space };
        for _ in 0..MESSAGES {
            this.say().await;
        }
        this
    }
    async fn say(&self) {
        let path = format!("/v1/spaces/{}/messages", self.space);
        let body = json!({"text": "x".repeat(MESSAGE_BYTES), "respond": false});
        let answer = self.user.post(&path, &body).await;
        assert_eq!(answer.status, 202, "{answer:?}");
    }
    fn events(&self) -> String {
        format!("/v1/spaces/{}/events?limit=500", self.space)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worst_allowed_requests_take_less_than_256_mib() {
    let models = ModelServer::start().await;
    let gateway = patient_gateway(&models).await;
    let mut attackers = Vec::new();
    for number in 0..USERS {
        attackers.push(Attacker::new(&gateway, number).await);
    }
    let report = |what: &str| eprintln!("{what}: {} KiB at most so far", gateway.peak_memory_kib());
    report("large messages stored");
    let mut held = Vec::new();

    // Pages that nobody reads.
    for attacker in &attackers {
        for _ in 0..12 {
            held.push(unread(&gateway, &attacker.user, &attacker.events(), "application/json").await);
        }
    }
    report("unread pages");

    // Chats that nobody reads.
    for attacker in &attackers {
        let chat = json!({"id": "c", "message": {"role": "user", "id": "", "parts": [{"type": "text", "text": "x".repeat(MESSAGE_BYTES)}]}});
        for _ in 0..3 {
            let answer = attacker.user.post("/v1/agents/worker/chat", &chat).await;
            assert!(matches!(answer.status, 200 | 503), "{answer:?}");
        }
        for _ in 0..6 {
            held.push(
                unread(
                    &gateway,
                    &attacker.user,
                    "/v1/agents/worker/chat/c",
                    "application/json",
                )
                .await,
            );
        }
    }
    report("unread chats");

    // Bodies that never end.
    for attacker in &attackers {
        for _ in 0..8 {
            let mut stream = deaf(&gateway).await;
            let more = format!("content-type: application/json\r\ncontent-length: {BODY_BYTES}\r\n");
            let head = head(&attacker.user, "POST", "/v1/spaces", &more);
            stream.write_all(head.as_bytes()).await.expect("it reads headers");
            let piece = vec![b' '; 64 << 10];
            let mut sent = piece.len();
            // One that is given up is closed.
            while sent < BODY_BYTES && soon("it reads", stream.write_all(&piece)).await.is_ok() {
                sent += piece.len();
            }
            held.push(stream);
        }
    }
    report("unfinished bodies");

    // Streams that nobody reads, while much happens.
    for attacker in &attackers {
        for _ in 0..8 {
            held.push(unread(&gateway, &attacker.user, &attacker.events(), "text/event-stream").await);
        }
        for _ in 0..4 {
            let path = format!("/v1/spaces/{}/messages", attacker.space);
            // It may be refused, because this user has too much in memory.
            let large = json!({"text": "x".repeat(MESSAGE_BYTES), "respond": false});
            attacker.user.post(&path, &large).await;
        }
    }
    report("unread streams");
    held.clear();

    // Progress to readers that stand still.
    let run = gateway.api().start("call:ask").await;
    let (run, space) = (run["runId"].as_str().unwrap(), run["spaceId"].as_str().unwrap());
    let call = gateway.api().follow(run, 0).await.offer().await.call().to_owned();
    for _ in 0..16 {
        let path = format!("/v1/spaces/{space}/events");
        held.push(unread(&gateway, &gateway.api(), &path, "text/event-stream").await);
    }
    let progress = json!({"progress": "x".repeat(PROGRESS_BYTES)});
    for _ in 0..400 {
        let answer = gateway
            .api()
            .post(&format!("/v1/calls/{call}/progress"), &progress)
            .await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }
    report("progress");

    // Headers that never end.
    let half = format!("GET / HTTP/1.1\r\nhost: x\r\nx-filler: {}", "x".repeat(15 << 10));
    for _ in 0..900 {
        let mut stream = TcpStream::connect(gateway.address()).await.expect("it listens");
        // One too many is closed.
        let _ = stream.write_all(half.as_bytes()).await;
        held.push(stream);
    }
    report("half-sent headers");

    let answer = gateway.api().as_user("somebody else").get("/v1/spaces").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let peak = gateway.peak_memory_kib();
    assert!(
        peak < PEAK_KIB_MAX,
        "{peak} KiB at most, {PEAK_KIB_MAX} are allowed"
    );
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_ends_because_of_its_bytes_has_a_cursor_like_any_other() {
    let models = ModelServer::start().await;
    let gateway = patient_gateway(&models).await;
    let attacker = Attacker::new(&gateway, 0).await;
    let page = attacker.user.get(&attacker.events()).await;
    let first = page.body["events"].as_array().unwrap().len();
    assert!((1..MESSAGES).contains(&first), "{first} events in one page");
    assert!(page.body["nextCursor"].is_u64());
    let all = attacker
        .user
        .list(&format!("/v1/spaces/{}/events", attacker.space))
        .await;
    assert_eq!(all.len(), MESSAGES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_fast_tokens_cuts_no_stream() {
    const STREAMS: usize = 24;
    const WORDS: usize = 2_000;
    let models = ModelServer::start().await;
    let gateway = Gateway::start(&[("TOOLGATE_VENDORS_PACE", "0ms")]).await;
    let api = gateway.api();
    put_worker(&api, &models).await;
    let mut chats = tokio::task::JoinSet::new();
    for number in 0..STREAMS {
        let api = api.clone();
        chats.spawn(async move {
            let body = json!({"id": format!("c{number}"), "message": format!("text:{WORDS}")});
            let request = api.request(Method::POST, "/v1/agents/worker/chat");
            let answer = request
                .header("content-type", "application/json")
                .body(body.to_string());
            soon("a chat", async {
                answer.send().await.unwrap().text().await.unwrap()
            })
            .await
        });
    }
    while let Some(chat) = chats.join_next().await {
        let text = chat.unwrap();
        let last = format!("w{} ", WORDS - 1);
        let end = &text[text.len().saturating_sub(400)..];
        assert!(text.contains(&last) && end.contains("[DONE]"), "cut: {end}");
    }
}
