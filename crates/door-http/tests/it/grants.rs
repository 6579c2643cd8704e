//! Grants of people: a tool may need the agent's and those of whoever asks.

use serde_json::{Value, json};
use toolgate_testkit_http::client::Client;

use crate::world::{World, agent};

/// A world whose default agent was granted `refunds` and has tools that need it, of the agent and of the person.
async fn world() -> World {
    let world = World::new().await;
    let tool = |name: &str, agent: &str, person: &str| {
        json!({ "name": name, "description": "Pays.", "executionType": "basic",
            "execution": { "mode": "pass-through" }, "permissions": [agent], "personPermissions": [person] })
    };
    let mut config = agent();
    config["grants"] = json!(["refunds"]);
    config["tools"] = json!([
        tool("pay", "refunds", "refunds"),
        tool("burn", "matches", "refunds")
    ]);
    world
        .backend()
        .put("/v1/agents/default", config)
        .await
        .expect(200);
    world
}

/// How a call ends that `who` leads to in a space: `None` with an output, or the error.
async fn called(world: &World, who: &Client<'_>, space: &str, tool: &str) -> Option<Value> {
    let body = json!({ "content": format!("call:{tool}") });
    let stream = who.say(&format!("/v1/spaces/{space}/messages"), body).await;
    let run = stream.rest().await[0].data["runId"].as_str().unwrap().to_owned();
    let all = world
        .backend()
        .get(&format!("/v1/runs/{run}/events"))
        .await
        .expect(200);
    let events = all["events"].as_array().unwrap();
    let failed = events.iter().find(|event| event["type"] == "tool-output-error");
    assert!(
        failed.is_some()
            || events
                .iter()
                .any(|event| event["type"] == "tool-output-available"),
        "{all}"
    );
    failed.cloned()
}

#[tokio::test]
async fn a_tool_needs_the_grants_of_the_agent_and_of_the_person_who_asks() {
    let world = world().await;
    let (backend, ada, bob) = (world.backend(), world.user("ada"), world.user("bob"));
    let mut spaces = Vec::new();
    for _ in 0..2 {
        let body = json!({ "members": ["ada", "bob"] });
        let made = backend.post("/v1/spaces", body).await.expect(201);
        spaces.push(made["id"].as_str().unwrap().to_owned());
    }
    let (here, there) = (&spaces[0], &spaces[1]);

    let refused = called(&world, &ada, here, "pay").await.expect("an error");
    assert_eq!(refused["code"], "PERMISSION_DENIED", "{refused}");
    assert!(
        refused["errorText"]
            .as_str()
            .unwrap()
            .contains("the person who asks"),
        "{refused}"
    );
    // Nobody asked: there are nobody's grants.
    let refused = called(&world, &backend, here, "pay").await.expect("an error");
    assert_eq!(refused["code"], "PERMISSION_DENIED", "{refused}");

    // As an entity, in every space.
    let granted = backend
        .put("/v1/entities/ada", json!({ "grants": ["refunds"] }))
        .await
        .expect(200);
    assert_eq!(granted["grants"], json!(["refunds"]));
    assert_eq!(called(&world, &ada, here, "pay").await, None);
    assert_eq!(called(&world, &ada, there, "pay").await, None);
    // The agent's grant is needed all the same.
    let refused = called(&world, &ada, here, "burn").await.expect("an error");
    assert!(
        refused["errorText"].as_str().unwrap().contains("this agent"),
        "{refused}"
    );
    // Another person has no part in it.
    assert!(called(&world, &bob, here, "pay").await.is_some());

    // As a member, in this space alone.
    let path = format!("/v1/spaces/{here}/members/bob");
    backend
        .put(&path, json!({ "grants": ["refunds"] }))
        .await
        .expect(204);
    assert_eq!(called(&world, &bob, here, "pay").await, None);
    assert!(called(&world, &bob, there, "pay").await.is_some());

    // Adding the member again says nothing of its grants; an empty list takes them away.
    backend.put(&path, json!({})).await.expect(204);
    assert_eq!(called(&world, &bob, here, "pay").await, None);
    backend.put(&path, json!({ "grants": [] })).await.expect(204);
    assert!(called(&world, &bob, here, "pay").await.is_some());
    ada.put(&path, json!({ "grants": ["refunds"] })).await.expect(403);
    ada.put("/v1/entities/ada", json!({ "grants": ["refunds"] }))
        .await
        .expect(403);
}
