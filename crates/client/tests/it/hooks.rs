//! Hooks that need no gateway. Those around a request: `crates/gateway/tests/it/sdk`.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolgate_client::{
    BoxError, ChatRequest, Client, Definition, Hooks, Plugin, RunRequest, Tool, ToolCall, ToolError,
    async_trait,
};

use crate::{client, tool, words};

type Heard = Arc<Mutex<Vec<String>>>;

struct Listener {
    heard: Heard,
    refuse: bool,
}

#[async_trait]
impl Hooks for Listener {
    async fn on_register(&self, client: &Client) -> Result<(), BoxError> {
        let names = client.plugin_names().join(" ");
        self.heard
            .lock()
            .unwrap()
            .push(format!("registered beside {names}"));
        if self.refuse {
            Err("not today".into())
        } else {
            Ok(())
        }
    }
    async fn on_tool_call(&self, call: &ToolCall) -> Option<Result<Value, ToolError>> {
        (call.name == "known").then(|| Ok(json!({"heard": call.input})))
    }
    async fn on_unregister(&self) -> Result<(), BoxError> {
        self.heard.lock().unwrap().push("let go".into());
        Ok(())
    }
}

fn listener(refuse: bool) -> (Plugin, Heard) {
    let heard = Heard::default();
    let hooks = Listener {
        heard: heard.clone(),
        refuse,
    };
    let bare = |name| Tool::without_executor(Definition::new(name, "Has no executor."));
    let plugin = Plugin::new("listener", "1.0.0")
        .tools([bare("known"), bare("unknown")])
        .hooks(hooks);
    (plugin, heard)
}

#[tokio::test]
async fn a_plugin_is_told_when_it_comes_and_when_it_goes() {
    let (plugin, heard) = listener(false);
    let client = client();
    client.use_plugin(plugin).await.unwrap();
    client.unuse("listener").await.unwrap();
    assert_eq!(*heard.lock().unwrap(), ["registered beside listener", "let go"]);
}

#[tokio::test]
async fn a_plugin_that_cannot_begin_is_not_registered() {
    let (plugin, _) = listener(true);
    let client = client();
    let error = client.use_plugin(plugin).await.unwrap_err();
    assert_eq!(error.code(), "PLUGIN_HOOK_FAILED");
    assert!(!client.has_plugin("listener") && !client.has_tool("known"));
}

#[tokio::test]
async fn a_tool_without_an_executor_is_left_to_its_plugins_hook() {
    let (plugin, _) = listener(false);
    let client = client();
    client.use_plugin(plugin).await.unwrap();
    assert_eq!(
        client.try_tool("known", json!(1)).await.unwrap(),
        json!({"heard": 1})
    );
    let words = words(client.try_tool("unknown", json!({})).await);
    assert!(words.contains("has no executor on this client"), "{words}");
}

/// Refuses every request, and remembers the tools that it would have been sent with.
struct Offered(Heard);

#[async_trait]
impl Hooks for Offered {
    async fn before_request(&self, request: RunRequest) -> Result<RunRequest, BoxError> {
        let names = request.client_tools.iter().map(|tool| tool.name.clone());
        self.0.lock().unwrap().extend(names);
        Err("that is all".into())
    }
}

#[tokio::test]
async fn a_chat_offers_only_the_tools_that_it_is_limited_to() {
    let (client, heard) = (client(), Heard::default());
    let plugin = Plugin::new("three", "1.0.0")
        .tools([tool("red"), tool("green"), tool("blue")])
        .hooks(Offered(heard.clone()));
    client.use_plugin(plugin).await.unwrap();
    let chat = client.chat(ChatRequest::new("hi").only(["green"])).await;
    assert_eq!(chat.unwrap_err().code(), "PLUGIN_HOOK_FAILED");
    assert_eq!(*heard.lock().unwrap(), ["green"]);
}
