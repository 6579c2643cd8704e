//! Three nodes and what they share.

use serde_json::Value;
use toolgate_testkit::model_server::ModelServer;
use toolgate_testkit::postgres_server::{Durability, PostgresServer};
use toolgate_testkit::redis_server::RedisServer;

use super::cable::Cable;
use crate::harness::stored::Stored;
use crate::harness::{Api, Event, Gateway, SOON_DUE, Version, put_staff, soon};

/// How long a node may be silent before the others take over its runs: short, because tests wait for it.
pub const NODE_LEASE: &str = "2s";

/// Three nodes.
pub struct Cluster {
    pub nodes: Vec<Gateway>,
    /// From each node to every PostgreSQL server.
    pub store_cables: Vec<Vec<Cable>>,
    /// From each node to Redis.
    pub bus_cables: Vec<Cable>,
    pub models: ModelServer,
    pub redis: RedisServer,
    pub postgres: PostgresServer,
    /// Has everything that was committed; nodes know its address.
    pub standby: Option<PostgresServer>,
    /// URL of the database at the first server.
    pub database: String,
}

/// How a cluster is made.
pub struct Setup<'a> {
    /// More settings of the nodes.
    pub settings: &'a [(&'a str, &'a str)],
    pub has_standby: bool,
    /// Of each node.
    pub versions: [Version; 3],
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            settings: &[],
            has_standby: false,
            versions: [Version::Present; 3],
        }
    }
}

impl Cluster {
    /// Starts everything; the agents `worker`, `clerk` and `chief` are there.
    pub async fn start() -> Self {
        Self::start_as(Setup::default()).await
    }

    /// The same with more settings.
    pub async fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::start_as(Setup {
            settings,
            ..Setup::default()
        })
        .await
    }

    /// The same with a second PostgreSQL server to fail over to.
    pub async fn start_with_standby(settings: &[(&str, &str)]) -> Self {
        Self::start_as(Setup {
            settings,
            has_standby: true,
            ..Setup::default()
        })
        .await
    }

    /// The same, as the setup says.
    pub async fn start_as(setup: Setup<'_>) -> Self {
        let start_postgres = tokio::task::spawn_blocking(move || {
            let primary = PostgresServer::start(Durability::None);
            let standby = setup.has_standby.then(|| PostgresServer::standby_of(&primary));
            (primary, standby)
        });
        let redis = RedisServer::start().await;
        let (postgres, standby) = start_postgres.await.expect("servers");
        let (mut store_cables, mut bus_cables) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let mut to_servers = Vec::new();
            for server in std::iter::once(&postgres).chain(&standby) {
                to_servers.push(Cable::to(server.port()).await);
            }
            store_cables.push(to_servers);
            bus_cables.push(Cable::to(redis.port()).await);
        }
        let (database, bus) = (postgres.database(), redis.address());
        let start = async |node: usize| {
            let hosts: Vec<String> = store_cables[node].iter().map(Cable::host).collect();
            let host = format!("127.0.0.1:{}", postgres.port());
            let store = database.replace(&host, &hosts.join(","));
            let bus = bus_cables[node].through(&bus, redis.port());
            let mut settings = vec![
                ("TOOLGATE_STORE", store.as_str()),
                ("TOOLGATE_BUS", bus.as_str()),
                ("TOOLGATE_ENGINE_NODE_LEASE", NODE_LEASE),
                ("TOOLGATE_HTTP_RATE_PER_SECOND", "100000"),
                ("TOOLGATE_HTTP_RATE_BURST", "100000"),
            ];
            settings.extend(SOON_DUE);
            settings.extend(setup.settings);
            Gateway::start_version(setup.versions[node], &settings).await
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
            standby,
            database,
        };
        put_staff(&cluster.nodes[0].api(), &cluster.models).await;
        cluster
    }

    /// Clients of the three nodes.
    pub fn apis(&self) -> [Api; 3] {
        [0, 1, 2].map(|node| self.nodes[node].api())
    }

    /// Everything that is stored.
    pub fn stored(&self) -> Stored {
        Stored::in_postgres(&self.postgres, &self.database)
    }

    /// Makes a primary of the standby. The server that was the primary has stopped, or should have.
    pub fn fail_over(&mut self) {
        let standby = self.standby.as_mut().expect("a standby");
        standby.promote();
        std::mem::swap(&mut self.postgres, standby);
    }

    /// Makes a standby of the server that was the primary and was stopped.
    pub fn rebuild_standby(&self) {
        let standby = self.standby.as_ref().expect("a standby");
        standby.follow(&self.postgres);
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
