//! A server outside the gateway, on a free loopback port that holds what it is asked until a test opens it.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::soon;

/// Stands in everything that the server says.
pub const MARK: &str = "MARKED";
/// A picture of one point.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// Bytes of `/large`: more than a conversation takes.
const LARGE_BYTES: usize = 300 * 1024;
/// Longest request that is read.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// The server; ends with this value.
pub struct Outside {
    /// `127.0.0.1:port`.
    pub address: String,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

/// What it was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Path and query as they came over the wire.
    pub target: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("text"))
    }
}

struct Shared {
    asked: Mutex<Vec<Asked>>,
    state: watch::Sender<Holding>,
}

#[derive(Default)]
struct Holding {
    open: bool,
    /// Requests that were held so far.
    held: usize,
    /// Held requests whose connection is gone.
    let_go: usize,
}

impl Outside {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let shared = Arc::new(Shared {
            asked: Mutex::default(),
            state: watch::Sender::default(),
        });
        let app = Router::new().fallback(answer).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
        Self {
            address,
            shared,
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Settings of a gateway whose tools reach this server for everything.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("TOOLGATE_OUTSIDE_ALLOW", self.address.clone()),
            ("TOOLGATE_SEARCH_ENGINE", "searxng".into()),
            ("TOOLGATE_SEARCH_BASE_URL", self.url("")),
            ("TOOLGATE_IMAGES_BASE_URL", self.url("/v1")),
            ("TOOLGATE_NOTIFICATIONS_WEBHOOK_URL", self.url("/hook")),
        ]
    }

    /// Waits until so many requests were held.
    pub async fn held(&self, count: usize) {
        self.until(&format!("{count} requests"), |state| state.held >= count)
            .await;
    }

    /// Waits until every held request was given up by whoever made it.
    pub async fn let_go(&self) {
        self.until("the end of all requests", |state| state.let_go == state.held)
            .await;
    }

    async fn until(&self, what: &str, wanted: impl FnMut(&Holding) -> bool) {
        let mut state = self.shared.state.subscribe();
        soon(what, state.wait_for(wanted))
            .await
            .expect("the server lives");
    }

    /// Answers from now on. What is held stays held.
    pub fn open(&self) {
        self.shared.state.send_modify(|state| state.open = true);
    }

    /// What was asked at a path.
    pub fn asked(&self, path: &str) -> Vec<Asked> {
        let at = |asked: &Asked| asked.target.split('?').next() == Some(path);
        self.all().into_iter().filter(at).collect()
    }

    /// All that was asked.
    pub fn all(&self) -> Vec<Asked> {
        self.shared.asked.lock().expect("no panic while locked").clone()
    }
}

/// A request that is held, for as long as its connection lasts.
struct Held<'s>(&'s Shared);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.let_go += 1);
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, REQUEST_BYTES_MAX)
        .await
        .expect("a small body");
    let asked = Asked {
        target: head.uri.to_string(),
        headers: head.headers,
        body: String::from_utf8(body.to_vec()).expect("text"),
    };
    shared
        .asked
        .lock()
        .expect("no panic while locked")
        .push(asked.clone());
    let path = head.uri.path();
    // Manners and deliveries are not what tests hold.
    let free = matches!(path, "/robots.txt" | "/hook");
    if !free && !shared.state.borrow().open {
        let _held = Held(&shared);
        shared.state.send_modify(|state| state.held += 1);
        std::future::pending::<()>().await;
    }
    let (kind, body) = said(path, &asked);
    let status = if path == "/robots.txt" { 404 } else { 200 };
    let response = Response::builder().status(status).header("content-type", kind);
    response.body(Body::from(body)).expect("an answer")
}

fn said(path: &str, asked: &Asked) -> (&'static str, String) {
    let json = |value: Value| ("application/json", value.to_string());
    match path {
        "/page" => (
            "text/html",
            format!("<title>A page</title><article><p>{MARK} words.</p></article>"),
        ),
        "/large" => ("text/plain", MARK.repeat(LARGE_BYTES / MARK.len())),
        "/search" => {
            json(json!({"results": [{"url": "https://example.com", "title": "An example", "content": MARK}]}))
        }
        "/v1/images/generations" => json(json!({"data": [{"b64_json": PICTURE}]})),
        path if path.starts_with("/echo/") => {
            let headers = asked
                .headers
                .iter()
                .map(|(name, value)| format!("{name}: {value:?}"));
            json(json!({
                "to": asked.target, "headers": headers.collect::<Vec<_>>(), "body": asked.body,
            }))
        }
        _ => json(json!({"said": MARK})),
    }
}
