//! Agents.

use http::Method;
use serde_json::json;
use toolgate_engine::records::{Change, NewRecord, Owner, RecordSet, Records};
use toolgate_kernel::agent::entity_of;
use toolgate_kernel::id::{EntityId, SpaceId};
use toolgate_kernel::time::Time;
use uuid::Uuid;

use crate::world::{World, agent, project};

#[tokio::test]
async fn an_agent_is_made_changed_and_removed_and_keeps_its_revisions() {
    let world = World::new().await;
    let backend = world.backend();
    let config = |words: &str| json!({ "instructions": words, "model": { "provider": "demo" } });
    let told = backend.put("/v1/agents/guide", config("one")).await.expect(201);
    assert_eq!((&told["name"], &told["revision"]), (&json!("guide"), &json!(1)));
    assert_eq!(
        backend.put("/v1/agents/guide", config("one")).await.expect(200)["revision"],
        1
    );
    assert_eq!(
        backend.put("/v1/agents/guide", config("two")).await.expect(200)["revision"],
        2
    );
    assert_eq!(
        backend.get("/v1/agents/guide").await.expect(200)["config"]["instructions"],
        "two"
    );
    let first = backend.get("/v1/agents/guide/revisions/1").await.expect(200);
    assert_eq!(first["config"]["instructions"], "one");
    backend.get("/v1/agents/guide/revisions/3").await.expect(404);
    backend.get("/v1/agents/guide/revisions/x").await.expect(404);
    let names = |told: serde_json::Value| {
        let agents = told["agents"].as_array().unwrap().clone();
        agents
            .iter()
            .map(|agent| agent["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(backend.get("/v1/agents").await.expect(200)),
        ["default", "guide"]
    );
    backend.delete("/v1/agents/guide").await.expect(204);
    backend.get("/v1/agents/guide").await.expect(404);
    backend.delete("/v1/agents/guide").await.expect(404);
    backend.get("/v1/agents/guide/revisions/2").await.expect(200);
    assert_eq!(
        world
            .stranger()
            .get("/v1/agents/guide/revisions/2")
            .await
            .code(404),
        "NOT_FOUND"
    );
}

#[tokio::test]
async fn everything_that_is_wrong_with_a_configuration_is_told_at_once() {
    let world = World::new().await;
    let config = json!({ "instructions": 5, "model": { "provider": "nobody" }, "lop": {} });
    let told = world.backend().put("/v1/agents/guide", config).await.expect(422);
    assert!(told["errors"].as_array().unwrap().len() >= 3, "{told}");
    assert!(
        told["errors"]
            .as_array()
            .unwrap()
            .iter()
            .any(|error| error["pointer"] == "/model/provider"),
        "{told}"
    );
    world.backend().get("/v1/agents/guide").await.expect(404);
    let told = world
        .backend()
        .put("/v1/agents/9lives", agent())
        .await
        .expect(422);
    assert!(told["detail"].as_str().unwrap().contains("is not a name"));
    world
        .backend()
        .put("/v1/agents/guide", json!([]))
        .await
        .expect(422);
    let empty = axum::body::Body::empty();
    let empty = world
        .backend()
        .send(Method::PUT, "/v1/agents/default", empty)
        .await;
    assert_eq!(empty.expect(422)["detail"], "a body is required");
    let kept = world.backend().get("/v1/agents/default").await.expect(200);
    assert_eq!(kept["revision"], 1);
}

#[tokio::test]
async fn a_configuration_is_shown_without_its_secrets() {
    let world = World::new().await;
    for path in [
        "/v1/agents",
        "/v1/agents/default",
        "/v1/agents/default/revisions/1",
    ] {
        let told = world.backend().get(path).await.expect(200);
        assert!(!told.to_string().contains("hush-hush"), "{told}");
    }
    let put = world.backend().put("/v1/agents/copy", agent()).await.expect(201);
    assert!(!put.to_string().contains("hush-hush"), "{put}");
}

#[tokio::test]
async fn tools_are_listed_in_full_for_backends_and_as_far_as_they_may_be_called_for_users() {
    let world = World::new().await;
    let told = world.backend().get("/v1/tools").await.expect(200);
    let tools = told["tools"].as_array().unwrap();
    assert_eq!(tools.len(), agent()["tools"].as_array().unwrap().len());
    assert!(
        tools
            .iter()
            .any(|tool| tool["name"] == "mirror" && tool["placement"] == "server")
    );
    assert_eq!(tools[0]["parameters"]["type"], "object");
    world.backend().get("/v1/tools?agent=no%20name").await.expect(400);

    let told = world.user("ada").get("/v1/tools").await.expect(200);
    let seen: Vec<_> = told["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(seen, ["ask", "guarded_ask", "open_mirror"]);
    assert_eq!(told["tools"][0]["parameters"]["type"], "object");
    assert!(told["tools"][0].get("permissions").is_none());
}

#[tokio::test]
async fn what_may_not_be_done_here_says_what_may() {
    let world = World::new().await;
    let told = world
        .backend()
        .send(Method::PATCH, "/v1/agents/default", axum::body::Body::empty())
        .await;
    for method in ["GET", "PUT", "DELETE"] {
        assert!(told.header("allow").contains(method), "{}", told.header("allow"));
    }
    assert_eq!(told.code(405), "METHOD_NOT_ALLOWED");
    assert_eq!(world.backend().get("/v2/agents").await.code(404), "NOT_FOUND");
}

#[tokio::test]
async fn a_purge_says_what_it_deleted_and_leaves_what_others_reach() {
    let world = World::new().await;
    let backend = world.backend();
    backend.put("/v1/agents/cook", agent()).await.expect(201);
    let (project, cook) = (project(1), "cook".parse().unwrap());
    let own = Owner::Entity(entity_of(project, &cook));
    let person = Owner::Entity(EntityId::new(Uuid::from_u128(5)));
    let place = Owner::Space(SpaceId::new(Uuid::from_u128(6)));
    for (owner, kind, count) in [
        (own, "goal", 1),
        (own, "memory", 2),
        (own, "plan-hour", 4),
        (person, "memory", 1),
        (place, "memory", 1),
    ] {
        let set = RecordSet { project, owner, kind };
        let put = |number: usize| {
            Change::Put(NewRecord {
                id: number.to_string(),
                body: json!({}).into(),
                text: None,
                data: None,
                due: None,
            })
        };
        let puts = (0..count).map(put).collect();
        let store = &world.store;
        store.change_records(set, vec![], puts, Time(1)).await.unwrap();
    }
    let told = backend.delete("/v1/agents/cook?purge=true").await.expect(200);
    let deleted = json!({ "goals": 1, "memories": 2, "plans": 0, "knowledgeParts": 0 });
    assert_eq!(told, json!({ "name": "cook", "deleted": deleted }));
    for owner in [person, place] {
        let kind = "memory";
        let set = RecordSet { project, owner, kind };
        assert!(world.store.record(set, "0").await.unwrap().is_some());
    }
    assert_eq!(
        backend.delete("/v1/agents/cook?purge=true").await.code(404),
        "NOT_FOUND"
    );
    backend.put("/v1/agents/cook", agent()).await.expect(201);
    backend.delete("/v1/agents/cook").await.expect(204);
}
