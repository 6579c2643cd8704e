//! PostgreSQL with a synchronous standby that takes over: nodes find it by themselves, and never go back to the server that
//! it replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tokio::task::JoinSet;
use toolgate_testkit::postgres_server::{PostgresServer, Stop};

use super::balancer::Balancer;
use super::cluster::{Cluster, id};
use crate::harness::client::Client;
use crate::harness::ledger::Ledger;
use crate::harness::{Api, LOOK, Random, setting, shown, soon};

/// Clients at work at once.
const CLIENTS: u64 = 4;
/// Fail-overs in `make test`.
const ROUNDS: u64 = 2;
/// How long a statement may take: short, because a server that hangs is given up after this and 5 seconds.
const STATEMENT_TIMEOUT: &str = "1s";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_every_fail_over() {
    let rounds = setting("TOOLGATE_STORM_ROUNDS", ROUNDS);
    let mut random = Random::seeded("fail-over");
    let mut cluster = Cluster::start_with_standby(&[]).await;
    let balancer = Balancer::start(cluster.nodes.iter().map(|node| node.address())).await;
    let api = Api::unpooled(balancer.port());
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for name in 0..CLIENTS {
        let client = Client::new(api.clone(), random.fork(), name);
        clients.spawn(client.work(stop.clone()));
    }
    for _ in 0..rounds {
        until_more_requests(&cluster, 10).await;
        // Not a wait for anything: the moment of the kill is what is being varied.
        tokio::time::sleep(std::time::Duration::from_millis(random.below(300))).await;
        let how = [Stop::Killed, Stop::AtOnce][random.below(2) as usize];
        cluster.postgres.stop(how);
        cluster.fail_over();
        all_ready(&mut cluster).await;
        cluster.rebuild_standby();
    }
    until_more_requests(&cluster, 10).await;
    stop.store(true, Ordering::Relaxed);
    let ledgers = soon("the last run of every client", clients.join_all()).await;
    let ledger = Ledger::joined(ledgers);
    eprintln!(
        "fail-over: {rounds} rounds, {} runs, {} facts, {} requests sent again",
        ledger.runs.len(),
        ledger.facts.len(),
        api.sent_again(),
    );
    let stored = cluster.stored();
    ledger.verify(&stored, &cluster.models);
    for node in &cluster.nodes {
        shown::compare(&node.api(), &stored).await;
    }
}

/// The old primary is started again by somebody who does not know that it was replaced. It comes first in the address
/// of the store, takes writes, and lacks what was stored since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_comes_back_after_it_was_replaced_is_not_used() {
    let mut cluster = Cluster::start_with_standby(&[]).await;
    let [a, b, c] = cluster.apis();
    let before = id(&a.start("call:ask text:1").await, "runId");
    cluster.postgres.stop(Stop::Killed);
    cluster.fail_over();
    all_ready(&mut cluster).await;
    let since = id(&b.start("call:ask text:1").await, "runId");

    let old = cluster.standby.as_ref().expect("a standby");
    old.start_again();
    old.commit_alone();
    let stored = content(old, &cluster.database);
    // Every node has to connect anew, one without a memory of the new primary.
    let others =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'toolgate'";
    cluster.postgres.execute("postgres", others);
    cluster.nodes[2].crash().await;
    all_ready(&mut cluster).await;
    for run in [&before, &since] {
        for api in [&a, &b, &c] {
            let read = api.get(&format!("/v1/runs/{run}")).await;
            assert_eq!(read.status, 200, "{read:?}");
        }
        let mut stream = c.follow(run, 0).await;
        let offer = stream.offer().await;
        let receipt = a.result(run, offer.call(), &json!({"answer": 1})).await;
        assert_eq!(receipt.status, 200, "{receipt:?}");
        assert_eq!(
            b.finished(run).await.last().expect("not empty").data["status"],
            "completed"
        );
    }
    let old = cluster.standby.as_ref().expect("a standby");
    assert_eq!(content(old, &cluster.database), stored, "somebody wrote to it");
}

/// The primary hangs, is replaced, and goes on as if nothing had been: whoever still is connected to it gets no
/// acknowledgement, because its commits wait for a standby that is none any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_hangs_is_replaced_and_acknowledges_nothing_when_it_goes_on() {
    let mut cluster =
        Cluster::start_with_standby(&[("TOOLGATE_POSTGRES_STATEMENT_TIMEOUT", STATEMENT_TIMEOUT)]).await;
    let [a, b, c] = cluster.apis();
    let run = id(&a.start("call:ask text:1").await, "runId");
    let offer = { b.follow(&run, 0).await }.offer().await;
    cluster.postgres.pause();
    cluster.fail_over();
    let path = format!("/v1/runs/{run}/tool-results");
    let result = json!({"toolCallId": offer.call(), "result": {"answer": 1}});
    let receipt = c.insist(&path, &result, None).await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    cluster.standby.as_ref().expect("a standby").unpause();
    all_ready(&mut cluster).await;
    for api in [&a, &b, &c] {
        assert_eq!(api.insist(&path, &result, None).await, receipt);
        let log = api.finished(&run).await;
        let outputs = log.iter().filter(|event| event.kind == "tool-output-available");
        assert_eq!(outputs.count(), 1, "{log:#?}");
    }
}

/// What nodes write to, counted: their heartbeats, and every event.
fn content(server: &PostgresServer, database: &str) -> String {
    server.execute(
        database,
        "SELECT (SELECT max(until) FROM nodes), (SELECT count(*) FROM log), (SELECT count(*) FROM runs)",
    )
}

async fn all_ready(cluster: &mut Cluster) {
    for node in &mut cluster.nodes {
        node.ready().await;
    }
}

/// Waits until the model was asked so many times more: clients are served.
async fn until_more_requests(cluster: &Cluster, more: u64) {
    let until = cluster.models.requests() + more;
    soon("more requests to the model", async {
        while cluster.models.requests() < until {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await
}
