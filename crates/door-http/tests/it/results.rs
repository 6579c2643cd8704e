//! The intake contract over HTTP.

use serde_json::{Value, json};
use toolgate_testkit_http::client::{Client, Sent, numbered, of};

use toolgate_testkit_http::world::CONTENT;

use crate::world::World;

/// A run that waits for one client call.
struct Waiting {
    run: String,
    space: String,
    call: String,
}

async fn waiting(client: &Client<'_>, words: &str) -> Waiting {
    let events: Vec<Sent> = client.run(words).await;
    Waiting {
        run: of(&events, "run-start", "runId"),
        space: of(&events, "run-start", "spaceId"),
        call: of(&events, "tool-input-available", "toolCallId"),
    }
}

#[tokio::test]
async fn the_first_result_holds_the_same_again_is_fine_and_another_is_told_the_winner() {
    let world = World::new().await;
    let ada = world.user("ada");
    let Waiting { run, space, call } = waiting(&ada, "call:ask").await;
    let path = format!("/v1/runs/{run}/tool-results");
    let result = json!({ "toolCallId": call, "result": { "a": 1, "b": 2 }, "runId": run, "source": "client", "clientId": "tab" });
    let receipt = ada.post(&path, result).await.expect(200);
    assert_eq!(
        (&receipt["toolCallId"], &receipt["runId"]),
        (&json!(call), &json!(run))
    );
    let same = json!({ "callId": call, "result": { "b": 2, "a": 1 } });
    assert_eq!(ada.post(&path, same.clone()).await.expect(200), receipt);
    assert_eq!(
        ada.post(&format!("/v1/spaces/{space}/tool-results"), same)
            .await
            .expect(200),
        receipt
    );
    for other in [
        json!({ "toolCallId": call, "result": {} }),
        json!({ "toolCallId": call, "error": "no" }),
    ] {
        let told = ada.post(&path, other).await.expect(409);
        assert_eq!((&told["code"], &told["winner"]), (&json!("CONFLICT"), &receipt));
    }
}

#[tokio::test]
async fn an_error_reaches_the_model_as_words() {
    let world = World::new().await;
    let ada = world.user("ada");
    for error in [
        json!("out of tea"),
        json!({ "message": "out of tea", "name": "TypeError" }),
    ] {
        let Waiting { run, call, .. } = waiting(&ada, "call:ask").await;
        let body = json!({ "toolCallId": call, "error": error });
        let rest = ada
            .say(&format!("/v1/runs/{run}/tool-results"), body)
            .await
            .rest()
            .await;
        assert!(of(&rest, "text-end", "text").contains("out of tea"));
    }
}

#[tokio::test]
async fn a_result_that_comes_too_late_is_told_why() {
    let world = World::new().await;
    let ada = world.user("ada");
    let cancelled = waiting(&ada, "call:ask").await;
    let told = ada
        .post(&format!("/v1/runs/{}/cancel", cancelled.run), json!({}))
        .await
        .expect(200);
    assert_eq!(told, json!({ "runId": cancelled.run, "status": "cancelled" }));
    let told = ada
        .post(&format!("/v1/runs/{}/cancel", cancelled.run), json!({}))
        .await
        .expect(200);
    assert_eq!(told["status"], "cancelled");
    let superseded = waiting(&ada, "call:ask").await;
    let words = json!({ "text": "never mind" });
    ada.say(&format!("/v1/spaces/{}/messages", superseded.space), words)
        .await
        .rest()
        .await;
    for (late, why) in [(cancelled, "CANCELLED"), (superseded, "SUPERSEDED")] {
        let body = json!({ "toolCallId": late.call, "result": {} });
        assert_eq!(
            ada.post(&format!("/v1/runs/{}/tool-results", late.run), body)
                .await
                .code(410),
            why
        );
    }
}

async fn post(client: &Client<'_>, path: String, body: Value) -> String {
    client.post(&path, body).await.code(404)
}

