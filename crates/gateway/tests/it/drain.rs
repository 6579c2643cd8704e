//! SIGTERM: open streams end with their cursor, the process ends in order, and a restart goes on.

use rustix::process::Signal;
use serde_json::json;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Gateway, gateway, put_agent, put_worker, soon, tool, worker};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_gateway_ends_its_streams_and_goes_on_after_a_restart() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    let waiting = api.start("call:ask text:2").await;
    let waiting = waiting["runId"].as_str().unwrap();
    let mut stream = api.follow(waiting, 0).await;
    let offer = stream.offer().await;
    // A step in the middle of its words.
    let speaking = api.start("text:4 hold:3").await;
    let speaking = speaking["runId"].as_str().unwrap();
    let mut words = api.follow(speaking, 0).await;
    words.until("a word", |event| event.kind == "text-delta").await;

    gateway.signal(Signal::TERM);
    let rest = stream.rest().await;
    assert!(stream.ended_well, "the stream was broken off");
    let cursor = rest.last().unwrap_or(&offer).seq;
    models.release(1);
    words.rest().await;
    assert!(words.ended_well, "the stream was broken off");
    let status = gateway.ended().await;
    assert!(status.success(), "{status}");

    gateway.spawn();
    gateway.ready().await;
    models.release(1);
    let receipt = api
        .result(waiting, offer.call(), &json!({"answer": "after the restart"}))
        .await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    let after = api.follow(waiting, cursor).await.rest().await;
    assert!(after.iter().all(|event| event.seq > cursor));
    for run in [waiting, speaking] {
        let log = api.finished(run).await;
        assert_eq!(log.last().unwrap().data["status"], "completed", "{log:#?}");
        assert_eq!(log.iter().filter(|event| event.kind == "run-finish").count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_the_process_at_once_and_loses_nothing() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    let run = api.start("text:3 hold:2").await;
    let run = run["runId"].as_str().unwrap();
    models.held(1).await;
    gateway.signal(Signal::TERM);
    // The first one has been taken when the gateway says that it is no longer ready, or takes no connection.
    soon("the drain", async {
        while api
            .try_get("/readyz")
            .await
            .is_ok_and(|answer| answer.status == 200)
        {}
    })
    .await;
    gateway.signal(Signal::INT);
    gateway.ended().await;

    gateway.spawn();
    gateway.ready().await;
    models.release(2);
    let log = api.finished(run).await;
    assert_eq!(log.last().unwrap().data["status"], "completed", "{log:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_waits_for_a_child_does_not_hold_the_drain() {
    let models = ModelServer::start().await;
    // Longer than this suite waits for anything: a drain that lasted would fail the test.
    let mut gateway = Gateway::start(&[("TOOLGATE_DRAIN", "10m")]).await;
    let api = gateway.api();
    put_worker(&api, &models).await;
    let mut chief = worker(&models);
    let child = json!({"executionType": "ai-agent", "parameters": {
        "type": "object", "properties": {"prompt": {"type": "string"}}}});
    chief["tools"] = json!([tool("helper", json!({"agent": "worker"}), child)]);
    put_agent(&api, "chief", &chief).await;
    let script = r#"call:helper input:{"prompt":"call:ask"} text:1"#;
    let started = api
        .post("/v1/runs", &json!({"agent": "chief", "message": script}))
        .await;
    let root = started.text("runId");
    let child = soon("the child run", async {
        loop {
            let listed = api.get(&format!("/v1/runs?parent={root}")).await;
            let waiting = listed.body["runs"][0].clone();
            if waiting["status"] == "waiting_tool" {
                return waiting["id"].as_str().unwrap().to_owned();
            }
        }
    })
    .await;
    gateway.signal(Signal::TERM);
    let status = gateway.ended().await;
    assert!(status.success(), "{status}");

    gateway.spawn();
    gateway.ready().await;
    let offer = api.follow(&child, 0).await.offer().await;
    assert_eq!(api.result(&child, offer.call(), &json!(1)).await.status, 200);
    let log = api.finished(&root).await;
    assert_eq!(log.last().unwrap().data["status"], "completed", "{log:#?}");
}
