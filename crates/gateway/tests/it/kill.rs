//! T1: the process is killed at random moments under load. Every accepted run ends once, and nothing that was
//! acknowledged is lost or applied twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use toolgate_testkit::model_server::ModelServer;
use toolgate_testkit::postgres_server::PostgresServer;

use crate::harness::client::Client;
use crate::harness::ledger::Ledger;
use crate::harness::stored::Stored;
use crate::harness::{Gateway, Random, SOON_DUE, put_staff, setting, shown, soon};

/// Clients at work at once.
const CLIENTS: u64 = 6;
/// Longest time between two kills.
const LOAD_MS: u64 = 300;
/// Once in so many times the next kill does not wait until the gateway is up again.
const KILL_IN_START: u64 = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_every_kill() {
    survive(setting("TOOLGATE_KILLS", 100), None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_every_kill_on_postgres() {
    let server = PostgresServer::shared();
    survive(setting("TOOLGATE_KILLS_POSTGRES", 15), Some(server)).await;
}

/// Kills a gateway, with its store on this server or in its directory, so many times under load.
async fn survive(kills: u64, server: Option<&PostgresServer>) {
    let mut random = Random::seeded("kill");
    let models = ModelServer::start().await;
    let database = server.map_or(String::new(), PostgresServer::database);
    let mut settings = SOON_DUE.to_vec();
    if server.is_some() {
        settings.push(("TOOLGATE_STORE", &database));
    }
    let mut gateway = Gateway::start(&settings).await;
    put_staff(&gateway.api(), &models).await;
    let stop = Arc::new(AtomicBool::new(false));

    let api = gateway.api();
    let mut clients = JoinSet::new();
    for name in 0..CLIENTS {
        let client = Client::new(api.clone(), random.fork(), name);
        clients.spawn(client.work(stop.clone()));
    }
    let mut downtime = Duration::ZERO;
    for _ in 0..kills {
        // Not a wait for anything: the moment of the kill is what is being varied.
        tokio::time::sleep(Duration::from_millis(random.below(LOAD_MS))).await;
        gateway.kill();
        gateway.spawn();
        if !random.one_in(KILL_IN_START) {
            let began = Instant::now();
            gateway.ready().await;
            downtime += began.elapsed();
        }
    }
    stop.store(true, Ordering::Relaxed);
    gateway.ready().await;
    let ledgers = soon("the last run of every client", clients.join_all()).await;
    let ledger = Ledger::joined(ledgers);
    let (asked, planned) = ledger.asked_and_planned();
    eprintln!(
        "kill: {kills} kills, {} runs, {asked} of them below others, {planned} by plans, {} facts, {} requests sent again, {} to the model, {:?} per restart",
        ledger.runs.len(),
        ledger.facts.len(),
        api.sent_again(),
        models.requests(),
        downtime / u32::try_from(kills.max(1)).expect("not so many"),
    );
    assert!(
        ledger.runs.len() as u64 > CLIENTS && api.sent_again() > 0 && asked > 0 && planned > 0,
        "the load was no load"
    );
    let stored = match server {
        Some(server) => Stored::in_postgres(server, &database),
        None => Stored::in_sqlite(&gateway.database()),
    };
    ledger.verify(&stored, &models);
    shown::compare(&api, &stored).await;
}
