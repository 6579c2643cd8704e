//! What has to be delivered outside, over HTTP.

use serde_json::json;
use toolgate_engine::outbox::Channel;

use crate::world::{World, project};

/// A world with two deliveries: `b` was dead-lettered, the others wait.
async fn world() -> World {
    let world = World::new().await;
    for (id, channel) in [
        ("a", Channel::Webhook),
        ("b", Channel::Mail),
        ("c", Channel::Webhook),
    ] {
        let queued = world
            .outbox
            .queue(project(1), id.into(), channel, json!({ "title": id }));
        queued.await.unwrap();
    }
    let mut due = world.outbox.due(10).await.unwrap();
    let dead = due.iter_mut().find(|delivery| delivery.id == "b").unwrap();
    assert!(world.outbox.hold(dead).await.unwrap());
    assert!(
        world
            .outbox
            .put_back(dead, "nobody there".into(), None)
            .await
            .unwrap()
    );
    world
}

#[tokio::test]
async fn a_backend_sees_what_waits_and_what_was_laid_aside() {
    let world = world().await;
    let ids = async |query: &str| {
        let told = world
            .backend()
            .get(&format!("/v1/deliveries{query}"))
            .await
            .expect(200);
        let deliveries = told["deliveries"].as_array().unwrap().clone();
        let ids: Vec<String> = deliveries
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect();
        (ids.join(" "), told["nextCursor"].clone())
    };
    assert_eq!(ids("").await, ("a b c".into(), json!(null)));
    assert_eq!(ids("?state=pending").await, ("a c".into(), json!(null)));
    assert_eq!(ids("?state=pending&limit=1").await, ("a".into(), json!("a")));
    assert_eq!(
        ids("?state=pending&limit=1&after=a").await,
        ("c".into(), json!("c"))
    );
    let dead = world.backend().get("/v1/deliveries?state=dead").await.expect(200);
    let dead = &dead["deliveries"][0];
    assert_eq!(
        (
            &dead["id"],
            &dead["channel"],
            &dead["state"],
            &dead["attempts"],
            &dead["error"],
            dead.get("dueAt")
        ),
        (
            &json!("b"),
            &json!("mail"),
            &json!("dead"),
            &json!(1),
            &json!("nobody there"),
            None
        )
    );
    assert_eq!(dead["payload"], json!({ "title": "b" }));
    assert_eq!(
        world.backend().get("/v1/deliveries?state=lost").await.code(400),
        "MALFORMED"
    );
}

#[tokio::test]
async fn a_delivery_that_was_laid_aside_is_tried_again_when_a_backend_asks() {
    let world = world().await;
    let told = world
        .backend()
        .post("/v1/deliveries/b/retry", json!({}))
        .await
        .expect(200);
    assert_eq!(
        (&told["state"], &told["attempts"], told["dueAt"].is_string()),
        (&json!("pending"), &json!(0), true)
    );
    let due = world.outbox.due(10).await.unwrap();
    assert!(due.iter().any(|delivery| delivery.id == "b"));
}

#[tokio::test]
async fn deliveries_are_for_the_backend_of_their_project() {
    let world = world().await;
    let (user, stranger) = (world.user("ada"), world.stranger());
    assert_eq!(user.get("/v1/deliveries").await.code(403), "FORBIDDEN");
    assert_eq!(
        user.post("/v1/deliveries/b/retry", json!({})).await.code(403),
        "FORBIDDEN"
    );
    assert_eq!(
        stranger.get("/v1/deliveries").await.expect(200)["deliveries"],
        json!([])
    );
    stranger
        .post("/v1/deliveries/b/retry", json!({}))
        .await
        .expect(404);
    world
        .backend()
        .post("/v1/deliveries/d/retry", json!({}))
        .await
        .expect(404);
}
