//! What goes away: a node in the middle of a step, Redis, PostgreSQL.

use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use toolgate_testkit::postgres_server::Stop;

use super::cluster::{Cluster, id};
use crate::harness::{LOOK, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_killed_in_the_middle_of_a_step_is_replaced() {
    let mut cluster = Cluster::start().await;
    let [a, b, c] = cluster.apis();
    let started = a.start("call:ask text:4 hold:2").await;
    let (run, space) = (id(&started, "runId"), id(&started, "spaceId"));
    cluster.models.held(1).await;
    let waiting = id(&a.start("call:ask text:1").await, "runId");
    let mut stream = b.follow(&run, 0).await;
    cluster.nodes[0].kill();
    cluster.models.release(10);
    let offer = stream.offer().await;
    let receipt = c.result(&run, offer.call(), &json!({"answer": 1})).await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    stream.rest().await;
    let log = c.finished(&run).await;
    assert_eq!(
        log.last().expect("not empty").data["status"],
        "completed",
        "{log:#?}"
    );
    assert_eq!(log.iter().filter(|event| event.kind == "run-finish").count(), 1);
    assert_eq!(
        b.list(&format!("/v1/spaces/{space}/events")).await.len(),
        log.len()
    );
    // A run that only waited was in nobody's memory, and goes on anywhere.
    let mut stream = c.follow(&waiting, 0).await;
    let offer = stream.offer().await;
    assert_eq!(
        b.result(&waiting, offer.call(), &json!({"answer": 2}))
            .await
            .status,
        200
    );
    assert_eq!(
        c.finished(&waiting).await.last().expect("not empty").data["status"],
        "completed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_stopped_for_longer_than_its_lease_changes_nothing_when_it_comes_back() {
    let cluster = Cluster::start().await;
    let [a, b, c] = cluster.apis();
    let run = id(&a.start("call:clock tools:2 text:4 hold:2").await, "runId");
    cluster.models.held(1).await;
    cluster.nodes[0].signal(Signal::STOP);
    cluster.models.release(10);
    let log = b.finished(&run).await;
    cluster.nodes[0].signal(Signal::CONT);
    assert_eq!(
        log.last().expect("not empty").data["status"],
        "completed",
        "{log:#?}"
    );
    // It answers again once it knows that others went on.
    assert_eq!(a.finished(&run).await, log);
    assert_eq!(c.list(&format!("/v1/runs/{run}/events")).await, log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_everything_goes_on_from_the_store() {
    let mut cluster = Cluster::start().await;
    let [a, b, c] = cluster.apis();
    cluster.until_bus("joined").await;
    let run = id(&a.start("call:ask text:3").await, "runId");
    let mut stream = b.follow(&run, 0).await;
    let offer = stream.offer().await;
    cluster.redis.stop();
    cluster.until_bus("away").await;
    assert_eq!(
        c.result(&run, offer.call(), &json!({"answer": 1})).await.status,
        200
    );
    let rest = stream.rest().await;
    assert!(rest.iter().any(|event| event.kind == "run-finish"), "{rest:#?}");
    // A start without Redis is a start.
    cluster.nodes[2].crash().await;
    let second = id(&c.start("text:2").await, "runId");
    assert_eq!(
        b.finished(&second).await.last().expect("not empty").data["status"],
        "completed"
    );

    cluster.redis.start_again().await;
    cluster.until_bus("joined").await;
    let run = id(&a.start("text:3 delay:5 hold:2").await, "runId");
    let mut stream = c.follow(&run, 0).await;
    stream
        .until("a word from another node", |event| event.kind == "text-delta")
        .await;
    cluster.models.release(1);
    stream
        .until("the whole message", |event| event.kind == "text-end")
        .await;
    for node in &cluster.nodes {
        let log = node.log();
        assert!(log.contains("the bus is away"), "{log}");
        assert!(!log.contains(toolgate_testkit::redis_server::PASSWORD), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_is_taken_out_on_a_node_that_is_cut_off_reads_nothing_that_is_said_elsewhere() {
    // No heartbeat comes to help.
    let cluster = Cluster::start_with(&[("TOOLGATE_HTTP_HEARTBEAT", "1h")]).await;
    let [a, b, c] = cluster.apis();
    cluster.until_bus("joined").await;
    let space = id(&a.post("/v1/spaces", &json!({})).await.body, "id");
    let member = format!("/v1/spaces/{space}/members/bob");
    assert_eq!(a.put(&member, &json!({})).await.status, 204);
    let say = async |words: &str| {
        let said = json!({"text": words, "respond": false});
        let posted = c.post(&format!("/v1/spaces/{space}/messages"), &said).await;
        assert_eq!(posted.status, 202, "{posted:?}");
    };
    let path = format!("/v1/spaces/{space}/events");
    let stream = b.as_user("bob").request(Method::GET, &path);
    let stream = stream.header("accept", "text/event-stream");
    let mut of_bob = stream.send().await.expect("a stream");
    say("said before").await;
    soon("a message", async {
        let mut told = Vec::new();
        while !String::from_utf8_lossy(&told).contains("said before") {
            let more = of_bob.chunk().await.expect("bytes");
            told.extend_from_slice(&more.expect("no end"));
        }
    })
    .await;
    // Words of a step under way come over the bus alone: who was never heard is not missed.
    let run = id(&a.start("text:3 hold:2").await, "runId");
    let mut words = b.follow(&run, 0).await;
    words
        .until("a word from another node", |event| event.kind == "text-delta")
        .await;
    cluster.models.release(1);

    cluster.bus_cables[0].cut();
    soon("its silence to be noticed", async {
        while cluster.bus_of(1).await != "doubtful" {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    assert_eq!(a.send(Method::DELETE, &member, &json!({})).await.status, 204);
    say("said later").await;
    let rest = soon("the stream's end", of_bob.text()).await.expect("its end");
    assert!(rest.contains("ACCESS_ENDED"), "{rest}");
    assert!(!rest.contains("said later"), "{rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_tells_the_truth_about_the_store() {
    let cluster = Cluster::start().await;
    let [a, b, _] = cluster.apis();
    let run = id(&a.start("call:ask text:1").await, "runId");
    let offer = b.follow(&run, 0).await;
    let offer = { offer }.offer().await;
    cluster.postgres.stop(Stop::AtOnce);
    for api in [&a, &b] {
        soon("a node to say that it is not ready", async {
            while api.get("/readyz").await.status != 503 {
                tokio::time::sleep(LOOK).await;
            }
        })
        .await;
        assert_eq!(api.get("/healthz").await.status, 200, "it lives all the same");
    }
    cluster.postgres.start_again();
    soon("the nodes to be ready again", async {
        for api in [&a, &b] {
            while api.get("/readyz").await.status != 200 {
                tokio::time::sleep(LOOK).await;
            }
        }
    })
    .await;
    let path = format!("/v1/runs/{run}/tool-results");
    let result = json!({"toolCallId": offer.call(), "result": {"answer": 1}});
    let receipt = b.insist(&path, &result, None).await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    assert_eq!(
        a.finished(&run).await.last().expect("not empty").data["status"],
        "completed"
    );
}
