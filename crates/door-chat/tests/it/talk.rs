//! Turns of a chat, and what is in their chunks.

use serde_json::{Value, json};
use toolgate_testkit_http::client::Client;
use toolgate_testkit_http::world::{World, project};

/// Gives the project's default agent another configuration.
pub async fn configure(world: &World, config: Value) {
    let name = "default".parse().unwrap();
    let put = world.engine.put_agent(project(1), &name, config.into()).await;
    put.unwrap();
}

/// The chunks of a response, without `[DONE]`, which must be its last.
pub fn chunks(body: &Value) -> Vec<Value> {
    let text = body.as_str().unwrap();
    let mut data: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    assert_eq!(data.pop(), Some("[DONE]"), "{text}");
    data.into_iter()
        .map(|chunk| serde_json::from_str(chunk).unwrap())
        .collect()
}

/// The types of chunks, in order, with deltas and our own parts left out.
pub fn types(chunks: &[Value]) -> Vec<&str> {
    let kinds = chunks.iter().map(|chunk| chunk["type"].as_str().unwrap());
    kinds
        .filter(|kind| !kind.ends_with("-delta") && !kind.starts_with("data-"))
        .collect()
}

pub fn words(chunks: &[Value]) -> String {
    chunks
        .iter()
        .filter_map(|chunk| chunk["delta"].as_str())
        .collect()
}

pub fn find<'a>(chunks: &'a [Value], kind: &str) -> &'a Value {
    chunks
        .iter()
        .find(|chunk| chunk["type"] == kind)
        .unwrap_or_else(|| panic!("no {kind} in {chunks:?}"))
}

pub async fn say(client: &Client<'_>, chat: &str, text: &str) -> Vec<Value> {
    let body = json!({"id": chat, "messages": [{"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}]});
    chunks(&client.post("/api/chat", body).await.expect(200))
}

/// Posts what a client posts when the last step of its answer has these parts.
pub async fn go_on(client: &Client<'_>, chat: &str, parts: Value) -> Vec<Value> {
    let body = json!({"id": chat, "messages": [
        {"id": "u", "role": "user", "parts": [{"type": "text", "text": "whatever"}]},
        {"id": "a", "role": "assistant", "parts": parts},
    ]});
    chunks(&client.post("/api/chat", body).await.expect(200))
}

pub fn result(call: &Value, output: Value) -> Value {
    json!([{"type": "step-start"},
        {"type": "tool-ask", "toolCallId": call, "state": "output-available", "input": {}, "output": output}])
}
