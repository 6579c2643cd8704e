//! A bridge between an MCP client that starts its servers and the `/mcp` of a running gateway: one line of JSON on
//! standard input is one request over HTTP, and what comes back is written line by line. It knows neither tools nor
//! runs. What it keeps is a legacy session, which it begins anew when the gateway no longer knows it.

mod answer;
mod headers;

use std::collections::HashMap;
use std::io::BufRead as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::task::AbortOnDropHandle;
use toolgate_egress::{Egress, Policy, Proxy};
use toolgate_kernel::id::SpaceId;
use url::Url;

use crate::output;
use answer::Messages;
use headers::{Headers, Parameters, SESSION};

/// Longest line that is read: the largest body that a gateway takes by default, twice.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Lines that were read and wait to be sent.
const LINES_WAITING_MAX: usize = 16;
/// Longest wait for a connection to the gateway.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Longest wait for the answers to requests that are open when standard input ends.
const LAST_ANSWERS_MAX: Duration = Duration::from_secs(10);
/// Longest wait for the answer to `initialize` before what the client sent after it is passed on all the same.
const BEGIN_MAX: Duration = Duration::from_secs(60);
/// Pause before the stream of a session is opened again.
const REOPEN_PAUSE: Duration = Duration::from_secs(2);
/// JSON-RPC code of a request that could not be passed on.
const NOT_PASSED_ON: i32 = -32603;

/// The gateway, and how to enter it.
pub struct Gateway {
    /// Address of its MCP door.
    pub url: Url,
    /// Sent as a bearer token.
    pub key: Option<String>,
    /// Space of every call.
    pub space: Option<SpaceId>,
}

struct Bridge {
    gateway: Gateway,
    http: reqwest::Client,
    session: Mutex<Option<Session>>,
    /// Requests that are not answered yet, by their ids as JSON.
    open: Mutex<HashMap<String, AbortHandle>>,
    parameters: Mutex<Parameters>,
}

/// A session of a client from before 2026-07-28.
#[derive(Clone)]
struct Session {
    id: String,
    version: String,
    /// What began it, to begin it again.
    initialize: Value,
}

/// Passes messages on until standard input ends.
pub async fn run(gateway: Gateway) -> anyhow::Result<()> {
    // The person who types the address may go wherever it leads.
    let policy = Policy::trusted(Proxy::Environment);
    let http = Egress::new().client(policy).streaming(&gateway.url);
    let bridge = Arc::new(Bridge {
        http: http.context("the gateway cannot be reached")?,
        gateway,
        session: Mutex::default(),
        open: Mutex::default(),
        parameters: Mutex::default(),
    });
    let mut lines = lines();
    let mut requests = JoinSet::new();
    let mut notices = None;
    let mut beginning: Option<oneshot::Receiver<()>> = None;
    while let Some(line) = lines.recv().await {
        while requests.try_join_next().is_some() {}
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let Ok(message @ Value::Object(_)) = serde_json::from_str::<Value>(&line) else {
            let error = json!({"code": -32700, "message": "the line is not one JSON-RPC message"});
            write(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
            continue;
        };
        if let Some(begun) = beginning.take() {
            // The session is known once `initialize` is answered, and what comes after it belongs to the session. The
            // sender is dropped with the request.
            let _ = tokio::time::timeout(BEGIN_MAX, begun).await;
        }
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => {
                let (bridge, id) = (bridge.clone(), id.to_string());
                let key = id.clone();
                let owner = bridge.clone();
                let (over, is_over) = oneshot::channel();
                if method == "initialize" {
                    beginning = Some(is_over);
                }
                let task = requests.spawn(async move {
                    bridge.request(message).await;
                    lock(&bridge.open).remove(&id);
                    drop::<oneshot::Sender<()>>(over);
                });
                lock(&owner.open).insert(key, task);
            }
            (Some("notifications/cancelled"), None) if lock(&bridge.session).is_none() => {
                bridge.cancel(&message)
            }
            (method, _) => {
                let begins = method == Some("notifications/initialized");
                bridge.notify(&message).await;
                if begins {
                    notices = Some(AbortOnDropHandle::new(tokio::spawn(bridge.clone().follow())));
                }
            }
        }
    }
    // The client has closed its side and may still read.
    let rest = async { while requests.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_ANSWERS_MAX, rest).await;
    drop(notices);
    bridge.end().await;
    Ok(())
}

impl Bridge {
    /// Sends a request and writes its answer. A session that the gateway no longer knows is begun again, once.
    async fn request(&self, message: Value) {
        let id = message["id"].clone();
        for is_last in [false, true] {
            match self.send(&message).await {
                Ok(response)
                    if response.status() == StatusCode::NOT_FOUND && !is_last && self.begin_again().await => {
                }
                Ok(response) => return self.pass_on(response, &message).await,
                Err(words) => return self.fail(&id, &words),
            }
        }
    }

    async fn pass_on(&self, response: Response, request: &Value) {
        let id = &request["id"];
        let status = response.status();
        let session = response
            .headers()
            .get(SESSION)
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        let mut messages = Messages::of(response);
        let mut is_answered = false;
        loop {
            match messages.next().await {
                Ok(Some(message)) => {
                    if message.get("id") == Some(id) && message.get("method").is_none() {
                        is_answered = true;
                        self.learn(request, &message, session.clone());
                    }
                    write(&message);
                }
                Ok(None) if is_answered => return,
                Ok(None) => {
                    let words = messages
                        .words()
                        .unwrap_or_else(|| format!("the gateway answered with {status}"));
                    return self.fail(id, &words);
                }
                // Whatever broke off after the answer held nothing more.
                Err(_) if is_answered => return,
                Err(words) => return self.fail(id, &words),
            }
        }
    }

