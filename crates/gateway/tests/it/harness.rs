//! What the suites share: the process, the HTTP client, the agent they talk to, seeded randomness.

mod api;
pub mod client;
mod events;
pub mod ledger;
mod outside;
mod process;
pub mod shown;
pub mod stored;

pub use api::{Answer, Api, answer as api_answer};
pub use events::{Event, EventStream};
pub use outside::{Asked, MARK, Outside};
pub use process::{Gateway, Place, Version, binary, free_port};

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

/// Longest wait for anything that should happen soon: generous, because it only matters when a test fails.
pub const SOON: Duration = Duration::from_secs(60);
/// Pause between two looks at something that cannot be awaited.
pub const LOOK: Duration = Duration::from_millis(5);

/// Keys of the default project in every suite.
pub const SECRET_KEY: &str = "sk_test_0123456789abcdef";
pub const PUBLIC_KEY: &str = "pk_test_0123456789abcdef";
pub const JWT_SECRET: &str = "a secret that only tests know, long enough for HS256";

/// Gives up, with `what` in the message, when `work` takes too long.
pub async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(SOON, work).await {
        Ok(done) => done,
        Err(_) => panic!("{what} did not happen within {SOON:?}"),
    }
}

/// A gateway with the agent `worker`, which does what the script in a message says.
pub async fn gateway(models: &ModelServer) -> Gateway {
    let gateway = Gateway::start(&[]).await;
    put_worker(&gateway.api(), models).await;
    gateway
}

/// Stores the agent `worker`.
pub async fn put_worker(api: &Api, models: &ModelServer) {
    put_agent(api, "worker", &worker(models)).await;
}

/// Limits of a gateway whose plans are due within seconds, and are many.
pub const SOON_DUE: [(&str, &str); 2] = [
    ("TOOLGATE_PLANS_AHEAD_MIN", "1ms"),
    ("TOOLGATE_PLANS_STARTS_PER_HOUR", "100000"),
];

/// Stores the agents of clients under load: `worker`, which makes plans, too, and `chief`, which asks `clerk`.
pub async fn put_staff(api: &Api, models: &ModelServer) {
    let mut config = worker(models);
    let plan =
        json!({"name": "createPlan", "executionType": "prebuilt", "execution": {"action": "createPlan"}});
    config["tools"].as_array_mut().expect("tools").push(plan);
    put_agent(api, "worker", &config).await;
    put_agent(api, "clerk", &worker(models)).await;
    let mut chief = worker(models);
    let child = json!({"executionType": "ai-agent", "parameters": {
        "type": "object", "properties": {"prompt": {"type": "string"}}}});
    chief["tools"] = json!([tool("helper", json!({"agent": "clerk"}), child)]);
    put_agent(api, "chief", &chief).await;
}

/// Stores an agent.
pub async fn put_agent(api: &Api, name: &str, config: &Value) {
    let answer = api.put(&format!("/v1/agents/{name}"), config).await;
    assert!(answer.is_success(), "{answer:?}");
}

/// An agent with a tool of each kind, asking the scripted model.
pub fn worker(models: &ModelServer) -> Value {
    json!({
        "instructions": "Follow the script.",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "loop": {"maxSteps": 20},
        "tools": [
            tool("clock", json!({"mode": "static", "output": {"time": "noon"}}), json!({})),
            tool("echo", json!({"mode": "pass-through"}), json!({})),
            tool("risky", json!({"mode": "pass-through"}), json!({"approval": "always"})),
            tool("ask", Value::Null, json!({})),
            tool("hasty", Value::Null, json!({"timeout": "300ms"})),
        ],
    })
}

/// A `basic` tool that takes any object; `more` is added to its definition.
pub fn tool(name: &str, execution: Value, more: Value) -> Value {
    let mut tool = json!({
        "name": name,
        "description": format!("The tool {name}."),
        "parameters": {"type": "object"},
        "executionType": "basic",
        "execution": execution,
    });
    let fields = tool.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    tool
}

/// Seeded randomness (SplitMix64): the same seed gives the same choices.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// From `TOOLGATE_SEED`, or 1; printed, so that a failure can be had again.
    pub fn seeded(what: &str) -> Self {
        let seed = setting("TOOLGATE_SEED", 1);
        eprintln!("{what}: TOOLGATE_SEED={seed}");
        Self(seed)
    }
    /// Another one, for another task.
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }
    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text:?} is no number")),
        Err(_) => default,
    }
}
