//! Clients at work on all nodes while nodes are killed and stopped, PostgreSQL restarts and fails over, Redis goes away and
//! the network is cut: everything that was acknowledged is there, once. Their runs have client tools, server tools, approvals,
//! child runs and plans. `make torture` makes more rounds of it (`TOOLGATE_STORM_ROUNDS`, `TOOLGATE_SEED`).
//!
//! What is there is checked by reading the database directly, without the product's code (`harness/stored.rs`); then every node
//! must show just that.
//!
//! With an older binary (`TOOLGATE_TEST_OLD_BIN`) one node of it starts beside two of the present one, and whichever is
//! started again is of the other version then: upgrades and downgrades under load.
//!
//! The network is cut by proxies that stop to pass bytes on (`cable.rs`), which works everywhere; in `namespaces.rs` packets
//! are lost for real.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use tokio::task::JoinSet;
use toolgate_testkit::postgres_server::Stop;

use super::balancer::Balancer;
use super::cable::Cable;
use super::cluster::{Cluster, Setup};
use crate::harness::client::Client;
use crate::harness::ledger::Ledger;
use crate::harness::{Api, Random, Version, setting, shown, soon};

/// Clients at work at once.
const CLIENTS: u64 = 4;
/// Rounds in `make test`: each kind of trouble at least once.
const ROUNDS: u64 = 9;
/// Longest time between two troubles.
const CALM_MS: u64 = 700;
/// Longest time that something is stopped, or away: longer than the lease of a node.
const TROUBLE_MS: u64 = 3_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_every_trouble_of_several_nodes() {
    let rounds = setting("TOOLGATE_STORM_ROUNDS", ROUNDS);
    let mut random = Random::seeded("storm");
    let mut cluster = Cluster::start_as(Setup {
        has_standby: true,
        versions: [Version::Older, Version::Present, Version::Present],
        ..Setup::default()
    })
    .await;
    let balancer = Balancer::start(cluster.nodes.iter().map(|node| node.address())).await;
    let api = Api::unpooled(balancer.port());
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for name in 0..CLIENTS {
        let client = Client::new(api.clone(), random.fork(), name);
        clients.spawn(client.work(stop.clone()));
    }
    for round in 0..rounds {
        // Not a wait for anything: the moment of the trouble is what is being varied.
        tokio::time::sleep(Duration::from_millis(random.below(CALM_MS))).await;
        trouble(&mut cluster, &mut random, round).await;
    }
    for node in &mut cluster.nodes {
        // One that began while PostgreSQL was away has ended.
        node.ready_again().await;
    }
    stop.store(true, Ordering::Relaxed);
    let ledgers = soon("the last run of every client", clients.join_all()).await;
    let ledger = Ledger::joined(ledgers);
    let (asked, planned) = ledger.asked_and_planned();
    eprintln!(
        "storm: {rounds} rounds, {} runs, {asked} of them below others, {planned} by plans, {} facts, {} requests sent again, \
         {} to the model",
        ledger.runs.len(),
        ledger.facts.len(),
        api.sent_again(),
        cluster.models.requests(),
    );
    // Whether a request has to be sent again is chance: behind a balancer most wait for a node that can do it.
    assert!(
        ledger.runs.len() as u64 > CLIENTS && asked > 0 && planned > 0,
        "the load was no load"
    );
    let stored = cluster.stored();
    ledger.verify(&stored, &cluster.models);
    for node in &cluster.nodes {
        shown::compare(&node.api(), &stored).await;
    }
}

/// One trouble, and its end.
async fn trouble(cluster: &mut Cluster, random: &mut Random, round: u64) {
    let node = random.below(cluster.nodes.len() as u64) as usize;
    let lasts = Duration::from_millis(random.below(TROUBLE_MS));
    // The first rounds have one of each.
    let kind = if round < ROUNDS {
        round
    } else {
        random.below(ROUNDS)
    };
    match kind {
        0 | 1 => {
            cluster.nodes[node].kill();
            tokio::time::sleep(lasts).await;
            cluster.nodes[node].spawn_other_version();
        }
        2 => {
            cluster.nodes[node].signal(Signal::STOP);
            tokio::time::sleep(lasts).await;
            cluster.nodes[node].signal(Signal::CONT);
        }
        3 => {
            cluster.redis.stop();
            tokio::time::sleep(lasts).await;
            cluster.redis.start_again().await;
        }
        4 => {
            cluster.postgres.stop(Stop::AtOnce);
            tokio::time::sleep(lasts / 2).await;
            cluster.postgres.start_again();
        }
        5 => {
            cluster.bus_cables[node].cut();
            tokio::time::sleep(lasts).await;
            cluster.bus_cables[node].mend();
        }
        6 => {
            cluster.store_cables[node].iter().for_each(Cable::cut);
            tokio::time::sleep(lasts).await;
            cluster.store_cables[node].iter().for_each(Cable::mend);
        }
        7 => {
            cluster.postgres.stop(Stop::Killed);
            tokio::time::sleep(lasts / 4).await;
            cluster.fail_over();
            cluster.rebuild_standby();
        }
        _ => {
            cluster.nodes[node].signal(Signal::TERM);
            cluster.nodes[node].ended().await;
            cluster.nodes[node].spawn_other_version();
        }
    }
}
