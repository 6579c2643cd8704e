//! Hooks around a request.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolgate_client::{BoxError, Hooks, Plugin, Reply, RunRequest, async_trait};

use super::{World, double};

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

struct Adds {
    word: &'static str,
    heard: Heard,
}

#[async_trait]
impl Hooks for Adds {
    async fn before_request(&self, request: RunRequest) -> Result<RunRequest, BoxError> {
        self.heard.note(format!(
            "{} sees {} and {} tools",
            self.word,
            request.message,
            request.client_tools.len()
        ));
        Ok(RunRequest {
            message: format!("{} {}", request.message, self.word),
            metadata: Some(json!({"by": self.word})),
            ..request
        })
    }
    async fn after_response(&self, reply: &Reply) {
        self.heard
            .note(format!("{} hears {}", self.word, reply.text.trim()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_pass_the_hooks_in_order_and_replies_are_heard() {
    let world = World::new().await;
    let heard = Heard::default();
    for word in ["one", "two"] {
        let hooks = Adds {
            word,
            heard: heard.clone(),
        };
        world
            .client
            .use_plugin(Plugin::new(word, "1.0.0").hooks(hooks))
            .await
            .unwrap();
    }
    world.client.register_tool(double().0).await.unwrap();
    world.client.chat(world.say("text:1")).await.unwrap();
    assert_eq!(
        *heard.0.lock().unwrap(),
        [
            "one sees text:1 and 1 tools",
            "two sees text:1 one and 1 tools",
            "one hears w0",
            "two hears w0",
        ]
    );
    let said = &world.models.conversations()[0];
    assert!(
        said.iter()
            .any(|message| message["content"].to_string().contains("text:1 one two")),
        "{said:?}"
    );
}

struct Refuses;

#[async_trait]
impl Hooks for Refuses {
    async fn before_request(&self, _: RunRequest) -> Result<RunRequest, BoxError> {
        Err("not on a Sunday".into())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_refuses_keeps_the_message_from_being_sent() {
    let world = World::new().await;
    world
        .client
        .use_plugin(Plugin::new("strict", "1").hooks(Refuses))
        .await
        .unwrap();
    let error = world.client.chat(world.say("text:1")).await.unwrap_err();
    assert_eq!(error.code(), "PLUGIN_HOOK_FAILED");
    assert_eq!(world.models.requests(), 0);
}
