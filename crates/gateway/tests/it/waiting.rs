//! Calls that wait for a time or a signal, over HTTP and over a crash.

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, put_agent, soon, worker};

/// Starts a run that waits as `execution` says; gives the run and the call once it does.
async fn waits(api: &Api, models: &ModelServer, execution: Value) -> (String, String) {
    let mut config = worker(models);
    config["tools"] = json!([{"name": "delivery", "description": "Waits for the delivery.",
        "executionType": "waiting", "execution": execution}]);
    put_agent(api, "worker", &config).await;
    let started = api.start("call:delivery text:2").await;
    let run = started["runId"].as_str().expect("an id").to_owned();
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
    (run, call)
}

/// The result that the model was last shown.
fn last_result(models: &ModelServer) -> String {
    let conversations = models.conversations();
    let mut messages = conversations.last().expect("asked").iter();
    let result = messages.rfind(|message| message["role"] == "tool");
    let content = &result.expect("a result")["content"];
    content.as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn a_pause_ends_by_itself_over_a_crash() {
    let models = ModelServer::start().await;
    let mut gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let (run, _) = waits(&api, &models, json!({"duration": "1s"})).await;
    gateway.crash().await;
    api.finished(&run).await;
    assert!(
        last_result(&models).contains("waitedUntil"),
        "{}",
        last_result(&models)
    );
}

#[tokio::test]
async fn a_signal_ends_a_wait_over_a_crash_by_the_intake_contract() {
    let models = ModelServer::start().await;
    let mut gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let (run, call) = waits(&api, &models, json!({"signal": true})).await;
    gateway.crash().await;

    let pauses = |seen: Value| seen["pending"]["pauses"].clone();
    let seen = pauses(api.get(&format!("/v1/runs/{run}")).await.body);
    assert_eq!(
        (&seen[0]["toolCallId"], &seen[0]["signal"]),
        (&json!(call), &json!(true))
    );
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
    let seen = pauses(api.get(&format!("/v1/runs/{run}")).await.body);
    assert_eq!(seen, Value::Null);
    assert_eq!(last_result(&models), r#"{"signal":{"parcels":2}}"#);
}
