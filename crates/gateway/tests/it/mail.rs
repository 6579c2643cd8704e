//! Notifications by mail from the real binary: what was refused is seen, outlives a crash and is tried again.

use serde_json::{Value, json};
use toolgate_testkit::mail_server::MailServer;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, LOOK, put_agent, soon};

/// The deliveries, once there are so many of them in this state.
async fn deliveries(api: &Api, state: &str, count: usize) -> Vec<Value> {
    soon("the deliveries", async {
        loop {
            let told = api.get(&format!("/v1/deliveries?state={state}")).await;
            let found = told.body["deliveries"].as_array().expect("a list").clone();
            if found.len() == count {
                return found;
            }
            tokio::time::sleep(LOOK).await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_was_refused_is_seen_and_tried_again_after_a_crash() {
    let (models, server) = (ModelServer::start().await, MailServer::start().await);
    let port = server.port().to_string();
    let mut gateway = Gateway::start(&[
        ("TOOLGATE_NOTIFICATIONS_SMTP_HOST", "127.0.0.1"),
        ("TOOLGATE_NOTIFICATIONS_SMTP_PORT", &port),
        ("TOOLGATE_NOTIFICATIONS_SMTP_SECURITY", "none"),
        ("TOOLGATE_NOTIFICATIONS_SMTP_FROM", "Gate <gate@example.com>"),
        ("TOOLGATE_NOTIFICATIONS_SMTP_TO", "ops@example.com"),
    ])
    .await;
    let notify = json!({"name": "sendNotification", "executionType": "prebuilt", "execution": {"action": "sendNotification"}});
    let config = json!({
        "instructions": "Follow the script.",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [notify],
    });
    put_agent(&gateway.api(), "worker", &config).await;
    let script = r#"call:sendNotification input:{"title":"Tea","channels":["mail"]} text:1"#;
    gateway.api().start(script).await;
    let refused = server.serve(Some(("RCPT", "550 5.1.1 nobody here")));
    assert_eq!(soon("the first try", refused).await.said("DATA"), 0);
    let dead = deliveries(&gateway.api(), "dead", 1).await.remove(0);
    assert!(
        dead["error"].as_str().expect("why").contains("nobody here"),
        "{dead}"
    );

    gateway.crash().await;
    let api = gateway.api();
    assert_eq!(deliveries(&api, "dead", 1).await[0], dead);
    let id = dead["id"].as_str().expect("an id");
    let told = api.post(&format!("/v1/deliveries/{id}/retry"), &json!({})).await;
    assert_eq!(told.body["state"], "pending", "{told:?}");
    let heard = soon("the second try", server.serve(None)).await;
    assert_eq!(heard.header("Subject: "), ["Tea"]);
    deliveries(&api, "pending", 0).await;
    deliveries(&api, "dead", 0).await;
}
