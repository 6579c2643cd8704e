//! The token of a user, passed on by `request` tools where the operator allows it.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, put_agent};

/// A server that notes the `Authorization` of every request, and says it back.
async fn server() -> (String, Arc<Mutex<Vec<String>>>, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = seen.clone();
    let app = Router::new().fallback(move |headers: HeaderMap| async move {
        let value = headers
            .get("authorization")
            .map_or("", |value| value.to_str().unwrap());
        noted.lock().unwrap().push(value.into());
        format!("you sent {value}")
    });
    let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
    (address, seen, AbortOnDropHandle::new(task))
}

fn agent(models: &ModelServer, address: &str, approval: &str) -> Value {
    json!({
        "access": "public",
        "instructions": "Follow the script.",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [{
            "name": "orders", "description": "Orders.", "executionType": "request", "approval": approval,
            "execution": {"url": format!("http://{address}/"), "headers": {"Authorization": "Bearer ${user.token}"}},
        }],
    })
}

/// Runs the tool for this caller; gives the events as text, as a backend sees them.
async fn run(caller: &Api, backend: &Api) -> String {
    let body = json!({"agent": "clerk", "message": "call:orders text:1"});
    let started = caller.post("/v1/runs", &body).await;
    assert!(started.is_success(), "{started:?}");
    let events = backend.finished(&started.text("runId")).await;
    format!("{events:?}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_token_reaches_the_allowed_server_and_nobody_else() {
    let (models, (address, seen, _server)) = (ModelServer::start().await, server().await);
    let origin = format!("http://{address}");
    let gateway = Gateway::start(&[
        ("TOOLGATE_OUTSIDE_ALLOW", &address),
        ("TOOLGATE_OUTSIDE_USER_TOKEN", &origin),
    ])
    .await;
    let (api, ada) = (gateway.api(), gateway.api().as_user("ada"));
    put_agent(&api, "clerk", &agent(&models, &address, "never")).await;
    let told = run(&ada, &api).await;
    let sent = seen.lock().unwrap().pop().expect("it was asked");
    let token = sent.strip_prefix("Bearer ").expect("a bearer").to_owned();
    assert!(ada.header_lines().contains(&token), "it is ada's own");
    assert!(told.contains("you sent Bearer [user token]"), "{told}");
    for text in [told, format!("{:?}", models.conversations()), gateway.log()] {
        assert!(!text.contains(&token), "{text}");
    }

    // A backend has no token of a user.
    let told = run(&api, &api).await;
    assert!(
        told.contains("UNAVAILABLE") && told.contains("Ask the user"),
        "{told}"
    );
    assert_eq!(seen.lock().unwrap().len(), 0);

    // It stands in a header or nowhere.
    let mut wrong = agent(&models, &address, "never");
    wrong["tools"][0]["execution"]["query"] = json!({"token": "${user.token}"});
    let refused = api.put("/v1/agents/clerk", &wrong).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert_eq!(refused.body["errors"][0]["pointer"], "/tools/0/execution/query");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_not_passed_on_where_nobody_allowed_it_nor_after_a_restart() {
    let (models, (address, seen, _server)) = (ModelServer::start().await, server().await);
    let gateway = Gateway::start(&[("TOOLGATE_OUTSIDE_ALLOW", &address)]).await;
    let (api, ada) = (gateway.api(), gateway.api().as_user("ada"));
    put_agent(&api, "clerk", &agent(&models, &address, "never")).await;
    let told = run(&ada, &api).await;
    assert!(
        told.contains("PERMISSION_DENIED") && told.contains("outside.user_token"),
        "{told}"
    );

    let origin = format!("http://{address}");
    let mut gateway = Gateway::start(&[
        ("TOOLGATE_OUTSIDE_ALLOW", &address),
        ("TOOLGATE_OUTSIDE_USER_TOKEN", &origin),
    ])
    .await;
    let (api, ada) = (gateway.api(), gateway.api().as_user("ada"));
    put_agent(&api, "clerk", &agent(&models, &address, "always")).await;
    let body = json!({"agent": "clerk", "message": "call:orders text:1"});
    let started = ada.post("/v1/runs", &body).await;
    let mut stream = api.follow(&started.text("runId"), 0).await;
    let asked = stream
        .until("a question", |event| event.kind == "tool-approval-request")
        .await;
    gateway.crash().await;
    let path = format!("/v1/approvals/{}", asked.text("approvalId"));
    assert!(api.post(&path, &json!({"approved": true})).await.is_success());
    let told = format!("{:?}", api.finished(&started.text("runId")).await);
    assert!(
        told.contains("UNAVAILABLE") && told.contains("Ask the user"),
        "{told}"
    );
    assert_eq!(seen.lock().unwrap().len(), 0);
}

/// A run of ada's whose call of `orders` waits for approval: its id, and the approval's. Child runs are asked about in the
/// run at the top too.
async fn asking(ada: &Api, api: &Api, body: &Value) -> (String, String) {
    let started = ada.post("/v1/runs", body).await;
    assert!(started.is_success(), "{started:?}");
    let run = started.text("runId");
    let mut stream = api.follow(&run, 0).await;
    let asked = stream
        .until("a question", |event| event.kind == "tool-approval-request")
        .await;
    (run, asked.text("approvalId").to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_used_for_what_its_user_wrote_while_a_member_and_by_agents_below() {
    let (models, (address, seen, _server)) = (ModelServer::start().await, server().await);
    let origin = format!("http://{address}");
    let gateway = Gateway::start(&[
        ("TOOLGATE_OUTSIDE_ALLOW", &address),
        ("TOOLGATE_OUTSIDE_USER_TOKEN", &origin),
    ])
    .await;
    let (api, ada) = (gateway.api(), gateway.api().as_user("ada"));
    put_agent(&api, "clerk", &agent(&models, &address, "always")).await;
    let space = api
        .post("/v1/spaces", &json!({"agent": "clerk", "members": ["ada"]}))
        .await;
    let body = json!({"agent": "clerk", "message": "call:orders text:1", "space": space.text("id")});
    let decide = async |approval: &str, decision: Value| {
        let decided = api.post(&format!("/v1/approvals/{approval}"), &decision).await;
        assert!(decided.is_success(), "{decided:?}");
    };

    // Somebody else writes the input.
    let (run, approval) = asking(&ada, &api, &body).await;
    decide(&approval, json!({"approved": true, "input": {"all": true}})).await;
    let told = format!("{:?}", api.finished(&run).await);
    assert!(
        told.contains("UNAVAILABLE") && told.contains("another person changed"),
        "{told}"
    );
    assert_eq!(seen.lock().unwrap().len(), 0);

    // The same, approved as it is.
    let (run, approval) = asking(&ada, &api, &body).await;
    decide(&approval, json!({"approved": true})).await;
    api.finished(&run).await;
    assert_eq!(seen.lock().unwrap().drain(..).count(), 1);

    // The user is removed before the call is made.
    let (run, approval) = asking(&ada, &api, &body).await;
    let member = format!("/v1/spaces/{}/members/ada", space.text("id"));
    let removed = api.send(reqwest::Method::DELETE, &member, &json!({})).await;
    assert!(removed.is_success(), "{removed:?}");
    decide(&approval, json!({"approved": true})).await;
    let told = format!("{:?}", api.finished(&run).await);
    assert!(
        told.contains("UNAVAILABLE") && told.contains("removed from the space"),
        "{told}"
    );
    assert_eq!(seen.lock().unwrap().len(), 0);

    // An agent below has the tool, and the one at the top has not.
    let mut top = agent(&models, &address, "never");
    top["tools"] = json!([{
        "name": "clerk", "description": "Asks the clerk.", "executionType": "ai-agent",
        "parameters": {"type": "object", "properties": {"prompt": {"type": "string"}}},
        "execution": {"agent": "clerk"},
    }]);
    put_agent(&api, "top", &top).await;
    let body = json!({"agent": "top", "message": r#"call:clerk input:{"prompt":"call:orders"} say:done"#});
    let (run, approval) = asking(&ada, &api, &body).await;
    decide(&approval, json!({"approved": true})).await;
    let told = format!("{:?}", api.finished(&run).await);
    assert_eq!(seen.lock().unwrap().drain(..).count(), 1, "{told}");
}
