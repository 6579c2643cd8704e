//! Three nodes and what they share.

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;
use toolgate_testkit::postgres_server::{Durability, PostgresServer};
use toolgate_testkit::redis_server::RedisServer;

use super::cable::Cable;
use crate::harness::{Api, Event, Gateway, put_agent, soon, tool, worker};

/// How long a node may be silent before the others take over its runs: short, because tests wait for it.
const NODE_LEASE: &str = "2s";

/// Three nodes.
pub struct Cluster {
    pub nodes: Vec<Gateway>,
    /// From each node to PostgreSQL.
    pub store_cables: Vec<Cable>,
    /// From each node to Redis.
    pub bus_cables: Vec<Cable>,
    pub models: ModelServer,
    pub redis: RedisServer,
    pub postgres: PostgresServer,
}

impl Cluster {
    /// Starts everything; the agents `worker`, `clerk` and `chief` are there.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The same with more settings.
    pub async fn start_with(more: &[(&str, &str)]) -> Self {
        let start_postgres = tokio::task::spawn_blocking(|| PostgresServer::start(Durability::None));
        let redis = RedisServer::start().await;
        let postgres = start_postgres.await.expect("a server");
        let (mut store_cables, mut bus_cables) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            store_cables.push(Cable::to(postgres.port()).await);
            bus_cables.push(Cable::to(redis.port()).await);
        }
        let (store, bus) = (postgres.database(), redis.address());
        let start = async |node: usize| {
            let store = store_cables[node].through(&store, postgres.port());
            let bus = bus_cables[node].through(&bus, redis.port());
            let mut settings = vec![
                ("TOOLGATE_STORE", store.as_str()),
                ("TOOLGATE_BUS", bus.as_str()),
                ("TOOLGATE_ENGINE_NODE_LEASE", NODE_LEASE),
                ("TOOLGATE_PLANS_AHEAD_MIN", "1ms"),
                ("TOOLGATE_HTTP_RATE_PER_SECOND", "100000"),
                ("TOOLGATE_HTTP_RATE_BURST", "100000"),
            ];
            settings.extend(more);
            Gateway::start(&settings).await
        };
        // All at once: what a first start makes is made once.
        let (a, b, c) = tokio::join!(start(0), start(1), start(2));
        let cluster = Self {
            nodes: vec![a, b, c],
            store_cables,
            bus_cables,
            models: ModelServer::start().await,
            redis,
            postgres,
        };
        put_agents(&cluster.nodes[0].api(), &cluster.models).await;
        cluster
    }

    /// Clients of the three nodes.
    pub fn apis(&self) -> [Api; 3] {
        [0, 1, 2].map(|node| self.nodes[node].api())
    }

    /// What a node says of its bus.
    pub async fn bus_of(&self, node: usize) -> String {
        let ready = self.nodes[node].api().get("/readyz").await;
        assert_eq!(ready.status, 200, "{ready:?}");
        ready.body["details"]["bus"].as_str().expect("a word").to_owned()
    }

    /// Waits until every node says this of its bus.
    pub async fn until_bus(&self, state: &str) {
        soon(&format!("the bus to be {state}"), async {
            for node in 0..self.nodes.len() {
                while self.bus_of(node).await != state {
                    tokio::time::sleep(crate::harness::LOOK).await;
                }
            }
        })
        .await
    }
}

async fn put_agents(api: &Api, models: &ModelServer) {
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

/// The id in a member of an answer.
pub fn id(answer: &Value, member: &str) -> String {
    answer[member]
        .as_str()
        .unwrap_or_else(|| panic!("no {member} in {answer}"))
        .to_owned()
}

/// The words in transient events.
pub fn words(events: &[Event]) -> String {
    let deltas = events.iter().filter(|event| event.kind == "text-delta");
    deltas.map(|event| event.text("delta")).collect()
}
