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
    let mut clerk = worker(&models);
    let signal = json!({"executionType": "waiting"});
    clerk["tools"] = json!([tool("wait", json!({"signal": true}), signal)]);
    put_agent(&api, "clerk", &clerk).await;
    let mut chief = worker(&models);
    let child = json!({"executionType": "ai-agent", "parameters": {
        "type": "object", "properties": {"prompt": {"type": "string"}}}});
    chief["tools"] = json!([tool("helper", json!({"agent": "clerk"}), child)]);
    put_agent(&api, "chief", &chief).await;
    let script = r#"call:helper input:{"prompt":"call:wait"} text:1"#;
    let started = api
        .post("/v1/runs", &json!({"agent": "chief", "message": script}))
        .await;
    let root = started.text("runId");
    let child = soon("the child run", async {
        loop {
            let listed = api.get(&format!("/v1/runs?parent={root}")).await;
            let waiting = listed.body["runs"][0].clone();
            if waiting["status"] == "waiting_time" {
                return waiting["id"].as_str().unwrap().to_owned();
            }
            let ended = api.get(&format!("/v1/runs/{root}")).await;
            let is_open = ["queued", "running", "waiting_tool"].contains(&ended.text("status").as_str());
            assert!(is_open, "{ended:?}");
        }
    })
    .await;
    gateway.signal(Signal::TERM);
    let status = gateway.ended().await;
    assert!(status.success(), "{status}");

    gateway.spawn();
    gateway.ready().await;
    let call = child.replace("run_", "call_") + "_0";
    let rung = api
        .post(&format!("/v1/calls/{call}/signal"), &json!({"value": 1}))
        .await;
    assert_eq!(rung.status, 200, "{rung:?}");
    let log = api.finished(&root).await;
    assert_eq!(log.last().unwrap().data["status"], "completed", "{log:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queued_run_takes_a_message_and_a_cancel_while_the_gateway_is_full() {
    let models = ModelServer::start().await;
    let gateway = Gateway::start(&[("TOOLGATE_ENGINE_RUNS_ACTIVE_MAX", "1")]).await;
    let api = gateway.api();
    put_worker(&api, &models).await;
    let busy = api.start("text:3 hold:1").await;
    models.held(1).await;
    let (told, cancelled) = (api.start("text:1").await, api.start("text:1").await);
    for queued in [&told, &cancelled] {
        let run = api
            .get(&format!("/v1/runs/{}", queued["runId"].as_str().unwrap()))
            .await;
        assert_eq!(run.text("status"), "queued");
    }
    let space = told["spaceId"].as_str().unwrap();
    let message = json!({"agent": "worker", "message": "text:2"});
    let joined = api.post(&format!("/v1/spaces/{space}/messages"), &message).await;
    assert_eq!(
        (joined.status, &joined.body["runId"]),
        (202, &told["runId"]),
        "{joined:?}"
    );
    let path = format!("/v1/runs/{}/cancel", cancelled["runId"].as_str().unwrap());
    let answer = api.post(&path, &json!({})).await;
    assert_eq!(
        (answer.status, answer.text("status").as_str()),
        (200, "cancelled"),
        "{answer:?}"
    );
    models.release(1);
    for run in [&busy, &told] {
        let log = api.finished(run["runId"].as_str().unwrap()).await;
        assert_eq!(log.last().unwrap().data["status"], "completed", "{log:#?}");
    }
}
