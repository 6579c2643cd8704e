//! Decisions.

use serde_json::{Value, json};
use toolgate_testkit_http::client::{Client, numbered, of};

use crate::world::World;

/// A run that waits for a decision: its id and the question's.
async fn asked(client: &Client<'_>, words: &str) -> (String, String) {
    let events = client.run(words).await;
    assert_eq!(events.last().unwrap().data["status"], "waiting_approval");
    (
        of(&events, "run-start", "runId"),
        of(&events, "tool-approval-request", "approvalId"),
    )
}

async fn answer(client: &Client<'_>, run: &str) -> String {
    let events = client
        .follow(&format!("/v1/runs/{run}/events"))
        .await
        .rest()
        .await;
    of(&events, "text-end", "text")
}

#[tokio::test]
async fn a_yes_lets_the_call_run_and_holds() {
    let world = World::new().await;
    let ada = world.user("ada");
    let (run, approval) = asked(&ada, "call:guarded={\"to\":\"a\"}").await;
    let path = format!("/v1/approvals/{approval}");
    let waiting = world.backend().get(&format!("/v1/runs/{run}")).await.expect(200);
    assert_eq!(waiting["pending"]["approvals"][0]["approvalId"], *approval);
    assert_eq!(waiting["pending"]["approvals"][0]["input"], json!({ "to": "a" }));
    assert_eq!(waiting["status"], "waiting_approval");

    assert_eq!(
        world
            .user("eve")
            .post(&path, json!({ "approved": true }))
            .await
            .code(404),
        "NOT_FOUND"
    );
    let decided = ada.post(&path, json!({ "approved": true })).await.expect(200);
    assert_eq!(
        (&decided["approved"], &decided["runId"]),
        (&json!(true), &json!(run))
    );
    assert_eq!(
        ada.post(&path, json!({ "decision": "approve" }))
            .await
            .expect(200),
        decided
    );
    let told = ada.post(&path, json!({ "approved": false })).await.expect(409);
    assert_eq!(told["winner"], decided);
    assert_eq!(answer(&world.backend(), &run).await, r#"got {"to":"a"}"#);
}

#[tokio::test]
async fn a_no_reaches_the_model_with_its_reason() {
    let world = World::new().await;
    let ada = world.user("ada");
    let (run, approval) = asked(&ada, "call:guarded").await;
    let body = json!({ "decision": "deny", "reason": "not today" });
    assert_eq!(
        ada.post(&format!("/v1/approvals/{approval}"), body)
            .await
            .expect(200)["approved"],
        false
    );
    assert!(answer(&world.backend(), &run).await.contains("not today"));
}

#[tokio::test]
async fn an_input_is_changed_by_those_who_see_it_and_is_checked_again() {
    let world = World::new().await;
    let (ada, backend) = (world.user("ada"), world.backend());
    let (run, approval) = asked(&ada, "call:guarded={\"to\":\"a\"}").await;
    let path = format!("/v1/approvals/{approval}");
    let changed = |input: Value| json!({ "approved": true, "input": input });
    assert_eq!(
        ada.post(&path, changed(json!({ "to": "b" }))).await.code(403),
        "FORBIDDEN"
    );
    let told = backend.post(&path, changed(json!({ "to": 5 }))).await.expect(422);
    assert!(
        told["errors"][0]["pointer"].as_str().unwrap().ends_with("/to"),
        "{told}"
    );
    backend
        .post(&path, changed(json!({ "to": "b" })))
        .await
        .expect(200);
    assert_eq!(answer(&backend, &run).await, r#"got {"to":"b"}"#);

    // A client tool's input is shown to the members, so they may change it.
    let (_, approval) = asked(&ada, "call:guarded_ask={\"to\":\"a\"}").await;
    ada.post(
        &format!("/v1/approvals/{approval}"),
        changed(json!({ "to": "b" })),
    )
    .await
    .expect(200);
}

#[tokio::test]
async fn a_decision_must_be_one() {
    let world = World::new().await;
    let (_, approval) = asked(&world.user("ada"), "call:guarded").await;
    let path = format!("/v1/approvals/{approval}");
    for body in [
        json!({}),
        json!({ "approved": true, "decision": "deny" }),
        json!({ "decision": "maybe" }),
    ] {
        world.user("ada").post(&path, body).await.expect(422);
    }
    world
        .user("ada")
        .post("/v1/approvals/nonsense", json!({ "approved": true }))
        .await
        .expect(404);
    let unknown = numbered(&approval, 5);
    world
        .user("ada")
        .post(&format!("/v1/approvals/{unknown}"), json!({ "approved": true }))
        .await
        .expect(404);
}