#[tokio::test]
async fn a_result_for_something_else_changes_nothing() {
    let world = World::new().await;
    let (ada, eve) = (world.user("ada"), world.user("eve"));
    let Waiting { run, space, call } = waiting(&ada, "call:ask").await;
    let other = waiting(&eve, "call:ask").await;
    let body = json!({ "toolCallId": call, "result": {} });
    // Somebody else, another run, another space, another project, no such call, no call at all.
    assert_eq!(
        post(&eve, format!("/v1/runs/{run}/tool-results"), body.clone()).await,
        "NOT_FOUND"
    );
    assert_eq!(
        post(&eve, format!("/v1/spaces/{space}/tool-results"), body.clone()).await,
        "NOT_FOUND"
    );
    assert_eq!(
        post(&eve, format!("/v1/runs/{}/tool-results", other.run), body.clone()).await,
        "NOT_FOUND"
    );
    assert_eq!(
        post(
            &eve,
            format!("/v1/spaces/{}/tool-results", other.space),
            body.clone()
        )
        .await,
        "NOT_FOUND"
    );
    assert_eq!(
        post(
            &world.stranger(),
            format!("/v1/runs/{run}/tool-results"),
            body.clone()
        )
        .await,
        "NOT_FOUND"
    );
    for named in [numbered(&call, 7), "tc_123".into(), String::new()] {
        let body = json!({ "toolCallId": named, "result": {} });
        assert_eq!(
            post(&ada, format!("/v1/runs/{run}/tool-results"), body).await,
            "NOT_FOUND"
        );
    }
    let body = json!({ "toolCallId": call, "result": {}, "runId": other.run });
    assert_eq!(
        post(&ada, format!("/v1/spaces/{space}/tool-results"), body).await,
        "NOT_FOUND"
    );
    for path in ["claim", "release"] {
        let body = json!({ "holder": "eve" });
        assert_eq!(
            post(&eve, format!("/v1/calls/{call}/{path}"), body).await,
            "NOT_FOUND"
        );
    }
    assert_eq!(
        post(
            &eve,
            format!("/v1/calls/{call}/progress"),
            json!({ "progress": 1 })
        )
        .await,
        "NOT_FOUND"
    );
    assert_eq!(
        post(&eve, format!("/v1/runs/{run}/cancel"), json!({})).await,
        "NOT_FOUND"
    );
    let run = ada.get(&format!("/v1/runs/{run}")).await.expect(200);
    assert_eq!(run["pending"]["calls"][0]["toolCallId"], *call);
    assert_eq!(run["pending"]["calls"][0]["claim"], Value::Null);
}

#[tokio::test]
async fn a_result_must_be_one_and_fit_its_schema() {
    let world = World::new().await;
    let ada = world.user("ada");
    let Waiting { run, call, .. } = waiting(&ada, "call:ask").await;
    let path = format!("/v1/runs/{run}/tool-results");
    for body in [
        json!({}),
        json!({ "toolCallId": call }),
        json!({ "result": {} }),
        json!({ "toolCallId": call, "callId": call, "result": {} }),
        json!({ "toolCallId": call, "result": {}, "error": "no" }),
        json!({ "toolCallId": 5, "result": {} }),
        json!({ "toolCallId": call, "results": [] }),
        json!({ "results": [] }),
        json!({ "results": vec![json!({ "toolCallId": call, "result": {} }); 65] }),
        json!({ "toolCallId": call, "result": "not an object, as the tool's output schema wants" }),
    ] {
        assert_eq!(ada.post(&path, body).await.code(422), "VALIDATION_FAILED");
    }
    ada.post(&path, json!({ "toolCallId": call, "result": {} }))
        .await
        .expect(200);
}

#[tokio::test]
async fn a_call_on_the_gateways_side_is_nobodys_to_answer() {
    let world = World::new().await;
    let ada = world.user("ada");
    let mut stream = ada.say("/v1/runs", json!({ "text": "call:slow" })).await;
    let events = stream.until("tool-executing").await;
    let (run, call) = (
        of(&events, "run-start", "runId"),
        of(&events, "tool-executing", "toolCallId"),
    );
    let body = json!({ "toolCallId": call, "result": {} });
    assert_eq!(
        ada.post(&format!("/v1/runs/{run}/tool-results"), body)
            .await
            .code(409),
        "NOT_A_CLIENT_CALL"
    );
    world.tools.gate.add_permits(1);
    stream.until("run-finish").await;
}

