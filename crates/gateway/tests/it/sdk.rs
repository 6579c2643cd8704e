//! The Rust SDK against the real binary.

mod chat;
mod hooks;
mod keeping;
mod outage;
mod registry;
mod renamed;
mod serve;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use serde_json::json;
use toolgate_client::{ChatRequest, ChatStream, Chunk, Client, Definition, Tool, ToolError};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Gateway, SECRET_KEY, gateway, soon};

/// A gateway, its model, and a client of it.
struct World {
    models: ModelServer,
    gateway: Gateway,
    client: Client,
}

impl World {
    async fn new() -> Self {
        let models = ModelServer::start().await;
        let gateway = gateway(&models).await;
        let client = client(&gateway);
        Self {
            models,
            gateway,
            client,
        }
    }

    /// Says a script to the agent `worker`.
    fn say(&self, script: &str) -> ChatRequest {
        ChatRequest::new(script).agent("worker")
    }

    /// What the model was shown as results in its last conversation, in order.
    fn results(&self) -> Vec<String> {
        let conversations = self.models.conversations();
        let last = conversations.last().expect("a conversation");
        let results = last.iter().filter(|message| message["role"] == "tool");
        results
            .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

fn client(gateway: &Gateway) -> Client {
    Client::builder(gateway.url()).key(SECRET_KEY).build().unwrap()
}

/// A tool that doubles `n`, and counts how often it ran.
fn double() -> (Tool, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = ran.clone();
    let definition = Definition::new("double", "Doubles a number.")
        .parameters(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}));
    let tool = Tool::new(definition, move |call| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok(json!(call.input["n"].as_i64().unwrap_or_default() * 2)) }
    });
    (tool, ran)
}

fn failing(name: &str) -> Tool {
    Tool::new(Definition::new(name, "Fails."), |_| async {
        Err(ToolError::new("the printer is on fire"))
    })
}

/// Everything a chat yields.
async fn all(mut chat: ChatStream) -> Vec<Chunk> {
    soon("the end of the chat", async {
        let mut chunks = Vec::new();
        while let Some(chunk) = chat.next().await {
            chunks.push(chunk.unwrap());
        }
        chunks
    })
    .await
}
