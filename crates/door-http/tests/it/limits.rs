//! Limits in bytes and numbers, each far below that of a whole body.

use axum::body::Body;
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use toolgate_testkit_http::world::{CONTENT, QUOTAS, STREAMS_MAX};

use crate::world::World;

/// What a request that is too large was told: its code, and where.
fn place(told: &Value) -> (&str, &str) {
    let pointer = told["errors"][0]["pointer"].as_str().unwrap();
    (told["code"].as_str().unwrap(), pointer)
}

#[tokio::test]
async fn messages_metadata_and_progress_have_limits_of_their_own() {
    let world = World::new().await;
    let ada = world.user("ada");
    let long = "x".repeat(CONTENT.message + 1);
    let metadata = json!({ "note": "x".repeat(CONTENT.metadata) });
    let image = json!([{ "type": "image", "url": format!("data:image/png;base64,{long}") }]);
    for (path, body, pointer) in [
        ("/v1/runs", json!({ "text": long }), "/text"),
        ("/v1/runs", json!({ "content": long }), "/content"),
        ("/v1/runs", json!({ "parts": image }), "/parts"),
        ("/v1/runs", json!({ "message": long }), "/message"),
        (
            "/v1/runs",
            json!({ "text": "a", "metadata": metadata }),
            "/metadata",
        ),
        ("/v1/spaces", json!({ "metadata": metadata }), "/metadata"),
    ] {
        let told = ada.post(path, body).await.expect(413);
        assert_eq!(place(&told), ("CONTENT_TOO_LARGE", pointer), "{told}");
        assert!(told["detail"].as_str().unwrap().contains("content."), "{told}");
    }
    let told = world
        .backend()
        .put("/v1/entities/ada", json!({ "metadata": metadata }))
        .await
        .expect(413);
    assert_eq!(place(&told), ("CONTENT_TOO_LARGE", "/metadata"));
    let fits = json!({ "text": "x".repeat(CONTENT.message) });
    ada.post("/v1/runs", fits).await.expect(201);
}

#[tokio::test]
async fn a_user_has_so_many_streams_and_gets_room_when_one_ends() {
    let world = World::new().await;
    let (ada, bob) = (world.user("ada"), world.user("bob"));
    let space = ada.post("/v1/spaces", json!({})).await.expect(201);
    let path = format!("/v1/spaces/{}/events", space["id"].as_str().unwrap());
    let mut streams = Vec::new();
    for _ in 0..STREAMS_MAX {
        streams.push(ada.follow(&path).await);
    }
    let reader = world.user("ada").with("accept", "text/event-stream");
    let told = reader.get(&path).await.expect(429);
    assert_eq!(told["code"], "TOO_MANY_STREAMS");
    assert!(
        told["detail"].as_str().unwrap().contains("quotas.streams"),
        "{told}"
    );
    // A request that would stream is refused before it changes anything; one that does not is taken.
    reader.post("/v1/runs", json!({ "text": "a" })).await.expect(429);
    let runs = world.backend().get("/v1/runs").await.expect(200);
    assert_eq!(runs["runs"], json!([]));
    ada.post("/v1/runs", json!({ "text": "a" })).await.expect(201);
    let own = bob.post("/v1/spaces", json!({})).await.expect(201);
    let own = format!("/v1/spaces/{}/events", own["id"].as_str().unwrap());
    drop(bob.follow(&own).await);
    streams.pop();
    drop(ada.follow(&path).await);
}

#[tokio::test]
async fn a_user_has_so_many_spaces_and_a_backend_as_many_as_it_likes() {
    let world = World::new().await;
    let ada = world.user("ada");
    let mut space = String::new();
    for _ in 0..QUOTAS.spaces {
        space = ada.post("/v1/spaces", json!({})).await.expect(201)["id"]
            .as_str()
            .unwrap()
            .into();
    }
    let over = [
        ada.post("/v1/spaces", json!({})).await,
        ada.post("/v1/runs", json!({ "text": "a" })).await,
    ];
    for told in over {
        let told = told.expect(429);
        assert_eq!(told["code"], "QUOTA_EXCEEDED", "{told}");
        assert!(
            told["detail"].as_str().unwrap().contains("quotas.spaces"),
            "{told}"
        );
    }
    // What is there goes on, and others are not concerned.
    ada.post(&format!("/v1/spaces/{space}/messages"), json!({ "text": "a" }))
        .await
        .expect(202);
    world.user("bob").post("/v1/spaces", json!({})).await.expect(201);
    for _ in 0..=QUOTAS.spaces {
        world.backend().post("/v1/spaces", json!({})).await.expect(201);
    }
}

#[tokio::test]
async fn a_user_has_so_many_open_runs_and_may_go_on_with_them() {
    let world = World::new().await;
    let ada = world.user("ada");
    let mut started = Vec::new();
    for _ in 0..QUOTAS.open_runs {
        started.push(
            ada.post("/v1/runs", json!({ "text": "call:ask" }))
                .await
                .expect(201),
        );
    }
    let told = ada
        .post("/v1/runs", json!({ "text": "call:ask" }))
        .await
        .expect(429);
    assert_eq!(told["code"], "QUOTA_EXCEEDED");
    assert!(
        told["detail"].as_str().unwrap().contains("quotas.open_runs"),
        "{told}"
    );
    let text = |value: &Value, member: &str| value[member].as_str().unwrap().to_owned();
    let (space, run) = (text(&started[0], "spaceId"), text(&started[0], "runId"));
    ada.post(
        &format!("/v1/spaces/{space}/messages"),
        json!({ "text": "call:ask" }),
    )
    .await
    .expect(202);
    ada.post(&format!("/v1/runs/{run}/cancel"), json!({}))
        .await
        .expect(200);
    // What ends is seen when the store is read again, a second later.
    world.clock.jump(1000);
    ada.post("/v1/runs", json!({ "text": "call:ask" }))
        .await
        .expect(201);
}

