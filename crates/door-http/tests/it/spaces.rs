//! Spaces, and who is in them.

use serde_json::{Value, json};

use crate::world::World;

fn ids(told: &Value) -> Vec<&str> {
    told["spaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|space| space["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_space_is_made_with_its_members_and_shown_to_them() {
    let world = World::new().await;
    let backend = world.backend();
    let ada = backend
        .put(
            "/v1/entities/ada",
            json!({ "name": "Ada", "metadata": { "age": 36 } }),
        )
        .await
        .expect(200);
    let body = json!({
        "title": "Tea", "agent": "default", "metadata": { "room": 5 },
        "members": [ada["id"], "bob@example.com", "ada"],
    });
    let space = backend.post("/v1/spaces", body).await.expect(201);
    assert_eq!(space["members"].as_array().unwrap().len(), 2);
    assert_eq!(space["members"][0], ada["id"]);
    let path = format!("/v1/spaces/{}", space["id"].as_str().unwrap());
    assert_eq!(backend.get(&path).await.expect(200), space);
    assert_eq!(world.user("ada").get(&path).await.expect(200), space);
    assert_eq!(world.user("bob@example.com").get(&path).await.expect(200), space);
    world.user("eve").get(&path).await.expect(404);
    world.stranger().get(&path).await.expect(404);
}

#[tokio::test]
async fn a_user_makes_spaces_for_itself_only() {
    let world = World::new().await;
    let ada = world.user("ada");
    // No body at all is as good as an empty one.
    let space = ada
        .send(http::Method::POST, "/v1/spaces", axum::body::Body::empty())
        .await
        .expect(201);
    let me = ada.get("/v1/entities/ada").await.expect(200);
    assert_eq!(space["members"], json!([me["id"]]));
    ada.get("/v1/entities/bob").await.expect(404);
    assert_eq!(
        ada.post("/v1/spaces", json!({ "members": ["bob"] }))
            .await
            .code(403),
        "FORBIDDEN"
    );
    world.user("bob").get("/v1/entities/ada").await.expect(404);
}

#[tokio::test]
async fn members_come_and_go() {
    let world = World::new().await;
    let backend = world.backend();
    let space = backend.post("/v1/spaces", json!({})).await.expect(201);
    let path = format!("/v1/spaces/{}", space["id"].as_str().unwrap());
    let ada = world.user("ada");
    ada.get(&path).await.expect(404);
    backend
        .put(&format!("{path}/members/ada"), json!({}))
        .await
        .expect(204);
    backend
        .put(&format!("{path}/members/ada"), json!({}))
        .await
        .expect(204);
    let members = ada.get(&path).await.expect(200)["members"].clone();
    assert_eq!(members.as_array().unwrap().len(), 1);
    assert_eq!(
        ada.delete(&format!("{path}/members/ada")).await.code(403),
        "FORBIDDEN"
    );
    backend
        .delete(&format!("{path}/members/{}", members[0].as_str().unwrap()))
        .await
        .expect(204);
    ada.get(&path).await.expect(404);
    backend
        .delete(&format!("{path}/members/nobody"))
        .await
        .expect(404);
    backend
        .put(
            &format!("{path}/members/ent_00000000000000000000000000"),
            json!({}),
        )
        .await
        .expect(404);
    world
        .stranger()
        .put(&format!("{path}/members/ada"), json!({}))
        .await
        .expect(404);
}

#[tokio::test]
async fn spaces_are_listed_newest_first_page_by_page_and_each_to_its_own() {
    let world = World::new().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        let space = world.user("ada").post("/v1/spaces", json!({})).await.expect(201);
        made.insert(0, space["id"].as_str().unwrap().to_owned());
    }
    world.user("bob").post("/v1/spaces", json!({})).await.expect(201);
    let mut seen = Vec::new();
    let mut before = String::new();
    loop {
        let told = world
            .user("ada")
            .get(&format!("/v1/spaces?limit=2{before}"))
            .await
            .expect(200);
        seen.extend(ids(&told).iter().map(|id| (*id).to_owned()));
        match told["nextCursor"].as_str() {
            Some(cursor) => before = format!("&before={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, made);
    assert_eq!(ids(&world.backend().get("/v1/spaces").await.expect(200)).len(), 6);
    assert!(ids(&world.stranger().get("/v1/spaces").await.expect(200)).is_empty());
    for bad in [
        "limit=0",
        "limit=501",
        "limit=x",
        "before=x",
        "before=run_00000000000000000000000000",
    ] {
        world
            .backend()
            .get(&format!("/v1/spaces?{bad}"))
            .await
            .expect(400);
    }
}

#[tokio::test]
async fn a_space_cannot_name_an_agent_that_is_not_there() {
    let world = World::new().await;
    let told = world
        .backend()
        .post("/v1/spaces", json!({ "agent": "nobody" }))
        .await
        .expect(404);
    assert_eq!(told["errors"][0]["pointer"], "/agent");
}
