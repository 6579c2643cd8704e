//! A caller that says exactly what a test wants: a user or the project's backend.

use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use toolgate_testkit_http::world::{FAR, OTHER_SECRET, PUBLIC, SECRET, token};

use crate::gateway::soon;

pub const MODERN: &str = "2026-07-28";

/// Somebody who calls a server through the gateway.
#[derive(Clone)]
pub struct Caller {
    url: String,
    headers: Vec<(&'static str, String)>,
}

impl Caller {
    /// A user of the project.
    pub fn user(url: &str, name: &str) -> Self {
        let jwt = token(json!({"sub": name, "exp": FAR}));
        Self {
            url: url.to_owned(),
            headers: vec![
                ("x-public-key", PUBLIC.to_owned()),
                ("authorization", format!("Bearer {jwt}")),
            ],
        }
    }

    /// The project's backend.
    pub fn backend(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            headers: vec![("authorization", format!("Bearer {SECRET}"))],
        }
    }

    /// The backend of another project.
    pub fn other_backend(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            headers: vec![("authorization", format!("Bearer {OTHER_SECRET}"))],
        }
    }

    /// The same with one more header.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sends a message as it is.
    pub async fn send(&self, message: &Value) -> Response {
        let request = self.enter(reqwest::Client::new().post(&self.url));
        let request = request
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        let sent = request.body(message.to_string()).send();
        soon("response", sent).await.unwrap()
    }

    /// Sends a request of 2026-07-28, whose client declares everything, and gives its answer as it comes.
    pub async fn open(&self, method: &str, params: Value) -> Response {
        let everything = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        self.open_with(method, params, everything).await
    }

    /// The same for a client with these capabilities.
    pub async fn open_with(&self, method: &str, mut params: Value, capabilities: Value) -> Response {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        let mut caller = self
            .clone()
            .with("mcp-protocol-version", MODERN)
            .with("mcp-method", method);
        for name in ["name", "uri", "taskId"] {
            if let Some(name) = params[name].as_str() {
                caller = caller.with("mcp-name", name);
            }
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        caller.send(&message).await
    }

    /// The same, read to its response.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        response(self.open(method, params).await).await
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": {}}))
            .await
    }

    /// Sends `initialize` of 2025-11-25.
    pub async fn initialize(&self) -> Response {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
                            "clientInfo": {"name": "test", "version": "1"}});
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
            .await
    }

    /// Begins a session.
    pub async fn session(&self) -> Self {
        let opened = self.initialize().await;
        assert_eq!(opened.status(), StatusCode::OK);
        let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        drop(opened);
        let session = self.clone().with("mcp-session-id", &session);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.send(&ready).await.status(), StatusCode::ACCEPTED);
        session
    }

    /// Opens the stream of a session that carries what belongs to no request.
    pub async fn listen(&self) -> Response {
        let request = self.enter(reqwest::Client::new().get(&self.url));
        let request = request.header("accept", "text/event-stream");
        soon("stream", request.send()).await.unwrap()
    }

    /// Ends a session.
    pub async fn leave(&self) -> StatusCode {
        let request = self.enter(reqwest::Client::new().delete(&self.url));
        soon("delete", request.send()).await.unwrap().status()
    }

    /// Calls a tool in a session.
    pub async fn call_in_session(&self, tool: &str) -> Response {
        let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": "p"}});
        self.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}))
            .await
    }

    fn enter(&self, mut request: RequestBuilder) -> RequestBuilder {
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request
    }
}

/// The messages of an answer, as they come.
pub struct Incoming {
    response: Response,
    text: String,
}

impl Incoming {
    pub fn of(response: Response) -> Self {
        Self {
            response,
            text: String::new(),
        }
    }

    /// The next message; none at the end.
    pub async fn next(&mut self) -> Option<Value> {
        let next = async {
            loop {
                if let Some(end) = self.text.find("\n\n") {
                    let event: String = self.text.drain(..end + 2).collect();
                    if let Some(data) = event.strip_prefix("data: ") {
                        return Some(serde_json::from_str(data).unwrap());
                    }
                    continue;
                }
                match self.response.chunk().await.unwrap() {
                    Some(chunk) => self.text.push_str(std::str::from_utf8(&chunk).unwrap()),
                    None => return serde_json::from_str(&std::mem::take(&mut self.text)).ok(),
                }
            }
        };
        soon("message", next).await
    }
}

/// Reads an answer to its response.
pub async fn response(answer: Response) -> Value {
    let mut incoming = Incoming::of(answer);
    loop {
        let message = incoming.next().await.expect("the answer has a response");
        if message.get("result").is_some() || message.get("error").is_some() {
            return message;
        }
    }
}

/// Waits until something holds.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    soon(what, waiting).await;
}
