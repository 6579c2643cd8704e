//! An MCP client that says exactly what a test wants.

use std::sync::LazyLock;

use axum::body::Body;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use toolgate_door_mcp::{Entrance, McpParts, router};
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_http::describe::document;
use toolgate_testkit_http::client::Client;
use toolgate_testkit_http::contract::Contract;
use toolgate_testkit_http::world::{World, WorldSettings};

/// The newest revision.
pub const MODERN: &str = "2026-07-28";
/// The newest revision with sessions.
pub const LEGACY: &str = "2025-11-25";

// MCP describes itself: nothing of it stands in the document.
static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(&document([])));

/// A gateway with this door alone.
pub async fn world() -> World {
    world_with(|_| (), Vec::new()).await
}

/// The same, with other settings.
pub async fn world_with(change: impl FnOnce(&mut WorldSettings), hosts: Vec<String>) -> World {
    World::new(&CONTRACT, change, |ground| {
        let parts = McpParts {
            workspace: Workspace::new(ground.store.clone(), WorkspaceLimits::default()),
            records: ground.store.clone(),
            entrance: Entrance {
                public_url: None,
                hosts,
                authorization_servers: vec!["https://login.example".into()],
            },
        };
        router(ground.shared.clone(), parts)
    })
    .await
}

/// What a modern client declares.
#[derive(Clone, Copy, Default)]
pub struct Can {
    pub tasks: bool,
    pub elicit: bool,
}

pub const NOTHING: Can = Can {
    tasks: false,
    elicit: false,
};
pub const TASKS: Can = Can {
    tasks: true,
    elicit: false,
};
pub const ELICIT: Can = Can {
    tasks: false,
    elicit: true,
};

impl Can {
    fn capabilities(self) -> Value {
        let mut declared = json!({});
        if self.tasks {
            declared["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        if self.elicit {
            declared["elicitation"] = json!({"form": {}});
        }
        declared
    }
}

/// The answer to one request.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Every message of the answer, in order: notices and the response.
    pub messages: Vec<Value>,
}

impl Answer {
    /// The result.
    pub fn result(&self) -> &Value {
        let response = self
            .messages
            .iter()
            .find(|message| message.get("result").is_some());
        &response.unwrap_or_else(|| panic!("no result: {} {:?}", self.status, self.messages))["result"]
    }
    /// The error.
    pub fn error(&self) -> &Value {
        let response = self
            .messages
            .iter()
            .find(|message| message.get("error").is_some());
        &response.unwrap_or_else(|| panic!("no error: {} {:?}", self.status, self.messages))["error"]
    }
    /// Notices of this method.
    pub fn notices(&self, method: &str) -> Vec<&Value> {
        let all = self.messages.iter();
        all.filter(|message| message["method"] == method).collect()
    }
}

/// A modern request: everything stands in it.
pub fn modern(method: &str, mut params: Value, can: Can) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can.capabilities();
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Sends a modern request to `/mcp`.
pub async fn ask(client: &Client<'_>, method: &str, params: Value, can: Can) -> Answer {
    read(send(client, &modern(method, params, can)).await).await
}

/// Calls a tool as a modern client.
pub async fn call(client: &Client<'_>, tool: &str, arguments: Value, can: Can) -> Answer {
    let params = json!({"name": tool, "arguments": arguments});
    ask(client, "tools/call", params, can).await
}

/// Posts one message to `/mcp`, with the headers that go with it.
pub async fn send(client: &Client<'_>, message: &Value) -> http::Response<Body> {
    post(client, "/mcp", message).await
}

/// The same to another address.
pub async fn post(client: &Client<'_>, path: &str, message: &Value) -> http::Response<Body> {
    let mut client = client
        .with("accept", "application/json, text/event-stream")
        .with("content-type", "application/json")
        .with("host", "127.0.0.1:8787");
    let params = &message["params"];
    let version = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
    if let Some(version) = version.as_str() {
        client = client
            .with("mcp-protocol-version", version)
            .with("mcp-method", message["method"].as_str().unwrap_or_default());
        for name in ["name", "uri", "taskId"] {
            if let Some(name) = params[name].as_str() {
                client = client.with("mcp-name", name);
            }
        }
    }
    client
        .raw(Method::POST, path, Body::from(message.to_string()))
        .await
}

/// Reads an answer to its end, whichever form it has.
pub async fn read(response: http::Response<Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let kind = parts
        .headers
        .get("content-type")
        .map_or("", |kind| kind.to_str().unwrap());
    let messages = match kind {
        "text/event-stream" => events(&text),
        kind if kind.ends_with("json") => vec![serde_json::from_str(&text).unwrap()],
        _ => Vec::new(),
    };
    Answer {
        status: parts.status,
        headers: parts.headers,
        messages,
    }
}

/// The messages of an event stream.
pub fn events(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let data = lines.map(str::trim).filter(|data| !data.is_empty());
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// A client with a legacy session.
pub struct Session<'w> {
    client: Client<'w>,
    next: std::cell::Cell<u64>,
}

impl<'w> Session<'w> {
    /// Begins one.
    pub async fn begin(client: &Client<'w>, capabilities: Value) -> Self {
        let answer = Self::try_begin(client, capabilities).await;
        let id = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
        assert_eq!(answer.result()["protocolVersion"], LEGACY);
        let session = Self {
            client: client
                .with("mcp-session-id", &id)
                .with("mcp-protocol-version", LEGACY),
            next: 2.into(),
        };
        let told = session
            .post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        assert_eq!(told.status, StatusCode::ACCEPTED);
        session
    }
    /// Sends `initialize`.
    pub async fn try_begin(client: &Client<'w>, capabilities: Value) -> Answer {
        let params = json!({
            "protocolVersion": LEGACY, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        read(send(client, &message).await).await
    }
    /// Sends a request and reads its answer.
    pub async fn ask(&self, method: &str, params: Value) -> Answer {
        self.post(self.request(method, params)).await
    }
    /// A request with the next id.
    pub fn request(&self, method: &str, params: Value) -> Value {
        let id = self.next.replace(self.next.get() + 1);
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }
    /// Sends any message and reads its answer.
    pub async fn post(&self, message: Value) -> Answer {
        read(send(&self.client, &message).await).await
    }
    /// Sends a request and gives its answer as it comes.
    pub async fn open(&self, message: Value) -> http::Response<Body> {
        send(&self.client, &message).await
    }
    /// The client with the session's headers.
    pub fn client(&self) -> &Client<'w> {
        &self.client
    }
}

/// The messages of an answer that is read as it comes.
pub struct Incoming {
    body: Body,
    text: String,
}

impl Incoming {
    pub fn of(response: http::Response<Body>) -> Self {
        Self {
            body: response.into_body(),
            text: String::new(),
        }
    }
    /// The next message; none at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                if let Some(message) = events(&event).pop() {
                    return Some(message);
                }
            }
            let frame = self.body.frame().await?.unwrap();
            let data = frame.into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }
}
