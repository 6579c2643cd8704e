//! A language model that follows a script: an OpenAI-compatible server on a free loopback port.
//!
//! The script ([`Script`]) stands in the system prompt after `script:`, or else in the last user message.
//! Requests are recorded, so that a test can assert on what the model has seen.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::convert::Infallible;
use std::hash::{Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use bytes::Bytes;
use futures_util::stream;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::model_script::{Fault, Script};

/// Most recorded conversations.
const CONVERSATIONS_MAX: usize = 256;

/// A running model server; it stops when dropped.
pub struct ModelServer {
    base_url: String,
    state: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

struct Shared {
    seen: Mutex<Seen>,
    /// One permit per held reply that may continue.
    gate: Semaphore,
    /// Number of replies held so far.
    held: watch::Sender<u64>,
    /// Most bytes of messages that a request may have; 0 for any number.
    window: AtomicUsize,
    /// Requests refused for their length.
    refused: AtomicU64,
}

/// Recorded requests.
#[derive(Default)]
struct Seen {
    requests: u64,
    /// Number of requests per conversation.
    attempts: HashMap<u64, u32>,
    /// Contents of each call's result.
    results: BTreeMap<String, BTreeSet<String>>,
    conversations: VecDeque<Arc<Vec<Value>>>,
}

impl ModelServer {
    /// Listens on a free port.
    pub async fn start() -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into()).await
    }

    /// The same, at another address of this machine.
    pub async fn start_at(address: IpAddr) -> Self {
        let listener = TcpListener::bind((address, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Shared {
            seen: Mutex::default(),
            gate: Semaphore::new(0),
            held: watch::Sender::new(0),
            window: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        });
        let app = Router::new()
            .route("/v1/chat/completions", post(complete))
            .with_state(state.clone());
        let task = tokio::spawn(async move {
            axum::serve(listener, app)
                .await
                .expect("serving needs no more than the port");
        });
        Self {
            base_url: format!("http://{address}/v1"),
            state,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Value for an agent's `model.baseUrl`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Refuses requests whose messages have more bytes from now on, in the words of OpenAI.
    pub fn set_window(&self, bytes: usize) {
        self.state.window.store(bytes, Ordering::Relaxed);
    }

    /// Number of requests that were refused for their length.
    pub fn refused(&self) -> u64 {
        self.state.refused.load(Ordering::Relaxed)
    }

    /// Number of requests.
    pub fn requests(&self) -> u64 {
        self.seen(|seen| seen.requests)
    }

    /// Distinct contents that the model got as the result of `call`: one, if all is well.
    pub fn results(&self, call: &str) -> Vec<String> {
        self.seen(|seen| seen.results.get(call).into_iter().flatten().cloned().collect())
    }

    /// The last recorded conversations, oldest first.
    pub fn conversations(&self) -> Vec<Arc<Vec<Value>>> {
        self.seen(|seen| seen.conversations.iter().cloned().collect())
    }

    /// Waits until `count` replies have been held in total.
    pub async fn held(&self, count: u64) {
        let mut held = self.state.held.subscribe();
        held.wait_for(|so_far| *so_far >= count)
            .await
            .expect("the server lives");
    }

    /// Releases `count` held replies, also ones that are held later.
    pub fn release(&self, count: usize) {
        self.state.gate.add_permits(count);
    }

    fn seen<T>(&self, read: impl FnOnce(&Seen) -> T) -> T {
        read(&self.state.seen.lock().expect("no panic while locked"))
    }
}

async fn complete(State(state): State<Arc<Shared>>, body: Bytes) -> Response {
    let messages = match serde_json::from_slice::<Value>(&body) {
        Ok(mut request) if request["messages"].is_array() => match request["messages"].take() {
            Value::Array(messages) => messages,
            _ => unreachable!("just looked"),
        },
        _ => return StatusCode::BAD_REQUEST.into_response(),
    };
    let bytes: usize = messages.iter().map(|message| text_of(message).len()).sum();
    let window = state.window.load(Ordering::Relaxed);
    if window > 0 && bytes > window {
        state.refused.fetch_add(1, Ordering::Relaxed);
        return too_long(window, bytes);
    }
    let asked = messages.iter().rposition(|message| message["role"] == "user");
    let since = &messages[asked.map_or(0, |at| at + 1)..];
    let results = since.iter().filter(|message| message["role"] == "tool").count();
    let script = Script::read(&script_text(&messages));
    let attempt = state.seen.lock().expect("no panic while locked").note(messages);
    let fault = script.fault.filter(|_| attempt == 1);
    if let Some(Fault::Fail(status)) = fault {
        return StatusCode::from_u16(status).expect("a status").into_response();
    }
    Reply {
        frames: script.frames(results).into(),
        sent: 0,
        script,
        fault,
        state,
    }
    .into_response()
}

fn too_long(window: usize, bytes: usize) -> Response {
    let message = format!(
        "This model's maximum context length is {window} tokens. However, your messages resulted in {bytes} tokens. \
         Please reduce the length of the messages."
    );
    let error = serde_json::json!({"error": {
        "message": message, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
    }});
    (
        StatusCode::BAD_REQUEST,
        [("content-type", "application/json")],
        error.to_string(),
    )
        .into_response()
}

impl Seen {
    /// Records a conversation and returns its number of requests so far.
    fn note(&mut self, messages: Vec<Value>) -> u32 {
        self.requests += 1;
        for message in messages.iter().filter(|message| message["role"] == "tool") {
            let call = message["tool_call_id"].as_str().unwrap_or_default();
            let contents = self.results.entry(call.into()).or_default();
            contents.insert(text_of(message));
        }
        let mut hasher = DefaultHasher::new();
        messages
            .iter()
            .for_each(|message| message.to_string().hash(&mut hasher));
        let attempt = self.attempts.entry(hasher.finish()).or_default();
        *attempt += 1;
        self.conversations.push_back(Arc::new(messages));
        if self.conversations.len() > CONVERSATIONS_MAX {
            self.conversations.pop_front();
        }
        *attempt
    }
}

fn script_text(messages: &[Value]) -> String {
    let of = |role: &str| {
        messages
            .iter()
            .rfind(|message| message["role"] == role)
            .map(text_of)
    };
    of("system")
        .and_then(|system| Some(system.split_once("script:")?.1.to_owned()))
        .or_else(|| of("user"))
        .unwrap_or_default()
}

/// Text of a message's content: a string, or a list of parts of which only text parts count.
fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// A reply being streamed.
struct Reply {
    frames: VecDeque<String>,
    sent: usize,
    script: Script,
    fault: Option<Fault>,
    state: Arc<Shared>,
}

impl Reply {
    fn into_response(self) -> Response {
        let body = Body::from_stream(stream::try_unfold(self, Self::next));
        ([("content-type", "text/event-stream")], body).into_response()
    }

    async fn next(mut self) -> Result<Option<(Bytes, Self)>, std::io::Error> {
        match self.fault {
            Some(Fault::Cut(after)) if self.sent >= after => {
                return Err(std::io::ErrorKind::ConnectionReset.into());
            }
            Some(Fault::Hang(after)) if self.sent >= after => {
                match std::future::pending::<Infallible>().await {}
            }
            _ => {}
        }
        if self.script.hold == Some(self.sent) {
            self.state.held.send_modify(|held| *held += 1);
            self.state.gate.acquire().await.expect("never closed").forget();
        }
        if self.sent > 0 && !self.script.delay.is_zero() {
            tokio::time::sleep(self.script.delay).await;
        }
        self.sent += 1;
        Ok(self.frames.pop_front().map(|frame| (frame.into(), self)))
    }
}
