//! Access that was removed: streams that were open end at once, and what was told before is not told again.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Api, Gateway, soon};

/// No heartbeat comes to help.
const SETTINGS: [(&str, &str); 1] = [("TOOLGATE_HTTP_HEARTBEAT", "1h")];

async fn open(api: &Api, space: &str) -> reqwest::Response {
    let request = api.request(Method::GET, &format!("/v1/spaces/{space}/events"));
    let opened = request
        .header("accept", "text/event-stream")
        .send()
        .await
        .unwrap();
    assert_eq!(opened.status(), 200);
    opened
}

/// Everything that was sent, once the stream has ended.
async fn ended(stream: reqwest::Response) -> String {
    let told = soon("the stream's end", stream.text()).await.unwrap();
    assert!(
        told.contains("event: error\n") && told.contains("\"ACCESS_ENDED\""),
        "{told}"
    );
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_access_ends_open_streams_and_stored_receipts() {
    let gateway = Gateway::start(&SETTINGS).await;
    let (api, ada) = (gateway.api(), gateway.api().as_user("ada"));
    let body = json!({"message": "hello"});
    let posted = ada.insist("/v1/runs", &body, Some("once")).await;
    let (run, space) = (posted.text("runId"), posted.text("spaceId"));
    ada.finished(&run).await;
    let of_member = open(&ada, &space).await;
    let key = api.post("/v1/keys", &json!({"kind": "secret"})).await;
    let of_key = open(&api.with_key(&key.text("key")), &space).await;

    let member = format!("/v1/spaces/{space}/members/ada");
    assert_eq!(api.send(Method::DELETE, &member, &json!({})).await.status, 204);
    ended(of_member).await;
    let again = ada
        .request(Method::POST, "/v1/runs")
        .header("idempotency-key", "once");
    assert_eq!(again.json(&body).send().await.unwrap().status(), 404);

    let path = format!("/v1/keys/{}", key.text("id"));
    assert_eq!(api.send(Method::DELETE, &path, &json!({})).await.status, 204);
    ended(of_key).await;
}
