//! Nodes in network namespaces of their own, joined to the servers and to their clients by one virtual cable each, which is
//! pulled out or loses every packet: nobody is told, nothing is reset, and what was on its way is sent again or never arrives.
//! What was acknowledged is there once. The cables of `cable.rs` end the connections at the proxy that they are; here
//! the kernels of both ends hold half a connection each, for longer than the lease of a node.
//!
//! The whole test runs in a namespace, too (`network.rs`): it needs root or user namespaces, and says so where it has neither.

mod network;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use toolgate_testkit::model_server::ModelServer;
use toolgate_testkit::postgres_server::{Durability, PostgresServer};
use toolgate_testkit::redis_server::RedisServer;

use self::network::{Cut, Line, SERVERS, Side, inside};
use super::balancer::Balancer;
use super::cluster::NODE_LEASE;
use crate::harness::client::Client;
use crate::harness::ledger::Ledger;
use crate::harness::stored::Stored;
use crate::harness::{Api, Gateway, LOOK, Place, Random, SOON_DUE, put_staff, setting, shown, soon};

/// Nodes.
const NODES: usize = 3;
/// Clients at work at once.
const CLIENTS: u64 = 4;
/// Rounds in `make test`: each kind of cut.
const ROUNDS: u64 = 4;
/// Longest time for the start and the end of the test, and for each round of it.
const FRAME_TIME: Duration = Duration::from_secs(300);
const ROUND_TIME: Duration = Duration::from_secs(60);
/// Longest time between two cuts.
const CALM_MS: u64 = 500;
/// How long a cable is cut: longer than the lease of a node.
const CUT_MS: u64 = 2_500;

/// How long clients wait for the next bytes. The kernel of a node that is killed while it is cut off forgets its connections
/// without a word, and nobody would ever end what a client reads from there.
const SILENCE: Duration = Duration::from_secs(8);

#[test]
fn what_was_acknowledged_survives_a_network_that_loses_every_packet() {
    let rounds = setting("TOOLGATE_STORM_ROUNDS", ROUNDS);
    let limit = FRAME_TIME + ROUND_TIME * u32::try_from(rounds).expect("not so many rounds");
    inside(
        "nodes::namespaces::what_was_acknowledged_survives_a_network_that_loses_every_packet",
        limit,
        || lose_packets(rounds),
    );
}

async fn lose_packets(rounds: u64) {
    let mut random = Random::seeded("namespaces");
    let mut network = Network::start().await;
    let balancer = Balancer::start(network.nodes.iter().map(Gateway::address)).await;
    let api = Api::impatient(balancer.port(), SILENCE);
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for name in 0..CLIENTS {
        let client = Client::new(api.clone(), random.fork(), name);
        clients.spawn(client.work(stop.clone()));
    }
    for round in 0..rounds {
        // Not a wait for anything: the moment of the cut is what is being varied.
        tokio::time::sleep(Duration::from_millis(random.below(CALM_MS))).await;
        network.cut(&mut random, round).await;
    }
    for node in &mut network.nodes {
        node.ready().await;
    }
    stop.store(true, Ordering::Relaxed);
    let ledgers = soon("the last run of every client", clients.join_all()).await;
    let ledger = Ledger::joined(ledgers);
    let (asked, planned) = ledger.asked_and_planned();
    eprintln!(
        "namespaces: {rounds} cuts, {} runs, {asked} of them below others, {planned} by plans, {} facts",
        ledger.runs.len(),
        ledger.facts.len(),
    );
    assert!(ledger.runs.len() as u64 > CLIENTS, "the load was no load");
    let stored = Stored::in_postgres(&network.postgres, &network.database);
    ledger.verify(&stored, &network.models);
    for node in &network.nodes {
        shown::compare(&node.api(), &stored).await;
    }
}

/// Three nodes, each at the end of a line.
struct Network {
    nodes: Vec<Gateway>,
    models: ModelServer,
    postgres: PostgresServer,
    database: String,
    _redis: RedisServer,
    /// Last: the processes of nodes hold the namespaces that end with these.
    lines: Vec<Line>,
}

impl Network {
    async fn start() -> Self {
        let lines: Vec<Line> = (0..NODES).map(Line::to_new_namespace).collect();
        let postgres =
            tokio::task::spawn_blocking(|| PostgresServer::start_also_at(Durability::None, SERVERS));
        let redis = RedisServer::start_also_at(SERVERS).await;
        let models = ModelServer::start_at(SERVERS).await;
        let postgres = postgres.await.expect("a server");
        let database = postgres.database();
        let at_servers = |address: &str| address.replace("127.0.0.1", &SERVERS.to_string());
        let (store, bus) = (at_servers(&database), at_servers(&redis.address()));
        let settings = [
            ("TOOLGATE_STORE", store.as_str()),
            ("TOOLGATE_BUS", bus.as_str()),
            ("TOOLGATE_ENGINE_NODE_LEASE", NODE_LEASE),
            ("TOOLGATE_HTTP_RATE_PER_SECOND", "100000"),
            ("TOOLGATE_HTTP_RATE_BURST", "100000"),
        ];
        let settings = [settings.as_slice(), &SOON_DUE].concat();
        let mut nodes = Vec::new();
        for line in &lines {
            let place = Place {
                host: line.clients_reach(),
                enter: line.enter(),
            };
            nodes.push(Gateway::start_at(place, &settings).await);
        }
        put_staff(&nodes[0].api(), &models).await;
        Self {
            nodes,
            models,
            postgres,
            database,
            _redis: redis,
            lines,
        }
    }

    /// Cuts a node off, and mends it: from the servers alone, or from everything.
    async fn cut(&mut self, random: &mut Random, round: u64) {
        let node = random.below(NODES as u64) as usize;
        // One that is still starting would give up without its servers.
        self.nodes[node].ready().await;
        let how = [Cut::Link, Cut::Packets][round as usize / 2 % 2];
        let lasts = Duration::from_millis(CUT_MS + random.below(CUT_MS));
        let line = &self.lines[node];
        if round.is_multiple_of(2) {
            line.cut(Side::Servers, how);
            // Clients still reach it, and it says that it can do nothing for them.
            let api = self.nodes[node].api();
            soon("a node without servers to say so", async {
                while !api
                    .try_get("/readyz")
                    .await
                    .is_ok_and(|ready| ready.status == 503)
                {
                    tokio::time::sleep(LOOK).await;
                }
            })
            .await;
            tokio::time::sleep(lasts).await;
            line.mend(Side::Servers, how);
        } else {
            line.cut(Side::Servers, how);
            line.cut(Side::Clients, how);
            tokio::time::sleep(lasts).await;
            // It dies where nobody hears of it: the server still holds its connections, and its locks.
            self.nodes[node].kill();
            line.mend(Side::Clients, how);
            line.mend(Side::Servers, how);
            // Neighbours that were not there are forgotten after a while only, and a node that starts does not wait for that.
            soon("the way to the servers", async {
                while !line.reaches(self.postgres.port()) {
                    tokio::time::sleep(LOOK).await;
                }
            })
            .await;
            self.nodes[node].spawn();
        }
    }
}