#[tokio::test]
async fn a_user_stores_so_many_bytes() {
    let world = World::new().await;
    let ada = world.user("ada");
    let space = ada.post("/v1/spaces", json!({})).await.expect(201);
    let path = format!("/v1/spaces/{}/messages", space["id"].as_str().unwrap());
    let large = json!({ "text": "x".repeat(CONTENT.message), "respond": false });
    let mut stored = 0;
    let told = loop {
        let told = ada.post(&path, large.clone()).await;
        if told.status != 202 {
            break told.expect(429);
        }
        stored += CONTENT.message as u64;
        assert!(stored < QUOTAS.stored_bytes + CONTENT.message as u64);
    };
    assert_eq!(told["code"], "QUOTA_EXCEEDED");
    assert!(
        told["detail"].as_str().unwrap().contains("quotas.stored_bytes"),
        "{told}"
    );
    assert!(
        stored + 2 * CONTENT.message as u64 > QUOTAS.stored_bytes,
        "{stored}"
    );
}

#[tokio::test]
async fn a_user_at_a_quota_gets_the_receipts_of_what_was_acknowledged() {
    let world = World::new().await;
    let keyed = |key: &str| world.user("ada").with("idempotency-key", key);
    let say = json!({ "text": "call:ask" });
    let mut receipts = Vec::new();
    for n in 0..QUOTAS.open_runs {
        let receipt = keyed(&format!("k{n}")).post("/v1/runs", say.clone()).await;
        receipts.push(receipt.expect(201));
    }
    for (n, receipt) in receipts.iter().enumerate() {
        let again = keyed(&format!("k{n}")).post("/v1/runs", say.clone()).await;
        assert_eq!(again.expect(201), *receipt);
    }
    let told = keyed("new").post("/v1/runs", say.clone()).await.expect(429);
    assert_eq!(told["code"], "QUOTA_EXCEEDED");
}

#[tokio::test]
async fn quotas_are_checked_without_reading_all_that_a_user_has_each_time() {
    let world = World::new().await;
    let ada = world.user("ada");
    tokio::time::pause();
    ada.post("/v1/spaces", json!({})).await.expect(201);
    world.faults.refuse(Some("holdings"));
    for _ in 1..QUOTAS.spaces {
        ada.post("/v1/spaces", json!({})).await.expect(201);
    }
    ada.post("/v1/spaces", json!({})).await.expect(429);
    world.clock.jump(1000);
    ada.post("/v1/spaces", json!({})).await.expect(503);
}

#[tokio::test]
async fn streams_that_are_opened_at_once_do_not_go_beyond_the_limit_together() {
    let world = World::new().await;
    let ada = world.user("ada");
    let started = ada
        .post("/v1/runs", json!({ "text": "call:ask" }))
        .await
        .expect(201);
    let path = format!("/v1/spaces/{}/messages", started["spaceId"].as_str().unwrap());
    let reader = ada
        .with("accept", "text/event-stream")
        .with("content-type", "application/json");
    let open = || {
        let body = Body::from(json!({ "text": "call:ask" }).to_string());
        reader.raw(Method::POST, &path, body)
    };
    let opened = join_all((0..2 * STREAMS_MAX).map(|_| open())).await;
    let count = |status: u16| {
        let told = opened.iter().filter(|told| told.status() == status);
        told.count()
    };
    assert_eq!((count(200), count(429)), (STREAMS_MAX, STREAMS_MAX));
    drop(opened);
    let again = open().await;
    assert_eq!(again.status(), 200, "what is closed makes room");
}

#[tokio::test]
async fn the_state_of_a_long_run_counts_among_the_bytes_in_flight() {
    let world = World::with(|settings| settings.in_flight_bytes_max = 4 * CONTENT.message).await;
    let backend = world.backend();
    let long = json!({ "text": format!("call:ask {}", "x".repeat(CONTENT.message - 9)) });
    let started = backend.post("/v1/runs", long.clone()).await.expect(201);
    let text = |member: &str| started[member].as_str().unwrap().to_owned();
    let (run, space) = (text("runId"), text("spaceId"));
    backend.get(&format!("/v1/runs/{run}")).await.expect(200);
    for _ in 0..4 {
        let posted = backend
            .post(&format!("/v1/spaces/{space}/messages"), long.clone())
            .await;
        assert_eq!(posted.expect(202)["runId"], run.as_str());
    }
    let told = backend.get(&format!("/v1/runs/{run}")).await.expect(503);
    assert!(
        told["detail"]
            .as_str()
            .unwrap()
            .contains("http.in_flight_bytes_max"),
        "{told}"
    );
    // Nothing is left counted, and what needs no state is not concerned.
    backend
        .get(&format!("/v1/runs/{run}/events?limit=1"))
        .await
        .expect(200);
    backend
        .post(&format!("/v1/runs/{run}/cancel"), json!({}))
        .await
        .expect(200);
    let short = backend.post("/v1/runs", json!({ "text": "a" })).await.expect(201);
    let short = short["runId"].as_str().unwrap();
    backend.get(&format!("/v1/runs/{short}")).await.expect(200);
}
