//! T7: the client is gone for ever. The deadline passes, the model is told, the run goes on.

use serde_json::json;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Gateway, gateway};

/// The client never answers; `crash` says whether the gateway dies while it waits.
async fn check(gateway: &mut Gateway, models: &ModelServer, crash: bool) {
    let api = gateway.api();
    let started = api.start("call:hasty text:2").await;
    let (run, space) = (
        started["runId"].as_str().unwrap(),
        started["spaceId"].as_str().unwrap(),
    );
    let offer = api.follow(run, 0).await.offer().await;
    if crash {
        gateway.crash().await;
    }
    let log = api.finished(run).await;
    let settled: Vec<_> = log
        .iter()
        .filter(|event| event.kind.starts_with("tool-output"))
        .collect();
    assert_eq!(settled.len(), 1, "{settled:?}");
    assert_eq!(
        (settled[0].kind.as_str(), settled[0].text("code")),
        ("tool-output-error", "TIMEOUT")
    );
    assert_eq!(log.last().unwrap().data["status"], "completed");
    let shown = models.results(offer.call());
    assert!(
        shown.len() == 1 && shown[0].contains("in time"),
        "the model was told {shown:?}"
    );

    let late = api.result(run, offer.call(), &json!({"answer": "late"})).await;
    assert_eq!(
        (late.status, late.text("code").as_str()),
        (410, "TIMEOUT"),
        "{late:?}"
    );

    let next = api
        .post(
            &format!("/v1/spaces/{space}/messages"),
            &json!({"agent": "worker", "content": "text:1"}),
        )
        .await;
    assert!(next.is_success(), "{next:?}");
    let log = api.finished(&next.text("runId")).await;
    assert_eq!(log.last().unwrap().data["status"], "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_answers_costs_one_call_and_not_the_run() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    check(&mut gateway, &models, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_passes_also_when_the_gateway_dies_while_it_waits() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    check(&mut gateway, &models, true).await;
}