    /// Keeps what later requests need: the session, and which parameters are sent as headers.
    fn learn(&self, request: &Value, answer: &Value, session: Option<String>) {
        match (request["method"].as_str(), session) {
            (Some("initialize"), Some(id)) => {
                let version = answer["result"]["protocolVersion"].as_str().unwrap_or_default();
                *lock(&self.session) = Some(Session {
                    id,
                    version: version.to_owned(),
                    initialize: request.clone(),
                });
            }
            (Some("tools/list"), _) => lock(&self.parameters).learn(&answer["result"]["tools"]),
            _ => {}
        }
    }

    /// Sends a message that is not answered.
    async fn notify(&self, message: &Value) {
        match self.send(message).await {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => note(&format!("the gateway answered with {}", response.status())),
            Err(words) => note(&words),
        }
    }

    /// Closes the request that a modern client cancels: over HTTP that is the cancellation.
    fn cancel(&self, message: &Value) {
        let id = message["params"]["requestId"].to_string();
        if let Some(request) = lock(&self.open).remove(&id) {
            request.abort();
        }
    }

    /// Begins the session again that the gateway no longer knows; false when there was none.
    async fn begin_again(&self) -> bool {
        let Some(before) = lock(&self.session).take() else {
            return false;
        };
        let Ok(response) = self.send(&before.initialize).await else {
            return false;
        };
        let id = response
            .headers()
            .get(SESSION)
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        let Some(id) = id else { return false };
        *lock(&self.session) = Some(Session { id, ..before });
        self.notify(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        true
    }

    /// Writes what the gateway says of its own accord, for as long as there is a session.
    async fn follow(self: Arc<Self>) {
        loop {
            let Some(session) = lock(&self.session).clone() else {
                return;
            };
            let request = self
                .http
                .get(self.gateway.url.clone())
                .header("accept", "text/event-stream");
            let request = self.enter(request).header(SESSION, &session.id);
            let request = request.header("mcp-protocol-version", &session.version);
            if let Ok(response) = request.send().await {
                let mut messages = Messages::of(response);
                while let Ok(Some(message)) = messages.next().await {
                    write(&message);
                }
            }
            tokio::time::sleep(REOPEN_PAUSE).await;
        }
    }

    /// Ends the session, if there is one.
    async fn end(&self) {
        let Some(session) = lock(&self.session).take() else {
            return;
        };
        let request = self.enter(self.http.delete(self.gateway.url.clone()));
        let request = request.header(SESSION, &session.id).timeout(CONNECT_MAX);
        // A gateway that is gone has no session either.
        let _ = request.send().await;
    }

    async fn send(&self, message: &Value) -> Result<Response, String> {
        let session = lock(&self.session).clone();
        let session = session.filter(|_| message["method"] != "initialize");
        let headers = Headers::of(message, session.as_ref().map(|session| session.version.as_str()));
        let headers = headers.with_parameters(message, &lock(&self.parameters));
        let mut request = self
            .http
            .post(self.gateway.url.clone())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in headers.into_inner() {
            request = request.header(name, value);
        }
        if let Some(session) = &session {
            request = request.header(SESSION, &session.id);
        }
        let sent = self.enter(request).body(message.to_string()).send().await;
        sent.map_err(|error| self.unreached(&error))
    }

    fn enter(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(key) = &self.gateway.key {
            request = request.bearer_auth(key);
        }
        if let Some(space) = self.gateway.space {
            request = request.header("toolgate-space-id", space.to_string());
        }
        request
    }

    fn unreached(&self, error: &reqwest::Error) -> String {
        let url = self.gateway.url.origin().ascii_serialization();
        match error.is_connect() {
            true => format!(
                "no gateway answers at {url}; start it with `toolgate serve`, or name another with --url"
            ),
            false => format!(
                "the request to {url} broke off: {}",
                error.to_string().replace('\n', " ")
            ),
        }
    }

    fn fail(&self, id: &Value, words: &str) {
        note(words);
        let error = json!({"code": NOT_PASSED_ON, "message": words});
        write(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }
}

/// The lines of standard input. A thread reads them: it waits where nothing can wake it.
fn lines() -> mpsc::Receiver<anyhow::Result<String>> {
    let (lines, read) = mpsc::channel(LINES_WAITING_MAX);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let line = read_line(&mut input);
            let is_last = !matches!(line, Ok(Some(_)));
            let Some(line) = line.transpose() else { return };
            if lines.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    read
}

/// The next line; none at the end.
fn read_line(input: &mut impl std::io::BufRead) -> anyhow::Result<Option<String>> {
    let mut line = Vec::new();
    let mut limited = std::io::Read::take(&mut *input, LINE_BYTES_MAX as u64 + 1);
    let read = limited
        .read_until(b'\n', &mut line)
        .context("standard input broke off")?;
    anyhow::ensure!(
        line.len() <= LINE_BYTES_MAX,
        "a line has more than {LINE_BYTES_MAX} bytes, which no gateway takes"
    );
    match read {
        0 => Ok(None),
        _ => Ok(Some(String::from_utf8(line).context("a line is not UTF-8")?)),
    }
}

/// Writes one message. A reader that is gone closes standard input too.
fn write(message: &Value) {
    if let Err(error) = output::print(&format!("{message}\n")) {
        note(&format!("standard output cannot be written: {error}"));
    }
}

/// For the person who looks into the client's log.
fn note(words: &str) {
    eprintln!("toolgate mcp: {words}");
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
