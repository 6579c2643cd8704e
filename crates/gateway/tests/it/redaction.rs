//! T11: no byte of a server tool's input, output or error reaches a public key: live, replayed, listed, or in
//! the state of a run.

use reqwest::Method;
use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Event, Gateway, put_agent, tool};

/// Marks what must stay on the gateway's side.
pub const MARK: &str = "MARKED";

/// An agent whose instructions hold the script, so that no user has to write a mark.
pub fn agent(models: &ModelServer, script: &str) -> Value {
    let strict =
        json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]});
    let only_numbers = json!({"type": "object", "properties": {"secret": {"type": "integer"}}});
    json!({
        "access": "public",
        "instructions": format!("script: {script}"),
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [
            tool("fixed", json!({"mode": "static", "output": {"secret": format!("{MARK}-output")}}), json!({})),
            tool("echo", json!({"mode": "pass-through"}), json!({"voiceFeedback": {"template": "Echo of {a}", "fallback": "Echoed"}})),
            tool("strict", json!({"mode": "pass-through"}), json!({"parameters": strict})),
            tool(
                "wrong",
                json!({"mode": "static", "output": {"secret": format!("{MARK}-output")}}),
                json!({"outputSchema": only_numbers}),
            ),
            tool("risky", json!({"mode": "pass-through"}), json!({
                "approval": {"approvers": "backend", "editable": true}, "voicePrompt": "Run with {a}?",
            })),
            tool("ask", Value::Null, json!({})),
        ],
    })
}

/// Scripts that bring marks into every field of a server tool's events; each also has a call that the user
/// must see.
pub const SCRIPTS: &[&str] = &[
    "call:fixed input:{\"a\":\"MARKED-input-that-comes-in-fragments\"} call:ask input:{\"shown\":true} text:2",
    "call:echo input:{\"a\":\"MARKED-passed-through\"} call:ask input:{\"shown\":true} text:2",
    "call:strict input:{\"count\":\"MARKED-invalid\"} call:ask input:{\"shown\":true} text:2",
    "call:wrong input:{\"a\":\"MARKED\"} call:ask input:{\"shown\":true} text:2",
    "call:no_such_tool input:{\"a\":\"MARKED-unknown\"} call:ask input:{\"shown\":true} text:2",
    "call:echo input:MARKED-not-json call:ask input:{\"shown\":true} text:2",
    "call:risky input:{\"a\":\"MARKED-approval\"} call:ask input:{\"shown\":true} text:2",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_learns_that_a_server_tool_ran_and_nothing_else() {
    let models = ModelServer::start().await;
    // A look at the run with every event is more than one user may ask for by default.
    let rate = [
        ("TOOLGATE_HTTP_RATE_PUBLIC_PER_SECOND", "100000"),
        ("TOOLGATE_HTTP_RATE_PUBLIC_BURST", "100000"),
    ];
    let gateway = Gateway::start(&rate).await;
    for script in SCRIPTS {
        put_agent(&gateway.api(), "keeper", &agent(&models, script)).await;
        check(&gateway, script).await;
    }
}

async fn check(gateway: &Gateway, script: &str) {
    let user = gateway.api().as_user("ada");
    let started = user
        .post("/v1/runs", &json!({"agent": "keeper", "message": "go"}))
        .await;
    assert!(started.is_success(), "{started:?}");
    let (run, space) = (started.text("runId"), started.text("spaceId"));
    let mut seen = vec![started.body.to_string()];

    // Live, with a look at the run's state wherever it waits.
    let mut live = user.follow(&run, 0).await;
    let mut offered = false;
    while let Some(event) = live.next().await {
        seen.push(user.get(&format!("/v1/runs/{run}")).await.body.to_string());
        if event.is_offer() {
            offered = true;
            assert_eq!(
                event.data["input"],
                json!({"shown": true}),
                "a user sees what it has to execute"
            );
            let receipt = user.result(&run, event.call(), &json!({"answer": 1})).await;
            assert_eq!(receipt.status, 200, "{receipt:?}");
        }
        if event.kind == "tool-approval-request" {
            // Decided by the backend, and by nobody else: who may not decide does not see what there is to decide.
            let body = json!({"approved": true, "input": {"a": format!("{MARK}-edited")}});
            let decided = gateway
                .api()
                .post(&format!("/v1/approvals/{}", event.text("approvalId")), &body)
                .await;
            assert_eq!(decided.status, 200, "{decided:?}");
        }
    }
    assert!(offered, "{script}: the user's own call was never offered");
    seen.push(text(&live.raw));

    // Replayed from the start and from every place, by run and by space; listed; as a state.
    let events = user.list(&format!("/v1/runs/{run}/events")).await;
    for cursor in [0].into_iter().chain(events.iter().map(|event| event.seq)) {
        let mut replay = user.follow(&run, cursor).await;
        replay.rest().await;
        seen.push(text(&replay.raw));
    }
    for path in [
        format!("/v1/runs/{run}/events"),
        format!("/v1/spaces/{space}/events"),
        format!("/v1/runs/{run}"),
    ] {
        seen.push(user.get(&path).await.body.to_string());
    }
    seen.push(space_stream(&user, &space).await);
    for text in &seen {
        assert!(!text.contains(MARK), "{script}: a user was shown {text}");
    }

    // The mark was there to be hidden, and the calls' names were not hidden.
    let all = gateway.api().list(&format!("/v1/runs/{run}/events")).await;
    assert!(
        all.iter().any(|event| event.data.to_string().contains(MARK)),
        "{script}: {all:#?}"
    );
    let settled = |events: &[Event]| {
        events
            .iter()
            .filter(|event| event.kind.starts_with("tool-output"))
            .map(|event| event.call().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(settled(&events), settled(&all), "a user sees that a call ended");
    assert_eq!(settled(&all).len(), 2, "{script}: {all:#?}");
}

/// The first bytes of a space's stream, which never ends: as many events as the list has.
async fn space_stream(user: &Api, space: &str) -> String {
    let path = format!("/v1/spaces/{space}/events");
    let count = user.list(&path).await.len();
    let request = user
        .request(Method::GET, &path)
        .header("accept", "text/event-stream")
        .header("last-event-id", "0");
    let mut stream = crate::harness::EventStream::of(request.send().await.unwrap());
    for _ in 0..count {
        stream.next().await.expect("as many as are listed");
    }
    text(&stream.raw)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("a stream is UTF-8")
}
