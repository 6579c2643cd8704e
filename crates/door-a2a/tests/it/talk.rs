//! This door with an engine behind it, asked the way an A2A client asks.

use std::sync::LazyLock;

use axum::body::Body;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use toolgate_a2a::client_tools::URI;
use toolgate_door_a2a::{A2aParts, A2aSettings, router};
use toolgate_engine::push_configs::PushConfigs;
use toolgate_http::describe::document;
use toolgate_testkit_http::client::Client;
use toolgate_testkit_http::contract::Contract;
use toolgate_testkit_http::world::{World, project};

static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(&document([])));

pub async fn world() -> World {
    world_with(A2aSettings::default()).await
}

pub async fn world_with(settings: A2aSettings) -> World {
    World::new(
        &CONTRACT,
        |_| (),
        |ground| {
            let parts = A2aParts {
                default_project: project(1),
                public_url: Some("https://agents.example".into()),
                push: Some(PushConfigs::new(ground.store.clone(), ground.clock.clone())),
                settings,
            };
            router(ground.shared.clone(), parts)
        },
    )
    .await
}

/// A response that was read to its end.
pub struct Told {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Told {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

pub async fn ask(client: &Client<'_>, method: Method, path: &str, body: Option<Value>) -> Told {
    let (client, body) = match body {
        Some(body) => (
            client.with("content-type", "application/json"),
            Body::from(body.to_string()),
        ),
        None => (client.clone(), Body::empty()),
    };
    told(client.raw(method, path, body).await).await
}

pub async fn told(response: http::Response<Body>) -> Told {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Told {
        status: parts.status,
        headers: parts.headers,
        body: serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into()),
    }
}

/// The response to a request of JSON-RPC at `/a2a`.
pub async fn rpc(client: &Client<'_>, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let told = ask(client, Method::POST, "/a2a", Some(body)).await;
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(
        (&told.body["jsonrpc"], &told.body["id"]),
        (&json!("2.0"), &json!(7))
    );
    told.body
}

/// Its result.
pub async fn result(client: &Client<'_>, method: &str, params: Value) -> Value {
    let told = rpc(client, method, params).await;
    assert!(told["error"].is_null(), "{told:#}");
    told["result"].clone()
}

/// The code of its error, and the fields that it names.
pub async fn refused(client: &Client<'_>, method: &str, params: Value) -> (i64, Vec<String>) {
    let told = rpc(client, method, params).await;
    let code = told["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("{told:#}"));
    (code, fields(&told["error"]["data"]))
}

pub fn fields(details: &Value) -> Vec<String> {
    let details = details.as_array().into_iter().flatten();
    let violations = details
        .filter_map(|detail| detail["fieldViolations"].as_array())
        .flatten();
    violations
        .map(|violation| violation["field"].as_str().unwrap().to_owned())
        .collect()
}

/// A message of 1.0 that says this.
pub fn message(words: &str) -> Value {
    json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": words}]})
}

/// The same with tools of the client.
pub fn message_with_tools(words: &str, tools: Value) -> Value {
    let mut message = message(words);
    message["metadata"] = json!({URI: {"tools": tools}});
    message
}

/// A tool that finds out where the client is.
pub fn locate() -> Value {
    json!([{
        "name": "get_location", "description": "Where the client is.",
        "inputSchema": {"type": "object", "properties": {"accuracy_m": {"type": "integer"}}},
    }])
}

/// The parts of a status message that ask for calls, each with its tag.
pub fn calls(task: &Value) -> Vec<Value> {
    let parts = task["status"]["message"]["parts"].as_array();
    let parts = parts.into_iter().flatten();
    parts
        .map(|part| part["metadata"][URI]["toolCall"].clone())
        .filter(|call| !call.is_null())
        .collect()
}

/// A message that carries the result of a call.
pub fn result_message(task: &Value, call: &str, data: Value) -> Value {
    json!({"messageId": "m2", "role": "ROLE_USER", "taskId": task["id"], "parts": [
        {"data": data, "metadata": {URI: {"toolResult": {"callId": call}}}},
    ]})
}

/// A task that waits for the client to run `get_location`, and the id of the call.
pub async fn paused(client: &Client<'_>) -> (Value, String) {
    let words = "call:get_location={\"accuracy_m\":10}";
    let sent = json!({"message": message_with_tools(words, locate())});
    let task = result(client, "SendMessage", sent).await["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task:#}");
    let call = calls(&task)[0]["callId"].as_str().unwrap().to_owned();
    (task, call)
}

/// All text of a task's artifacts.
pub fn text(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    let parts = artifacts
        .filter_map(|artifact| artifact["parts"].as_array())
        .flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

/// A stream that is read event by event.
pub struct Events {
    body: Body,
    text: String,
}

/// One event, with its id where it has one.
pub type Event = (Option<u64>, Value);

impl Events {
    pub async fn open(client: &Client<'_>, method: Method, path: &str, body: Option<Value>) -> Self {
        let client = client
            .with("accept", "text/event-stream")
            .with("content-type", "application/json");
        let body = body.map_or(Body::empty(), |body| Body::from(body.to_string()));
        let response = client.raw(method, path, body).await;
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        if !kind.starts_with("text/event-stream") {
            panic!("{:#}", told(response).await.body);
        }
        Self {
            body: response.into_body(),
            text: String::new(),
        }
    }

    /// A stream of JSON-RPC at `/a2a`.
    pub async fn rpc(client: &Client<'_>, method: &str, params: Value) -> Self {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        Self::open(client, Method::POST, "/a2a", Some(body)).await
    }

    /// The next event; none at the end.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                if let Some(data) = field("data: ") {
                    let mut data: Value = serde_json::from_str(data).unwrap();
                    if data["jsonrpc"] == "2.0" {
                        data = data["result"].take();
                    }
                    return Some((field("id: ").map(|id| id.parse().unwrap()), data));
                }
                continue;
            }
            let frame = self.body.frame().await?.ok()?.into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&frame).unwrap());
        }
    }

    /// Everything up to the end.
    pub async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    /// Everything up to an event with this state.
    pub async fn until(&mut self, state: &str) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            let seen = state_of(&event.1) == state;
            events.push(event);
            if seen {
                return events;
            }
        }
        panic!("the stream ended before {state}: {events:#?}")
    }
}

/// The state that an event tells; empty when it tells none.
pub fn state_of(event: &Value) -> &str {
    let status = [
        &event["task"]["status"],
        &event["statusUpdate"]["status"],
        &event["status"],
    ];
    let state = status.into_iter().find_map(|status| status["state"].as_str());
    state.unwrap_or_default()
}

/// An event in a word: its state, or the text of the artifact.
pub fn brief((id, event): &Event) -> String {
    let id = id.map_or("-".to_owned(), |id| id.to_string());
    let artifact = &event["artifactUpdate"];
    let words = match artifact["artifact"]["parts"][0]["text"].as_str() {
        Some(text) if artifact["append"] == true => format!("+{text}"),
        Some(text) => format!("={text}"),
        None => state_of(event).trim_start_matches("TASK_STATE_").to_owned(),
    };
    let kind = if event["task"].is_object() { "task " } else { "" };
    format!("{id} {kind}{words}")
}
