//! Nothing of a server tool's input, output, error or progress reaches a user, however it is read.

use http_body_util::BodyExt;
use serde_json::json;
use toolgate_testkit_http::client::{Client, kinds, of};
use toolgate_testkit_http::world::agent;

use crate::approvals::set_approval;
use crate::world::{HIDDEN, World};

/// Everything a client can read of a run, as bytes.
async fn everything(client: &Client<'_>, run: &str, space: &str) -> String {
    let mut read = String::new();
    for path in [
        format!("/v1/runs/{run}"),
        format!("/v1/runs/{run}/events?limit=500"),
        format!("/v1/spaces/{space}/events?limit=500"),
        format!("/v1/spaces/{space}/runs"),
        format!("/v1/spaces/{space}"),
    ] {
        let response = client
            .raw(http::Method::GET, &path, axum::body::Body::empty())
            .await;
        read.push_str(
            std::str::from_utf8(&response.into_body().collect().await.unwrap().to_bytes()).unwrap(),
        );
    }
    let stream = client.follow(&format!("/v1/runs/{run}/events?until=pause")).await;
    for event in stream.rest().await {
        read.push_str(&event.data.to_string());
    }
    read
}

#[tokio::test]
async fn a_user_sees_that_a_server_tool_ran_and_nothing_of_what_it_did() {
    let world = World::new().await;
    let ada = world.user("ada");
    // Whoever may decide is shown the input, less what the tool hides.
    set_approval(&world, json!({ "hide": ["/hidden"] })).await;
    for tool in ["mirror", "fail", "guarded", "slow"] {
        world.tools.gate.add_permits(1);
        let live = ada.run(&format!("hide:{tool}")).await;
        let (run, space) = (of(&live, "run-start", "runId"), of(&live, "run-start", "spaceId"));
        assert_eq!(of(&live, "tool-input-available", "toolName"), tool);
        let mut read = everything(&ada, &run, &space).await;
        read.extend(live.iter().map(|event| event.data.to_string()));
        assert!(!read.contains(HIDDEN), "{tool}");
        assert!(everything(&world.backend(), &run, &space).await.contains(HIDDEN));
        if tool == "guarded" {
            let approval = of(&live, "tool-approval-request", "approvalId");
            ada.post(&format!("/v1/approvals/{approval}"), json!({ "approved": true }))
                .await
                .expect(200);
            let rest = ada.follow(&format!("/v1/runs/{run}/events")).await.rest().await;
            assert!(kinds(&rest).contains(&"tool-output-available"));
            assert!(!everything(&ada, &run, &space).await.contains(HIDDEN));
        }
    }
}

#[tokio::test]
async fn a_tool_that_opts_in_and_a_client_tool_are_seen() {
    let world = World::new().await;
    let ada = world.user("ada");
    let live = ada
        .run(&format!("call:open_mirror={{\"secret\":\"{HIDDEN}\"}}"))
        .await;
    let output = live
        .iter()
        .find(|event| event.kind == "tool-output-available")
        .unwrap();
    assert_eq!(output.data["output"], json!({ "secret": HIDDEN }));
    let live = ada.run(&format!("call:ask={{\"secret\":\"{HIDDEN}\"}}")).await;
    let offer = live
        .iter()
        .find(|event| event.kind == "tool-input-available")
        .unwrap();
    assert_eq!(offer.data["input"], json!({ "secret": HIDDEN }));
    let run = ada
        .get(&format!("/v1/runs/{}", of(&live, "run-start", "runId")))
        .await
        .expect(200);
    assert_eq!(run["pending"]["calls"][0]["input"], json!({ "secret": HIDDEN }));
    assert_eq!(run["finishReason"], "tool-calls");
    assert_eq!(run["usage"], json!({ "inputTokens": 10, "outputTokens": 5 }));
}

#[tokio::test]
async fn a_run_tells_how_it_ended() {
    let world = World::new().await;
    let events = world.backend().run("hello").await;
    let run = world
        .backend()
        .get(&format!("/v1/runs/{}", of(&events, "run-start", "runId")))
        .await
        .expect(200);
    assert_eq!(run["status"], "completed");
    assert_eq!(run["text"], "you said hello");
    assert_eq!(run["finishReason"], "stop");
    assert_eq!(run["pending"], json!({ "calls": [], "approvals": [] }));
    assert_eq!(run["agent"], "default");
    assert_eq!(run["seq"], events.last().unwrap().id);
}

#[tokio::test]
async fn what_a_client_says_was_said_before_is_kept_for_backends_alone_and_only_if_it_is_used() {
    let world = World::new().await;
    let ada = world.user("ada");
    let past = json!([{ "role": "assistant", "parts": [{ "type": "tool-ask", "toolCallId": "call_x",
        "state": "output-available", "input": {}, "output": { "secret": HIDDEN } }] }]);
    // Only a new space takes it as its past from an agent that reads the log.
    for (history, is_new) in [("server", false), ("server", true), ("client", false)] {
        let mut config = agent();
        config["history"] = history.into();
        config["access"] = "public".into();
        world.backend().put("/v1/agents/teller", config).await;
        let mut body = json!({ "text": "hi", "agent": "teller", "history": past });
        if !is_new {
            let first = json!({ "text": "hi", "agent": "teller" });
            let first = ada.say("/v1/runs", first).await.rest().await;
            body["space"] = of(&first, "run-start", "spaceId").into();
        }
        if history == "server" && !is_new {
            let runs = format!("/v1/runs?space={}", body["space"].as_str().unwrap());
            let before = ada.get(&runs).await.expect(200);
            let refused = ada.post("/v1/runs", body).await.expect(409);
            assert_eq!(refused["code"], "HISTORY_NOT_TAKEN");
            assert_eq!(refused["errors"][0]["pointer"], "/history");
            assert_eq!(ada.get(&runs).await.expect(200), before, "nothing was changed");
            continue;
        }
        let live = ada.say("/v1/runs", body).await.rest().await;
        let (run, space) = (of(&live, "run-start", "runId"), of(&live, "run-start", "spaceId"));
        let mut read = everything(&ada, &run, &space).await;
        read.extend(live.iter().map(|event| event.data.to_string()));
        assert!(!read.contains(HIDDEN), "{history}");
        let kept = everything(&world.backend(), &run, &space).await.contains(HIDDEN);
        assert!(kept, "{history}");
    }
}
