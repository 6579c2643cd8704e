//! What a door must survive.

use axum::body::{Body, to_bytes};
use http::Method;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_testkit_http::client::Told;

use crate::world::{BODY_BYTES_MAX, CONTRACT, World};

async fn sent(world: &World, kind: &str, body: impl Into<Body>) -> Told {
    let client = if kind.is_empty() {
        world.backend()
    } else {
        world.backend().with("content-type", kind)
    };
    client.send(Method::POST, "/v1/runs", body.into()).await
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_refused_and_changes_nothing() {
    let world = World::new().await;
    let json = "application/json";
    let told = sent(&world, json, "{\"text\": \"a\",\n  oops}").await.expect(400);
    assert!(
        told["detail"].as_str().unwrap().contains("line 2 column 3"),
        "{told}"
    );
    sent(&world, json, "").await.expect(422);
    sent(&world, json, "null").await.expect(422);
    sent(&world, json, vec![b'{', 0xff, b'}']).await.expect(400);
    sent(&world, json, "[".repeat(50_000)).await.expect(400);
    sent(
        &world,
        json,
        format!("{{\"metadata\":{}1{}}}", "{\"a\":".repeat(70), "}".repeat(70)),
    )
    .await
    .expect(400);
    sent(&world, json, r#"{"text": "\ud800"}"#).await.expect(400);
    sent(&world, json, r#"{"text": "a", "metadata": {"n": 1e999}}"#)
        .await
        .expect(400);
    sent(&world, "text/plain", r#"{"text": "a"}"#).await.expect(415);
    sent(&world, "", r#"{"text": "a"}"#).await.expect(415);
    assert_eq!(
        sent(&world, json, "x".repeat(BODY_BYTES_MAX + 1)).await.code(413),
        "BODY_TOO_LARGE"
    );
    let members: String = (0..5_000).map(|n| format!("\"m{n}\":1,")).collect();
    sent(&world, json, format!("{{{members}\"text\":\"a\"}}"))
        .await
        .expect(422);
    let runs = world.backend().get("/v1/runs").await.expect(200);
    assert_eq!(runs["runs"], json!([]));
    sent(&world, "application/json; charset=utf-8", r#"{"text": "a"}"#)
        .await
        .expect(201);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    struct Never;
    impl http_body::Body for Never {
        type Data = bytes::Bytes;
        type Error = std::convert::Infallible;
        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
            std::task::Poll::Pending
        }
    }
    let world = World::new().await;
    assert_eq!(
        sent(&world, "application/json", Body::new(Never)).await.code(408),
        "TIMEOUT"
    );
}

#[tokio::test]
async fn an_id_that_is_none_is_not_found() {
    let world = World::new().await;
    for path in [
        "/v1/runs/nonsense",
        "/v1/runs/space_00000000000000000000000000",
        "/v1/spaces/%ff",
        "/v1/runs/%00",
    ] {
        let told = world.backend().get(path).await;
        assert_eq!(told.header("content-type"), "application/problem+json");
        assert_eq!(told.code(404), "NOT_FOUND");
    }
    let told = world.backend().get("/v1/runs/nonsense").await.expect(404);
    assert!(
        told["detail"].as_str().unwrap().contains("run_<26 characters>"),
        "{told}"
    );
    world
        .backend()
        .get("/v1/runs/run_00000000000000000000000000")
        .await
        .expect(404);
}

#[tokio::test]
async fn every_answer_carries_the_requests_id() {
    let world = World::new().await;
    let told = world
        .backend()
        .with("x-request-id", "my-id.1")
        .get("/v1/spaces")
        .await;
    assert_eq!(told.header("x-request-id"), "my-id.1");
    for odd in ["", "a b", &"x".repeat(129), "\"quoted\""] {
        let told = world.nobody().with("x-request-id", odd).get("/nowhere").await;
        let made = told.header("x-request-id").to_owned();
        assert!(made != odd && made.len() == 36, "{made}");
    }
}

#[tokio::test]
async fn browsers_may_call_from_known_origins_only() {
    let world = World::new().await;
    let preflight = |origin: &str| {
        let client = world
            .nobody()
            .with("origin", origin)
            .with("access-control-request-method", "POST");
        async move { client.raw(Method::OPTIONS, "/v1/runs", Body::empty()).await }
    };
    let yes = preflight("https://app.example").await;
    assert_eq!(yes.status(), 204);
    assert_eq!(
        yes.headers()["access-control-allow-origin"],
        "https://app.example"
    );
    assert!(
        yes.headers()["access-control-allow-headers"]
            .to_str()
            .unwrap()
            .contains("x-public-key")
    );
    let no = preflight("https://evil.example").await;
    assert!(no.headers().get("access-control-allow-origin").is_none());
    assert_eq!(no.status(), 403);
    let told = to_bytes(no.into_body(), usize::MAX).await.unwrap();
    let told = String::from_utf8(told.to_vec()).unwrap();
    assert!(
        told.contains("https://evil.example") && told.contains("http.origins"),
        "{told}"
    );

    let told = world
        .backend()
        .with("origin", "https://app.example")
        .get("/v1/spaces")
        .await;
    assert_eq!(told.header("access-control-allow-origin"), "https://app.example");
    assert!(
        told.header("access-control-expose-headers")
            .contains("toolgate-run-id")
    );
    let told = world
        .nobody()
        .with("origin", "https://app.example")
        .get("/v1/spaces")
        .await;
    assert_eq!(
        told.header("access-control-allow-origin"),
        "https://app.example",
        "also on a refusal"
    );
    let any = World::with(|settings| settings.origins = vec!["*".into()]).await;
    let told = any
        .backend()
        .with("origin", "https://anywhere.example")
        .get("/v1/spaces")
        .await;
    assert_eq!(told.header("access-control-allow-origin"), "*");
}

/// Bodies made of the members that a request knows, in right and wrong shapes.
fn body() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "text",
        "content",
        "parts",
        "message",
        "messageId",
        "agent",
        "space",
        "spaceId",
        "metadata",
        "respond",
        "odd",
    ]);
    let value = prop_oneof![
        Just(json!(null)),
        Just(json!("hi")),
        Just(json!("")),
        Just(json!(true)),
        Just(json!(1.5)),
        Just(json!([{ "type": "text", "text": "hi" }])),
        Just(json!([{ "type": "image", "url": "https://a.example/b.png" }])),
        Just(json!({ "text": "hi" })),
        Just(json!({ "content": [] })),
        Just(json!("default")),
        Just(json!("msg_00000000000000000000000001")),
        Just(json!("space_00000000000000000000000001")),
    ];
    let members = prop::collection::btree_map(name, value, 0..4);
    members.prop_map(|members| json!(members))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_the_document_takes_is_what_the_door_takes(body in body()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new().await;
            let told = world.backend().post("/v1/runs", body.clone()).await;
            // 404: the agent is not there.
            let taken = [201, 404].contains(&told.status.as_u16());
            let fits = CONTRACT.takes(&Method::POST, "/v1/runs", &body);
            assert_eq!(taken, fits, "{body} gave {} {}", told.status, told.body);
        });
    }
}
