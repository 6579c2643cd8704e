//! Remembered decisions and what is said aloud, through the real binary, with the process killed in between.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Api, Gateway, put_agent, tool};

/// How often the gateway is killed right after it acknowledged a decision.
const KILLS: usize = 3;

fn tutor() -> Value {
    let more = json!({
        "approval": "until-revoked", "visibility": "public", "title": "Foglio",
        "voicePrompt": {"template": "Creare un foglio su {topic}?", "fallback": "Creare un nuovo foglio?"},
        "voiceFeedback": "Foglio su {topic} creato", "triggers": ["crea", "foglio"],
    });
    json!({
        "access": "public", "model": {"provider": "demo"},
        "tools": [tool("sheet", json!({"mode": "pass-through"}), more)],
    })
}

async fn call(api: &Api, space: &str) -> Value {
    let body = json!({"arguments": {"topic": "la luce"}, "agent": "tutor", "spaceId": space});
    let called = api.post("/v1/tools/sheet/call", &body).await;
    assert!(called.is_success(), "{called:?}");
    called.body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remembered_decision_outlives_every_kill_and_so_does_its_revocation() {
    let mut gateway = Gateway::start(&[]).await;
    let backend = gateway.api();
    put_agent(&backend, "tutor", &tutor()).await;
    let ada = backend.as_user("ada");
    for _ in 0..KILLS {
        let made = backend
            .post("/v1/spaces", &json!({"agent": "tutor", "members": ["ada"]}))
            .await;
        let space = made.text("id");
        let asked = call(&ada, &space).await;
        let question = &asked["pending"]["approvals"][0];
        assert_eq!(question["voice"], "Creare un foglio su la luce?", "{asked}");
        let path = format!(
            "/v1/approvals/{}",
            question["approvalId"].as_str().expect("it asks")
        );
        let decided = ada.post(&path, &json!({"approved": true})).await;
        assert_eq!(decided.body["remembered"], true, "{decided:?}");
        gateway.crash().await;
        let consented = call(&ada, &space).await;
        assert_eq!(consented["status"], "completed", "{consented}");
        let run = consented["runId"].as_str().expect("a run");
        let told = backend.get(&format!("/v1/runs/{run}")).await;
        let list = format!("/v1/spaces/{space}/consents");
        let known = ada.get(&list).await.body["consents"].clone();
        assert_eq!(told.body["decisions"][0]["consentId"], known[0]["id"], "{told:?}");
        let events = ada.list(&format!("/v1/runs/{run}/events")).await;
        let said = events.iter().find(|event| event.kind == "tool-output-available");
        assert_eq!(
            said.expect("an output").data["voice"]["text"],
            "Foglio su la luce creato"
        );

        let one = format!("{list}/{}", known[0]["id"].as_str().expect("one is listed"));
        let revoked = ada.send(Method::DELETE, &one, &json!({})).await;
        assert_eq!(revoked.status, 204, "{revoked:?}");
        gateway.crash().await;
        let again = call(&ada, &space).await;
        assert_eq!(again["status"], "waiting_approval", "{again}");
    }
}
