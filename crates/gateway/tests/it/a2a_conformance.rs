//! The agent of the conformance kits of A2A: what each scenario does, and that there is none unless it is switched on.

use serde_json::{Value, json};

use crate::harness::{Api, Gateway};

async fn send(api: &Api, scenario: &str, more: Value) -> Value {
    let mut message = json!({"messageId": scenario, "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    let members = message.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    let params = json!({ "message": message });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
    let answer = api.post("/a2a", &body).await.body;
    assert!(answer.get("error").is_none(), "{scenario}: {answer}");
    answer["result"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_scenario_does_what_the_kits_expect() {
    let gateway = Gateway::start(&[("TOOLGATE_A2A_CONFORMANCE_AGENT", "true")]).await;
    let api = gateway.api();
    let file = json!({"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"});
    let link =
        json!({"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"});
    let data = json!({"data": {"key": "value", "count": 42}, "mediaType": "application/json"});
    for (scenario, part) in [
        ("tck-complete-task-1", json!({"text": "Hello from TCK"})),
        ("anything", json!({"text": "Hello from TCK"})),
        ("tck-artifact-text-1", json!({"text": "Generated text content"})),
        ("tck-artifact-file-1", file.clone()),
        ("tck-artifact-file-url-1", link),
        ("tck-artifact-data-1", data),
        (
            "tck-stream-artifact-chunked-1",
            json!({"text": "chunk-1 chunk-2"}),
        ),
        ("tck-stream-artifact-file-1", file),
        ("test-resubscribe-message-id", json!({"text": "Done."})),
    ] {
        let task = send(&api, scenario, json!({})).await["task"].clone();
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{scenario}");
        assert_eq!(task["artifacts"][0]["parts"], json!([part]), "{scenario}");
        assert_eq!(
            task["history"][0]["parts"],
            json!([{"text": "hello"}]),
            "{scenario}"
        );
    }
    let rejected = send(&api, "tck-reject-task-1", json!({})).await;
    assert_eq!(rejected["task"]["status"]["state"], "TASK_STATE_REJECTED");
    let message = send(&api, "tck-message-response-1", json!({})).await;
    assert_eq!(
        message["message"]["parts"],
        json!([{"text": "Direct message response"}])
    );
    // The successor of the first kit names the scenario in the text.
    let by_text = json!({"parts": [{"text": "tck-artifact-text"}]});
    let task = send(&api, "0123", by_text).await;
    assert_eq!(
        task["task"]["artifacts"][0]["parts"][0]["text"],
        "Generated text content"
    );

    let paused = send(&api, "tck-input-required-1", json!({})).await["task"].clone();
    assert_eq!(paused["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let on = send(&api, "tck-complete-task-2", json!({"taskId": paused["id"]})).await["task"].clone();
    assert_eq!(
        (&on["id"], &on["status"]["state"]),
        (&paused["id"], &json!("TASK_STATE_COMPLETED"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_no_conformance_agent_unless_it_is_switched_on() {
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let card = api.get("/.well-known/agent-card.json").await;
    assert_eq!(card.body["name"], "default", "{card:?}");
    assert_eq!(
        api.get("/a2a/a2a-conformance/.well-known/agent-card.json")
            .await
            .status,
        404
    );
}
