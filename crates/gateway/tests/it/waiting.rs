//! Calls that wait for a signal, over HTTP and over a crash.

use serde_json::json;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Gateway, put_agent, soon, worker};

#[tokio::test]
async fn a_signal_ends_a_wait_over_a_crash_by_the_intake_contract() {
    let models = ModelServer::start().await;
    let mut gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let mut config = worker(&models);
    config["tools"] = json!([{"name": "delivery", "description": "Waits for the delivery.",
        "executionType": "waiting", "execution": {"signal": true}}]);
    put_agent(&api, "worker", &config).await;
    let run = api.start("call:delivery text:2").await["runId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let call = soon("the wait", async {
        let mut stream = api.follow(&run, 0).await;
        loop {
            let event = stream.next().await.expect("the run goes on");
            if event.kind == "tool-executing" {
                return event.call().to_owned();
            }
        }
    })
    .await;
    gateway.crash().await;

    let path = format!("/v1/calls/{call}/signal");
    let arrived = json!({"value": {"parcels": 2}});
    assert_eq!(api.as_user("anybody").post(&path, &arrived).await.status, 403);
    assert_eq!(api.post(&path, &json!({})).await.status, 422);
    let receipt = api.post(&path, &arrived).await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    assert_eq!(api.post(&path, &arrived).await, receipt);
    assert_eq!(api.post(&path, &json!({"value": 3})).await.status, 409);
    let unknown = format!("/v1/calls/{}/signal", call.replace("_0", "_7"));
    assert_eq!(api.post(&unknown, &arrived).await.status, 404);
    api.finished(&run).await;
    let told = models
        .conversations()
        .last()
        .expect("asked")
        .iter()
        .any(|message| {
            message["role"] == "tool"
                && message["content"]
                    .as_str()
                    .is_some_and(|text| text.contains("parcels"))
        });
    assert!(told, "{:?}", models.conversations().last());
}
