//! T14: a process that is stopped for longer than its lease, and a disk that is full.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Gateway, gateway, put_worker, soon};

/// Shortened, so that a stop of some seconds outlasts it.
const NODE_LEASE: &str = "1s";
const STOPPED: Duration = Duration::from_secs(3);
/// What a full disk still takes.
const ROOM_BYTES: u64 = 16 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_slept_through_its_lease_goes_on_without_doing_anything_twice() {
    let models = ModelServer::start().await;
    let gateway = Gateway::start(&[("TOOLGATE_ENGINE_NODE_LEASE", NODE_LEASE)]).await;
    let api = gateway.api();
    put_worker(&api, &models).await;
    let mut runs = Vec::new();
    for script in [
        "text:3 hold:2",
        "call:clock tools:2 text:3 hold:2",
        "call:ask text:3",
    ] {
        runs.push(api.start(script).await["runId"].as_str().unwrap().to_owned());
    }
    models.held(2).await;
    let offer = api.follow(&runs[2], 0).await.offer().await;
    let deadline_run = api.start("call:hasty text:1").await["runId"]
        .as_str()
        .unwrap()
        .to_owned();
    api.follow(&deadline_run, 0).await.offer().await;

    gateway.signal(Signal::STOP);
    // The fault itself: time passes for everybody but the gateway.
    tokio::time::sleep(STOPPED).await;
    models.release(10);
    gateway.signal(Signal::CONT);

    let receipt = api
        .insist(
            &format!("/v1/runs/{}/tool-results", runs[2]),
            &json!({"toolCallId": offer.call(), "result": 1}),
            None,
        )
        .await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    for run in runs.iter().chain([&deadline_run]) {
        let log = api.finished(run).await;
        assert_eq!(log.last().unwrap().data["status"], "completed", "{log:#?}");
        assert_eq!(
            log.iter().filter(|event| event.kind == "run-finish").count(),
            1,
            "{log:#?}"
        );
        let announced = log
            .iter()
            .filter(|event| event.kind == "tool-input-available")
            .count();
        let settled = log
            .iter()
            .filter(|event| event.kind.starts_with("tool-output"))
            .count();
        assert_eq!(announced, settled, "{log:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_and_keeps_what_it_acknowledged() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    let waiting = api.start("call:ask text:1").await["runId"]
        .as_str()
        .unwrap()
        .to_owned();
    let offer = api.follow(&waiting, 0).await.offer().await;

    gateway.limit_files(Some(gateway.largest_file() + ROOM_BYTES));
    let body = json!({"agent": "worker", "message": format!("text:1 {}", "x".repeat(4096))});
    let mut accepted = Vec::new();
    let refused = soon("the disk being full", async {
        loop {
            let answer = api.post("/v1/runs", &body).await;
            match answer.status {
                201 => accepted.push(answer.text("runId")),
                _ => return answer,
            }
        }
    })
    .await;
    assert_eq!(refused.status, 503, "{refused:?}");
    // Reading goes on, and a result is refused rather than lost.
    assert_eq!(api.get(&format!("/v1/runs/{waiting}")).await.status, 200);
    let path = format!("/v1/runs/{waiting}/tool-results");
    let result = json!({"toolCallId": offer.call(), "result": {"answer": "y".repeat(8192)}});
    let posted = api.post(&path, &result).await;
    assert!([200, 503].contains(&posted.status), "{posted:?}");

    gateway.limit_files(None);
    let receipt = api.insist(&path, &result, None).await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    if posted.status == 200 {
        assert_eq!(receipt, posted);
    }
    let again = api
        .insist("/v1/runs", &body, Some("after-the-disk-was-full"))
        .await;
    accepted.push(again.text("runId"));
    accepted.push(waiting);
    gateway.crash().await;
    assert_eq!(
        api.runs().await,
        accepted.iter().cloned().collect(),
        "what was refused is not there, the rest is"
    );
    for run in &accepted {
        let log = api.finished(run).await;
        assert_eq!(log.last().unwrap().data["status"], "completed", "{log:#?}");
    }
}
