//! `POST /v1/tools/{name}/call`: one call without a model.

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_testkit_http::client::{Client, kinds};

use crate::world::{BODY_BYTES_MAX, World, agent};

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

async fn space_of(client: &Client<'_>) -> String {
    text(&client.post("/v1/spaces", json!({})).await.expect(201)["id"])
}

#[tokio::test(start_paused = true)]
async fn a_call_gives_its_output() {
    let world = World::new().await;
    let told = world
        .backend()
        .post("/v1/tools/mirror/call", json!({"arguments": {"a": [1, null]}}))
        .await
        .expect(200);
    assert_eq!(told["output"], json!({"a": [1, null]}));
    assert_eq!(told["status"], "completed");
    let (run, call) = (text(&told["runId"]), text(&told["toolCallId"]));
    assert_eq!(call, format!("{}_0", run.replace("run_", "call_")));

    let seen = world.backend().get(&format!("/v1/runs/{run}")).await.expect(200);
    assert_eq!(
        (&seen["tool"], &seen["agent"]),
        (&json!("mirror"), &json!("default"))
    );
    assert_eq!(seen["usage"], json!({"inputTokens": 0, "outputTokens": 0}));
    assert_eq!(seen["spaceId"], told["spaceId"]);
    let listed = world.backend().get("/v1/runs").await.expect(200);
    assert_eq!(listed["runs"][0]["tool"], "mirror");
    let events = world
        .backend()
        .follow(&format!("/v1/runs/{run}/events"))
        .await
        .rest()
        .await;
    assert_eq!(
        kinds(&events),
        [
            "run-start",
            "call-request",
            "step-start",
            "tool-input-available",
            "step-finish",
            "tool-output-available",
            "run-finish"
        ]
    );
    let empty = world
        .backend()
        .post("/v1/tools/open_mirror/call", json!({}))
        .await;
    assert_eq!(empty.expect(200)["output"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_told_with_its_code_and_place() {
    let world = World::new().await;
    let backend = world.backend();
    let wrong = json!({"arguments": {"to": 7}});
    let told = backend.post("/v1/tools/guarded/call", wrong).await.expect(422);
    assert_eq!(told["code"], "VALIDATION_FAILED");
    assert_eq!(told["errors"][0]["pointer"], "/arguments/to");
    for (body, pointer) in [
        (json!({"arguments": 5}), "/arguments"),
        (json!({"args": {}}), "/args"),
        (json!({"space": "space_x"}), "/space"),
        (json!({"clientTools": [{"name": "x"}]}), "/clientTools/0"),
    ] {
        let told = backend.post("/v1/tools/mirror/call", body).await.expect(422);
        assert!(text(&told["errors"][0]["pointer"]).starts_with(pointer), "{told}");
    }
    let told = backend.post("/v1/tools/mirrow/call", json!({})).await.expect(404);
    assert!(text(&told["detail"]).contains("mirror"), "{told}");
    assert_eq!(
        backend.post("/v1/tools/9lives/call", json!({})).await.code(404),
        "NOT_FOUND"
    );
    let nobody = json!({"agent": "nobody"});
    let told = backend.post("/v1/tools/mirror/call", nobody).await.expect(404);
    assert_eq!(told["errors"][0]["pointer"], "/agent");
    let nowhere = json!({"spaceId": "space_00000000000000000000000009"});
    assert_eq!(
        backend.post("/v1/tools/mirror/call", nowhere).await.code(404),
        "NOT_FOUND"
    );
    let large = json!({"arguments": {"a": "x".repeat(BODY_BYTES_MAX - 3000)}});
    let told = backend.post("/v1/tools/mirror/call", large).await;
    assert_eq!(told.code(413), "CONTENT_TOO_LARGE");
    let runs = backend.get("/v1/runs").await.expect(200);
    assert_eq!(runs["runs"], json!([]), "nothing was stored");

    let failed = backend
        .post("/v1/tools/fail/call", json!({"arguments": {"x": 1}}))
        .await
        .expect(200);
    assert_eq!(
        (&failed["status"], &failed["output"]),
        (&json!("failed"), &Value::Null)
    );
    assert_eq!(failed["error"]["code"], "EXECUTION_FAILED");
    assert!(text(&failed["error"]["message"]).contains("no luck"), "{failed}");
    let seen = backend
        .get(&format!("/v1/runs/{}", text(&failed["runId"])))
        .await
        .expect(200);
    assert_eq!(seen["finishReason"], "tool-error");
    assert!(text(&seen["error"]).starts_with("EXECUTION_FAILED: "), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_asked_for_and_answers_early() {
    let world = World::new().await;
    let began = Instant::now();
    let body = json!({"arguments": {"to": "a"}});
    let told = world.backend().post("/v1/tools/guarded/call", body.clone()).await;
    assert_eq!(
        told.header("location"),
        format!("/v1/runs/{}", text(&told.body["runId"]))
    );
    let waits = told.expect(202);
    assert_eq!(waits["status"], "waiting_approval");
    let approval = text(&waits["pending"]["approvals"][0]["approvalId"]);
    let decided = world
        .backend()
        .with("prefer", "wait=30")
        .post(&format!("/v1/approvals/{approval}"), json!({"approved": true}))
        .await
        .expect(200);
    assert_eq!(decided["run"]["status"], "completed");

    let denied = world
        .backend()
        .post("/v1/tools/guarded/call", body)
        .await
        .expect(202);
    let approval = text(&denied["pending"]["approvals"][0]["approvalId"]);
    let decided = world
        .backend()
        .with("prefer", "wait=30")
        .post(
            &format!("/v1/approvals/{approval}"),
            json!({"approved": false, "reason": "no"}),
        )
        .await
        .expect(200);
    assert_eq!(decided["run"]["status"], "failed");
    assert_eq!(decided["run"]["error"], "DENIED: no");
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_there_answers_within_the_wait() {
    let world = World::new().await;
    let ada = world.user("ada");
    let space = space_of(&ada).await;
    let backend = world.backend();
    let mut events = ada.follow(&format!("/v1/spaces/{space}/events")).await;
    let calling = backend.post(
        "/v1/tools/ask/call",
        json!({"spaceId": space, "arguments": {"q": 1}}),
    );
    let serving = async {
        let offer = events.until("tool-input-available").await.pop().unwrap().data;
        assert_eq!(
            offer["input"],
            json!({"q": 1}),
            "whoever executes it needs the input"
        );
        let result = json!({"toolCallId": offer["toolCallId"], "result": {"a": 2}});
        ada.post(&format!("/v1/spaces/{space}/tool-results"), result)
            .await
            .expect(200);
    };
    let (told, ()) = tokio::join!(calling, serving);
    assert_eq!(told.expect(200)["output"], json!({"a": 2}));

    let began = Instant::now();
    let told = backend.post("/v1/tools/ask/call", json!({})).await.expect(202);
    assert_eq!(began.elapsed().as_secs(), 30, "nobody is there");
    assert_eq!(told["status"], "waiting_tool");
    assert_eq!(told["pending"]["calls"][0]["toolName"], "ask");
    let brought = json!({"clientTools": [{
        "name": "beep", "description": "Beeps.", "parameters": {"type": "object", "properties": {}},
    }]});
    let told = backend
        .post("/v1/tools/beep/call?wait=1s", brought)
        .await
        .expect(202);
    assert_eq!(told["pending"]["calls"][0]["toolName"], "beep");
}

#[tokio::test(start_paused = true)]
async fn a_repeat_waits_for_the_same_call() {
    let world = World::new().await;
    let backend = world
        .backend()
        .with("idempotency-key", "once")
        .with("prefer", "wait=2");
    let body = json!({"arguments": {"n": 1}});
    let told = backend.post("/v1/tools/slow/call", body.clone()).await;
    assert_eq!(told.header("preference-applied"), "wait=2");
    let first = told.expect(202);
    assert_eq!(first["status"], "running");
    world.tools.gate.add_permits(1);
    let again = backend.post("/v1/tools/slow/call", body).await.expect(200);
    assert_eq!(
        (&again["runId"], &again["output"]),
        (&first["runId"], &json!({"n": 1}))
    );
    assert_eq!(world.tools.calls().len(), 1);
    let other = backend.post("/v1/tools/slow/call", json!({})).await;
    assert_eq!(other.code(422), "IDEMPOTENCY_KEY_REUSED");
}

#[tokio::test(start_paused = true)]
async fn a_user_calls_in_its_space_what_its_agent_shows() {
    let world = World::new().await;
    let mut config = agent();
    config["access"] = json!("backend");
    world.backend().put("/v1/agents/inner", config).await.expect(201);
    let ada = world.user("ada");
    let space = space_of(&ada).await;
    let body = json!({"spaceId": space, "arguments": {"a": 1}});
    let told = ada
        .post("/v1/tools/open_mirror/call", body.clone())
        .await
        .expect(200);
    assert_eq!(told["output"], json!({"a": 1}));
    // One that it is not shown, one that only the gateway has, one of an agent that it may not start.
    for (tool, agent) in [
        ("mirror", "default"),
        ("echo", "default"),
        ("open_mirror", "inner"),
    ] {
        let mut body = body.clone();
        body["agent"] = agent.into();
        let told = ada.post(&format!("/v1/tools/{tool}/call"), body).await;
        assert_eq!(told.code(404), "NOT_FOUND", "{tool}");
    }
    let told = ada
        .post("/v1/tools/open_mirror/call", json!({}))
        .await
        .expect(422);
    assert_eq!(told["errors"][0]["pointer"], "/spaceId");
    for stranger in [world.user("eve"), world.stranger()] {
        let told = stranger.post("/v1/tools/open_mirror/call", body.clone()).await;
        assert_eq!(told.code(404), "NOT_FOUND");
    }
    world
        .backend()
        .post("/v1/tools/echo/call", body)
        .await
        .expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_shared_tool_is_called_by_its_name() {
    let world = World::new().await;
    let shared = json!({
        "description": "for tests", "executionType": "basic", "execution": {"mode": "pass-through"},
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
    });
    let (backend, ada) = (world.backend(), world.user("ada"));
    backend.put("/v1/shared-tools/copy", shared).await.expect(201);
    let space = space_of(&ada).await;
    let body = json!({"spaceId": space, "arguments": {"n": 1}});
    let told = backend
        .post("/v1/tools/copy/call", body.clone())
        .await
        .expect(200);
    assert_eq!(told["output"], json!({"n": 1}));
    let wrong = json!({"arguments": {"n": "one"}});
    let told = backend.post("/v1/tools/copy/call", wrong).await.expect(422);
    assert_eq!(told["errors"][0]["pointer"], "/arguments/n");
    assert_eq!(ada.post("/v1/tools/copy/call", body).await.code(404), "NOT_FOUND");
    let told = world.stranger().post("/v1/tools/copy/call", json!({})).await;
    assert_eq!(told.code(404), "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn a_user_learns_of_a_backends_call_what_it_learns_of_any() {
    let world = World::new().await;
    let ada = world.user("ada");
    let space = space_of(&ada).await;
    for (tool, is_shown) in [("mirror", false), ("fail", false), ("open_mirror", true)] {
        let body = json!({"spaceId": space, "arguments": {"mark": "hush"}});
        let told = world
            .backend()
            .post(&format!("/v1/tools/{tool}/call"), body)
            .await
            .expect(200);
        let run = text(&told["runId"]);
        let read = [
            ada.get(&format!("/v1/runs/{run}")).await.expect(200),
            ada.get(&format!("/v1/runs/{run}/events")).await.expect(200),
        ];
        assert!(read[1].to_string().contains(tool));
        assert_eq!(read[1].to_string().contains("hush"), is_shown, "{read:?}");
        assert!(!read[0].to_string().contains("hush"), "{read:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_users_client_call_is_offered_to_its_own_clients_and_to_backends() {
    let world = World::new().await;
    let (ada, bob, backend) = (world.user("ada"), world.user("bob"), world.backend());
    let space = space_of(&ada).await;
    backend
        .put(&format!("/v1/spaces/{space}/members/bob"), json!({}))
        .await
        .expect(204);
    let body = json!({"spaceId": space, "arguments": {"mark": "hush"}});
    let told = ada
        .post("/v1/tools/ask/call?wait=1ms", body.clone())
        .await
        .expect(202);
    let (run, call) = (text(&told["runId"]), text(&told["toolCallId"]));
    assert_eq!(
        told["pending"]["calls"][0]["toolName"], "ask",
        "the caller's offer"
    );
    let result = json!({"toolCallId": call, "result": {"by": "bob"}});
    for refused in [
        bob.post(&format!("/v1/calls/{call}/claim"), json!({"holder": "tab"}))
            .await,
        bob.post(&format!("/v1/calls/{call}/progress"), json!({"progress": 1}))
            .await,
        bob.post(&format!("/v1/calls/{call}/release"), json!({"holder": "tab"}))
            .await,
        bob.post(&format!("/v1/spaces/{space}/tool-results"), result.clone())
            .await,
        bob.post(&format!("/v1/runs/{run}/tool-results"), result).await,
    ] {
        assert_eq!(refused.code(403), "NOT_OFFERED");
    }
    let seen = [
        bob.get(&format!("/v1/runs/{run}")).await.expect(200),
        bob.get(&format!("/v1/runs/{run}/events")).await.expect(200),
        bob.get(&format!("/v1/spaces/{space}")).await.expect(200),
    ];
    let seen = format!("{seen:?}");
    assert!(
        !seen.contains("hush") && !seen.contains("deadline"),
        "another's offer: {seen}"
    );

    ada.post(&format!("/v1/calls/{call}/claim"), json!({"holder": "tab"}))
        .await
        .expect(200);
    let result = json!({"toolCallId": call, "result": {"by": "ada"}});
    ada.post(&format!("/v1/spaces/{space}/tool-results"), result)
        .await
        .expect(200);
    let seen = bob.get(&format!("/v1/runs/{run}/events")).await.expect(200);
    assert!(!seen.to_string().contains("\"by\""), "another's result: {seen}");

    // A backend may execute any of them, and what a backend asks for is for every member.
    let told = ada
        .post("/v1/tools/ask/call?wait=1ms", body.clone())
        .await
        .expect(202);
    let result = json!({"toolCallId": told["toolCallId"], "result": {}});
    backend
        .post(&format!("/v1/spaces/{space}/tool-results"), result)
        .await
        .expect(200);
    let told = backend
        .post("/v1/tools/ask/call?wait=1ms", body)
        .await
        .expect(202);
    let result = json!({"toolCallId": told["toolCallId"], "result": {}});
    bob.post(&format!("/v1/spaces/{space}/tool-results"), result)
        .await
        .expect(200);
}

#[tokio::test(start_paused = true)]
async fn what_a_removed_member_asked_for_is_cancelled() {
    let world = World::new().await;
    let (ada, bob, backend) = (world.user("ada"), world.user("bob"), world.backend());
    let space = space_of(&ada).await;
    backend
        .put(&format!("/v1/spaces/{space}/members/bob"), json!({}))
        .await
        .expect(204);
    let body = json!({"spaceId": space});
    let mut runs = Vec::new();
    for tool in ["ask", "guarded_ask"] {
        for user in [&ada, &bob] {
            let told = user
                .post(&format!("/v1/tools/{tool}/call?wait=1ms"), body.clone())
                .await
                .expect(202);
            runs.push(text(&told["runId"]));
        }
    }
    backend
        .delete(&format!("/v1/spaces/{space}/members/bob"))
        .await
        .expect(204);
    let mut statuses = Vec::new();
    for run in runs {
        let seen = backend.get(&format!("/v1/runs/{run}")).await.expect(200);
        statuses.push(text(&seen["status"]));
    }
    assert_eq!(
        statuses,
        ["waiting_tool", "cancelled", "waiting_approval", "cancelled"]
    );
}