#[tokio::test]
async fn several_results_are_taken_each_for_itself() {
    let world = World::new().await;
    let ada = world.user("ada");
    let events = ada.run("call:ask call:ask").await;
    let run = of(&events, "run-start", "runId");
    let call = |number| numbered(&of(&events, "tool-input-available", "toolCallId"), number);
    let path = format!("/v1/runs/{run}/tool-results");
    let body = json!({ "results": [
        { "toolCallId": call(0), "result": {} },
        { "toolCallId": call(9), "result": {} },
        { "toolCallId": call(1), "result": 5 },
    ] });
    let told = ada.post(&path, body).await.expect(207);
    assert_eq!(told["results"][0]["receipt"]["toolCallId"], call(0));
    assert_eq!(told["results"][1]["error"]["status"], 404);
    assert_eq!(told["results"][2]["error"]["code"], "VALIDATION_FAILED");
    let body = json!({ "results": [
        { "toolCallId": call(0), "result": {} },
        { "toolCallId": call(1), "error": "no" },
    ] });
    let told = ada.post(&path, body).await.expect(200);
    assert_eq!(told["results"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_call_is_held_by_one_client_at_a_time() {
    let world = World::new().await;
    let ada = world.user("ada");
    let Waiting { run, call, .. } = waiting(&ada, "call:ask={\"q\":1}").await;
    let path = |what: &str| format!("/v1/calls/{call}/{what}");
    let claimed = ada
        .post(&path("claim"), json!({ "holder": "tab-1", "leaseSeconds": 60 }))
        .await
        .expect(200);
    assert_eq!(
        (&claimed["input"], &claimed["holder"]),
        (&json!({ "q": 1 }), &json!("tab-1"))
    );
    ada.post(&path("claim"), json!({ "holder": "tab-1" }))
        .await
        .expect(200);
    let told = ada
        .post(&path("claim"), json!({ "holder": "tab-2" }))
        .await
        .expect(409);
    assert_eq!(
        (&told["code"], &told["claim"]["holder"]),
        (&json!("HELD"), &json!("tab-1"))
    );
    let pending = ada.get(&format!("/v1/runs/{run}")).await.expect(200)["pending"]["calls"][0].clone();
    assert_eq!(pending["claim"]["holder"], "tab-1");
    ada.post(&path("progress"), json!({ "progress": { "percent": 50 } }))
        .await
        .expect(204);
    let much = json!({ "progress": "x".repeat(CONTENT.progress) });
    let told = ada.post(&path("progress"), much).await.expect(413);
    assert_eq!(
        (&told["code"], &told["errors"][0]["pointer"]),
        (&json!("CONTENT_TOO_LARGE"), &json!("/progress"))
    );
    ada.post(&path("release"), json!({ "holder": "tab-1" }))
        .await
        .expect(204);
    ada.post(&path("claim"), json!({ "holder": "tab-2" }))
        .await
        .expect(200);
    for bad in [
        json!({}),
        json!({ "holder": "" }),
        json!({ "holder": "x", "leaseSeconds": 0 }),
    ] {
        ada.post(&path("claim"), bad).await.expect(422);
    }
    assert_eq!(
        ada.post("/v1/calls/nonsense/claim", json!({ "holder": "x" }))
            .await
            .code(404),
        "NOT_FOUND"
    );
}

#[tokio::test]
async fn a_claim_belongs_to_whoever_made_it_and_not_to_its_name() {
    let world = World::new().await;
    let members = json!({ "members": ["ada", "bob"] });
    let space = world.backend().post("/v1/spaces", members).await.expect(201);
    let path = format!("/v1/spaces/{}/messages", space["id"].as_str().unwrap());
    let (ada, bob) = (world.user("ada"), world.user("bob"));
    let events = ada.say(&path, json!({ "text": "call:ask" })).await.rest().await;
    let call = of(&events, "tool-input-available", "toolCallId");
    let (claim, release) = (
        format!("/v1/calls/{call}/claim"),
        format!("/v1/calls/{call}/release"),
    );
    let tab = json!({ "holder": "tab" });
    ada.post(&claim, tab.clone()).await.expect(200);
    // The refusal names the holder: that must not be enough to take its place.
    let held = bob.post(&claim, json!({ "holder": "mine" })).await.expect(409);
    assert_eq!(held["claim"]["holder"], "tab");
    for other in [&bob, &world.backend()] {
        assert_eq!(other.post(&claim, tab.clone()).await.code(409), "HELD");
        assert_eq!(other.post(&release, tab.clone()).await.code(409), "HELD");
    }
    ada.post(&claim, tab.clone()).await.expect(200);
    ada.post(&release, tab.clone()).await.expect(204);
    bob.post(&claim, tab).await.expect(200);
}
