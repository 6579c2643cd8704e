use serde_json::json;

use crate::talk::{Session, world};

#[tokio::test]
async fn a_session_is_its_owners_alone() {
    let world = world().await;
    let session = Session::begin(&world.user("ann"), json!({})).await;
    let id = session
        .client()
        .headers
        .iter()
        .find(|(name, _)| name == "mcp-session-id");
    let id = id.unwrap().1.clone();
    for other in [world.user("bob"), world.backend(), world.stranger()] {
        let other = other
            .with("mcp-session-id", &id)
            .with("mcp-protocol-version", "2025-11-25");
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}});
        let told = crate::talk::send(&other, &message).await;
        assert_eq!(told.status(), 404);
    }
    assert!(session.ask("tools/list", json!({})).await.result()["tools"].is_array());
}

#[tokio::test]
async fn the_oldest_session_gives_way_when_one_user_has_too_many() {
    let world = world().await;
    let user = world.user("ann");
    let first = Session::begin(&user, json!({})).await;
    let theirs = Session::begin(&world.user("bob"), json!({})).await;
    let second = Session::begin(&user, json!({})).await;
    for _ in 0..15 {
        Session::begin(&user, json!({})).await;
    }
    assert_eq!(first.ask("tools/list", json!({})).await.status, 404);
    assert_eq!(second.ask("tools/list", json!({})).await.status, 200);
    assert_eq!(theirs.ask("tools/list", json!({})).await.status, 200);
}

#[tokio::test]
async fn a_session_that_was_deleted_is_gone() {
    let world = world().await;
    let session = Session::begin(&world.backend(), json!({})).await;
    let client = session.client().with("host", "localhost");
    let told = client
        .raw(http::Method::DELETE, "/mcp", axum::body::Body::empty())
        .await;
    assert!(told.status().is_success(), "{}", told.status());
    assert_eq!(session.ask("tools/list", json!({})).await.status, 404);
}

#[tokio::test]
async fn a_level_of_logs_is_accepted_in_a_session_and_unknown_without_one() {
    let world = world().await;
    let session = Session::begin(&world.backend(), json!({})).await;
    let set = session.ask("logging/setLevel", json!({"level": "info"})).await;
    assert_eq!(set.result(), &json!({}));
    let params = json!({"name": "mirror", "arguments": {"to": "you"}});
    let called = session.ask("tools/call", params).await;
    assert!(called.notices("notifications/message").is_empty());
    let modern = crate::talk::ask(
        &world.backend(),
        "logging/setLevel",
        json!({"level": "info"}),
        crate::talk::NOTHING,
    )
    .await;
    assert_eq!(modern.error()["code"], -32601);
}
