//! Remembered decisions over HTTP: given, listed, revoked, and told who decided.

use serde_json::{Value, json};
use toolgate_testkit_http::client::{Client, Sent};

use crate::approvals::{set_approval, space_of};
use crate::world::World;

async fn call(who: &Client<'_>, space: &str) -> Vec<Sent> {
    let body = json!({ "content": "call:guarded={\"to\":\"a\"}" });
    let stream = who.say(&format!("/v1/spaces/{space}/messages"), body).await;
    stream.rest().await
}

fn asked(events: &[Sent]) -> Option<String> {
    let asked = events
        .iter()
        .find(|event| event.data["type"] == "tool-approval-request")?;
    Some(asked.data["approvalId"].as_str().unwrap().to_owned())
}

async fn listed(who: &Client<'_>, space: &str) -> Vec<Value> {
    let told = who.get(&format!("/v1/spaces/{space}/consents")).await.expect(200);
    told["consents"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_yes_is_remembered_listed_and_revoked_by_whom_it_concerns() {
    let world = World::new().await;
    set_approval(&world, json!("until-revoked")).await;
    let (ada, bob, backend) = (world.user("ada"), world.user("bob"), world.backend());
    let space = space_of(&world, json!(["ada", "bob"])).await;
    let approval = asked(&call(&ada, &space).await).unwrap();
    let open = ada.get("/v1/approvals?status=open").await.expect(200);
    assert_eq!(open["approvals"][0]["remember"], "until-revoked");
    let path = format!("/v1/approvals/{approval}");
    let decided = ada
        .post(&path, json!({ "approved": true, "remember": true }))
        .await
        .expect(200);
    assert_eq!(decided["remembered"], true);
    assert_eq!(asked(&call(&ada, &space).await), None);
    assert!(
        asked(&call(&bob, &space).await).is_some(),
        "Bob was not asked yet"
    );

    let known = listed(&backend, &space).await;
    assert_eq!(known.len(), 1, "{known:?}");
    assert_eq!(known[0]["toolName"], "guarded");
    assert_eq!(known[0]["approvalId"], *approval);
    assert_eq!(known[0]["toolHash"].as_str().unwrap().len(), 64);
    assert_eq!(listed(&ada, &space).await, known);
    assert_eq!(listed(&bob, &space).await, [] as [Value; 0]);
    let eve = world.user("eve");
    assert_eq!(
        eve.get(&format!("/v1/spaces/{space}/consents")).await.code(404),
        "NOT_FOUND"
    );

    let one = format!("/v1/spaces/{space}/consents/{}", known[0]["id"].as_str().unwrap());
    for other in [&bob, &eve] {
        assert_eq!(other.delete(&one).await.code(404), "NOT_FOUND");
    }
    ada.delete(&one).await.expect(204);
    assert_eq!(ada.delete(&one).await.code(404), "NOT_FOUND");
    assert!(asked(&call(&ada, &space).await).is_some());
}

#[tokio::test]
async fn what_cannot_be_remembered_is_refused_and_changes_nothing() {
    let world = World::new().await;
    let (ada, backend) = (world.user("ada"), world.backend());
    let space = space_of(&world, json!(["ada"])).await;
    let approval = asked(&call(&ada, &space).await).unwrap();
    let path = format!("/v1/approvals/{approval}");
    let told = ada
        .post(&path, json!({ "approved": true, "remember": true }))
        .await
        .expect(422);
    assert_eq!(told["errors"][0]["pointer"], "/remember", "{told}");
    let decided = ada.post(&path, json!({ "approved": true })).await.expect(200);
    assert_eq!(decided["remembered"], false);

    set_approval(&world, json!({ "remember": "first-in-space", "editable": true })).await;
    let approval = asked(&call(&ada, &space).await).unwrap();
    let path = format!("/v1/approvals/{approval}");
    let edited = json!({ "approved": true, "remember": true, "input": { "to": "b" } });
    assert_eq!(
        ada.post(&path, edited).await.expect(422)["errors"][0]["pointer"],
        "/remember"
    );
    let edited = json!({ "approved": true, "input": { "to": "b" } });
    assert_eq!(ada.post(&path, edited).await.expect(200)["remembered"], false);
    assert_eq!(listed(&backend, &space).await, [] as [Value; 0]);
    assert!(asked(&call(&ada, &space).await).is_some());
}

#[tokio::test]
async fn a_run_says_who_decided_what_runs_and_by_which_consent() {
    let world = World::new().await;
    set_approval(&world, json!("first-in-space")).await;
    let (ada, bob, backend) = (world.user("ada"), world.user("bob"), world.backend());
    let space = space_of(&world, json!(["ada", "bob"])).await;
    let events = call(&ada, &space).await;
    let approval = asked(&events).unwrap();
    bob.post(&format!("/v1/approvals/{approval}"), json!({ "approved": true }))
        .await
        .expect(200);
    let run = events[0].data["runId"].as_str().unwrap().to_owned();
    backend
        .follow(&format!("/v1/runs/{run}/events"))
        .await
        .rest()
        .await;
    let told = backend.get(&format!("/v1/runs/{run}")).await.expect(200);
    let decision = &told["decisions"][0];
    let known = &listed(&backend, &space).await[0];
    assert_eq!(decision["by"], known["by"]);
    assert_eq!(
        (&decision["approved"], &decision["remembered"]),
        (&json!(true), &json!(true))
    );
    // SHA-256 of `{"to":"a"}`.
    let hash = "6aaffc65ba7919416bca2bd0c2a3ca626e9614409fe53e9f53882d9b2f56a2e4";
    assert_eq!(decision["inputHash"], hash);
    // A member learns of a hidden tool that somebody agreed, not who and to what.
    let seen = ada.get(&format!("/v1/runs/{run}")).await.expect(200);
    let decision = &seen["decisions"][0];
    assert_eq!(
        (decision.get("by"), decision.get("inputHash")),
        (None, None),
        "{decision}"
    );
    assert_eq!(decision["approved"], true);

    let events = call(&ada, &space).await;
    assert_eq!(asked(&events), None);
    let run = events[0].data["runId"].as_str().unwrap();
    let told = backend.get(&format!("/v1/runs/{run}")).await.expect(200);
    let decision = &told["decisions"][0];
    assert_eq!(
        (&decision["consentId"], &decision["by"]),
        (&known["id"], &known["by"])
    );
    let seen = ada.get(&format!("/v1/runs/{run}")).await.expect(200);
    assert_eq!(seen.get("decisions"), None, "{seen}");
}

#[tokio::test]
async fn a_removed_member_consents_to_nothing() {
    let world = World::new().await;
    set_approval(&world, json!("first-in-space")).await;
    let (ada, bob, backend) = (world.user("ada"), world.user("bob"), world.backend());
    let space = space_of(&world, json!(["ada", "bob"])).await;
    let approval = asked(&call(&ada, &space).await).unwrap();
    bob.post(&format!("/v1/approvals/{approval}"), json!({ "approved": true }))
        .await
        .expect(200);
    assert_eq!(asked(&call(&ada, &space).await), None);
    backend
        .delete(&format!("/v1/spaces/{space}/members/bob"))
        .await
        .expect(204);
    assert_eq!(listed(&backend, &space).await, [] as [Value; 0]);
    assert!(asked(&call(&ada, &space).await).is_some());
}

/// Has a run read from its log again, by a decision that was made before.
async fn read_again(who: &Client<'_>, approval: &str) {
    who.post(&format!("/v1/approvals/{approval}"), json!({ "approved": true }))
        .await
        .expect(200);
}

#[tokio::test]
async fn the_yes_of_a_deleted_person_is_nobodys_and_never_counts_again() {
    let world = World::new().await;
    set_approval(&world, json!("first-in-space")).await;
    let (ada, bob, backend) = (world.user("ada"), world.user("bob"), world.backend());
    let space = space_of(&world, json!(["ada", "bob"])).await;
    let approval = asked(&call(&ada, &space).await).unwrap();
    read_again(&bob, &approval).await;
    assert_eq!(asked(&call(&ada, &space).await), None, "it runs by Bob's yes");
    let by = listed(&backend, &space).await[0]["by"]
        .as_str()
        .unwrap()
        .to_owned();
    backend.delete("/v1/entities/bob").await.expect(200);

    read_again(&ada, &approval).await;
    assert_eq!(listed(&backend, &space).await, [] as [Value; 0]);
    assert!(asked(&call(&ada, &space).await).is_some(), "nobody has said yes");
    let events = backend
        .get(&format!("/v1/spaces/{space}/events?limit=500"))
        .await
        .expect(200);
    assert!(!events.to_string().contains(&by), "{events}");
}

#[tokio::test]
async fn a_yes_for_a_deleted_person_is_for_nobody_else() {
    let world = World::new().await;
    set_approval(&world, json!("until-revoked")).await;
    let (ada, backend) = (world.user("ada"), world.backend());
    let space = space_of(&world, json!(["ada", "bob"])).await;
    let approval = asked(&call(&ada, &space).await).unwrap();
    read_again(&backend, &approval).await;
    assert_eq!(asked(&call(&ada, &space).await), None);
    assert_eq!(listed(&backend, &space).await.len(), 1);
    backend.delete("/v1/entities/ada").await.expect(200);

    read_again(&backend, &approval).await;
    assert_eq!(listed(&backend, &space).await, [] as [Value; 0]);
    assert!(
        asked(&call(&backend, &space).await).is_some(),
        "a backend that names nobody has not been asked"
    );
}
