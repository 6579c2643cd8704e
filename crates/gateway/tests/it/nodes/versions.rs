//! T9: nodes beside newer ones on one database. What a newer version does to the database is done here by hand: it adds to
//! the schema, and writes events that this version has never heard of. `make torture OLD=…` has a real older binary
//! beside this one (see `storm.rs`).

use serde_json::json;
use toolgate_kernel::id::RunId;

use super::cluster::{Cluster, id};
use crate::harness::{Api, LOOK, soon};

/// What a newer version adds, to tables that every run uses.
const ADDITIONS: &str = "
    ALTER TABLE runs ADD COLUMN mood text;
    ALTER TABLE log ADD COLUMN origin text;
    ALTER TABLE spaces ADD COLUMN mood text;
    CREATE TABLE moods (run uuid NOT NULL PRIMARY KEY, mood text NOT NULL);
    CREATE INDEX runs_by_mood ON runs (mood) WHERE mood IS NOT NULL;";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_go_on_beside_a_newer_version_that_only_adds() {
    let mut cluster = Cluster::start().await;
    let [a, b, c] = cluster.apis();
    // Every node has used the tables before they change: their statements are prepared.
    let mut open = Vec::new();
    for api in [&a, &b, &c] {
        api.finished(&id(&api.start("call:clock text:1").await, "runId"))
            .await;
        open.push(id(&api.start("call:ask text:1").await, "runId"));
    }
    migrate(&cluster, ADDITIONS, 0);
    cluster.nodes[2].crash().await;
    for (run, api) in open.iter().zip([&b, &c, &a]) {
        complete(api, run).await;
    }
    for api in [&a, &b, &c] {
        let run = id(&api.start("call:ask call:clock text:1").await, "runId");
        complete(&b, &run).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_newer_version_stores_is_passed_on_and_its_runs_are_left_to_it() {
    let mut cluster = Cluster::start().await;
    let [a, b, c] = cluster.apis();
    let theirs = id(&a.start("call:ask text:1").await, "runId");
    let call = { b.follow(&theirs, 0).await }.offer().await.call().to_owned();
    let ours = id(&a.start("call:ask text:1").await, "runId");
    { b.follow(&ours, 0).await }.offer().await;
    migrate(&cluster, ADDITIONS, 0);
    write(
        &cluster,
        &ours,
        r#"{"type": "dream", "of": "sheep", "ignorable": true}"#,
    );
    write(&cluster, &theirs, r#"{"type": "run-forked", "into": 2}"#);
    let before = row(&cluster, &theirs);

    let mut stream = c.follow(&theirs, 0).await;
    stream
        .until("the event of the newer version", |event| {
            event.kind == "run-forked"
        })
        .await;
    for api in [&a, &b, &c] {
        let log = api.list(&format!("/v1/runs/{theirs}/events")).await;
        let last = log.last().expect("not empty");
        assert_eq!(
            (last.kind.as_str(), &last.data["into"]),
            ("run-forked", &2.into())
        );
        let refused = api.result(&theirs, &call, &json!({"answer": 1})).await;
        assert_eq!(refused.status, 503, "{refused:?}");
        assert!(refused.body.to_string().contains("newer version"), "{refused:?}");
    }
    // It is due, so every node that looks for work finds it.
    cluster.nodes[2].crash().await;
    soon("a node to say that it leaves the run alone", async {
        while !cluster.nodes[2]
            .log()
            .contains("a run is left to a newer version")
        {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    // An event that changes nothing is no reason to stop.
    complete(&c, &ours).await;
    complete(&b, &id(&c.start("call:ask text:1").await, "runId")).await;
    assert_eq!(row(&cluster, &theirs), before, "somebody went on with it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_stop_to_use_a_database_that_needs_a_newer_version() {
    let mut cluster = Cluster::start().await;
    let [a, b, _] = cluster.apis();
    complete(&b, &id(&a.start("call:ask text:1").await, "runId")).await;
    migrate(&cluster, "ALTER TABLE runs RENAME COLUMN wakes TO reasons", 1);
    // The others notice by themselves, and stay so.
    for node in 0..2 {
        let api = cluster.nodes[node].api();
        soon("a node to say that it is not ready", async {
            while api.get("/readyz").await.status != 503 {
                tokio::time::sleep(LOOK).await;
            }
        })
        .await;
        soon("a node to say why", async {
            while !cluster.nodes[node]
                .log()
                .contains("needs a toolgate that knows version")
            {
                tokio::time::sleep(LOOK).await;
            }
        })
        .await;
        let body = json!({"agent": "worker", "message": "text:1"});
        assert_eq!(api.post("/v1/runs", &body).await.status, 503);
        assert_eq!(api.get("/healthz").await.status, 200);
    }
    let stored = "SELECT (SELECT count(*) FROM log), (SELECT count(*) FROM runs)";
    let stored = || cluster.postgres.execute(&cluster.database, stored);
    let before = stored();
    for api in [&a, &b] {
        let body = json!({"agent": "worker", "message": "text:1"});
        assert_eq!(api.post("/v1/runs", &body).await.status, 503);
    }
    assert_eq!(stored(), before);
    // A start is refused.
    cluster.nodes[2].kill();
    cluster.nodes[2].spawn();
    assert!(!cluster.nodes[2].ended().await.success());
    let log = cluster.nodes[2].log();
    assert!(log.contains("needs a toolgate that knows version"), "{log}");
}

/// Applies a migration of a newer version, beside which a program may be `ahead` versions older than it has to be.
fn migrate(cluster: &Cluster, sql: &str, ahead: u32) {
    let row = format!(
        "INSERT INTO migrations (version, oldest, checksum)
         SELECT max(version) + 1, max(version) + {ahead}, 'newer' FROM migrations"
    );
    cluster
        .postgres
        .execute(&cluster.database, &format!("BEGIN; {sql}; {row}; COMMIT"));
}

/// Stores an event as a newer version would, in a newer format, and makes the run due.
fn write(cluster: &Cluster, run: &str, event: &str) {
    let run = uuid(run);
    let sql = format!(
        "WITH head AS (
            UPDATE heads SET last = last + 1000000 WHERE space = (SELECT space FROM runs WHERE id = '{run}')
            RETURNING space, last
        ), entry AS (
            INSERT INTO log (space, first, last, run, time, format, events, origin)
            SELECT space, last, last, '{run}', extract(epoch FROM now()) * 1000, 2, '[{event}]', 'newer' FROM head
        )
        UPDATE runs SET version = head.last, wake_at = 1, mood = 'dreamy' FROM head WHERE id = '{run}'"
    );
    cluster.postgres.execute(&cluster.database, &sql);
}

/// What going on with a run changes.
fn row(cluster: &Cluster, run: &str) -> String {
    let run = uuid(run);
    let sql = format!(
        "SELECT status, version, mood, (SELECT count(*) FROM log WHERE run = '{run}') FROM runs
         WHERE id = '{run}'"
    );
    cluster.postgres.execute(&cluster.database, &sql)
}

fn uuid(run: &str) -> String {
    let run: RunId = run.parse().expect("a run's id");
    run.to_bytes().map(|byte| format!("{byte:02x}")).concat()
}

/// Answers the call of a run, and sees it to its end.
async fn complete(api: &Api, run: &str) {
    let mut stream = api.follow(run, 0).await;
    let offer = stream.offer().await;
    let receipt = api.result(run, offer.call(), &json!({"answer": 1})).await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    let log = api.finished(run).await;
    let last = log.last().expect("not empty");
    assert_eq!(last.data["status"], "completed", "{log:#?}");
}
