//! Who may come in, and as whom.

use http::StatusCode;
use serde_json::json;
use toolgate_access::{Auth, Rate};

use crate::world::{FAR, OTHER_PUBLIC, PUBLIC, SECRET, World, project, token};

#[tokio::test]
async fn without_a_key_nobody_comes_in() {
    let world = World::new().await;
    let told = world.nobody().get("/v1/spaces").await;
    assert_eq!(told.header("www-authenticate"), "Bearer");
    assert_eq!(told.header("content-type"), "application/problem+json");
    assert_eq!(told.code(401), "UNAUTHENTICATED");
    for bearer in ["sk_unknown0123456789", PUBLIC, "", "a.b.c"] {
        let told = world
            .nobody()
            .with("authorization", &format!("Bearer {bearer}"))
            .get("/v1/spaces")
            .await;
        assert_eq!(told.code(401), "UNAUTHENTICATED");
    }
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(world.nobody().get(path).await.status, StatusCode::OK);
    }
    assert_eq!(
        world.nobody().get("/metrics").await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        world.backend().get("/metrics").await.expect(200),
        "toolgate_up 1\n"
    );
}

#[tokio::test]
async fn an_open_door_takes_everybody_as_the_backend() {
    let world = World::with(|settings| settings.auth = Auth::Open(project(1))).await;
    world.nobody().get("/v1/agents").await.expect(200);
    world
        .nobody()
        .with("authorization", "whatever")
        .get("/v1/agents")
        .await
        .expect(200);
    world.nobody().get("/metrics").await.expect(200);
}

#[tokio::test]
async fn an_open_door_is_closed_to_names_and_pages_of_elsewhere() {
    let world = World::with(|settings| settings.auth = Auth::Open(project(1))).await;
    let asks = async |name: &str, value: &str| {
        let told = world.nobody().with(name, value).get("/v1/agents").await;
        told.status.as_u16()
    };
    for ours in ["127.0.0.1:8787", "localhost", "[::1]:8787", "LOCALHOST:1"] {
        assert_eq!(asks("host", ours).await, 200, "{ours}");
    }
    for elsewhere in [
        "evil.example",
        "127.0.0.1.evil.example:8787",
        "localhost.evil.example",
        "192.168.0.7",
    ] {
        assert_eq!(asks("host", elsewhere).await, 403, "{elsewhere}");
    }
    for ours in ["http://localhost:5173", "https://app.example"] {
        assert_eq!(asks("origin", ours).await, 200, "{ours}");
    }
    for elsewhere in ["https://evil.example", "null", "http://localhost.evil.example"] {
        assert_eq!(asks("origin", elsewhere).await, 403, "{elsewhere}");
    }
}

#[tokio::test]
async fn a_token_is_believed_only_when_it_is_signed_timely_and_names_somebody() {
    let world = World::new().await;
    let with = |token: &str| {
        let key = world.nobody().with("x-public-key", PUBLIC);
        key.with("authorization", &format!("Bearer {token}"))
    };
    with(&token(json!({ "sub": "ada", "exp": FAR })))
        .get("/v1/spaces")
        .await
        .expect(200);
    // Other audiences, issuers and claims are the project's business.
    with(&token(
        json!({ "sub": "ada", "exp": FAR, "aud": "app", "iss": "x" }),
    ))
    .get("/v1/spaces")
    .await
    .expect(200);

    let unsigned = {
        let part = |text: &str| jsonwebtoken_base64(text);
        format!(
            "{}.{}.",
            part(r#"{"alg":"none","typ":"JWT"}"#),
            part(r#"{"sub":"ada","exp":4000000000}"#)
        )
    };
    let good = token(json!({ "sub": "ada", "exp": FAR }));
    let mut forged = good.clone();
    forged.replace_range(
        good.len() - 4..,
        if good.ends_with("AAAA") { "BBBB" } else { "AAAA" },
    );
    for (bad, why) in [
        (token(json!({ "sub": "ada", "exp": 1_000_000_000 })), "expired"),
        (token(json!({ "sub": "ada", "exp": -1e300 })), "exp"),
        (token(json!({ "sub": "ada" })), "no exp"),
        (token(json!({ "sub": "ada", "exp": "never" })), "not valid"),
        (
            token(json!({ "sub": "ada", "exp": FAR, "nbf": FAR - 1 })),
            "not valid yet",
        ),
        (token(json!({ "exp": FAR })), "sub is missing"),
        (token(json!({ "sub": "", "exp": FAR })), "1 to 256"),
        (forged, "not valid"),
        (unsigned, "JWT"),
        ("x".repeat(10_000), "too long"),
    ] {
        let told = with(&bad).get("/v1/spaces").await.expect(401);
        assert!(
            told["detail"].as_str().unwrap().contains(why),
            "{told} should tell {why}"
        );
    }
}

fn jsonwebtoken_base64(text: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits: Vec<u8> = text
        .bytes()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
        .collect();
    bits.chunks(6)
        .map(|six| {
            six.iter()
                .chain(&[0; 6])
                .take(6)
                .fold(0, |value, bit| value << 1 | bit)
        })
        .map(|value: u8| ALPHABET[value as usize] as char)
        .collect()
}

#[tokio::test]
async fn a_user_is_no_backend() {
    let world = World::new().await;
    let user = world.user("ada");
    assert_eq!(user.get("/v1/agents").await.code(403), "FORBIDDEN");
    assert_eq!(user.get("/v1/keys").await.code(403), "FORBIDDEN");
    assert_eq!(user.get("/metrics").await.code(403), "FORBIDDEN");
    assert_eq!(
        user.put("/v1/agents/mine", json!({})).await.code(403),
        "FORBIDDEN"
    );
    assert_eq!(
        user.put("/v1/entities/ada", json!({})).await.code(403),
        "FORBIDDEN"
    );
}

#[tokio::test]
async fn a_key_is_shown_once_opens_its_project_and_stops_when_it_is_removed() {
    let world = World::new().await;
    let backend = world.backend();
    let made = backend
        .post("/v1/keys", json!({ "kind": "secret", "name": "ci" }))
        .await
        .expect(201);
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with("sk_") && key.starts_with(made["hint"].as_str().unwrap()));
    let fresh = world.nobody().with("authorization", &format!("Bearer {key}"));
    fresh.get("/v1/agents").await.expect(200);

    let listed = backend.get("/v1/keys").await.expect(200);
    assert_eq!(listed["keys"].as_array().unwrap().len(), 3);
    assert!(!listed.to_string().contains(key) && !listed.to_string().contains(SECRET));

    let path = format!("/v1/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(world.stranger().delete(&path).await.code(404), "NOT_FOUND");
    fresh.get("/v1/agents").await.expect(200);
    backend.delete(&path).await.expect(204);
    fresh.get("/v1/agents").await.expect(401);
    backend.delete(&path).await.expect(404);
}

#[tokio::test]
async fn a_public_key_of_one_project_opens_nothing_of_another() {
    let world = World::new().await;
    let space = world.user("ada").post("/v1/spaces", json!({})).await.expect(201);
    let path = format!("/v1/spaces/{}", space["id"].as_str().unwrap());
    // The other project signs with the same secret and knows a user of the same name.
    let token = token(json!({ "sub": "ada", "exp": FAR }));
    let other = world
        .nobody()
        .with("x-public-key", OTHER_PUBLIC)
        .with("authorization", &format!("Bearer {token}"));
    assert_eq!(other.get(&path).await.code(404), "NOT_FOUND");
    world.user("ada").get(&path).await.expect(200);
}

#[tokio::test]
async fn a_browser_may_put_its_key_and_token_in_the_address_of_a_stream_and_nowhere_else() {
    let world = World::new().await;
    let space = world.user("ada").post("/v1/spaces", json!({})).await.expect(201);
    let space = space["id"].as_str().unwrap();
    let credentials = format!(
        "key={PUBLIC}&token={}",
        token(json!({ "sub": "ada", "exp": FAR }))
    );
    let nobody = world.nobody();
    let mut stream = nobody
        .follow(&format!("/v1/spaces/{space}/events?{credentials}"))
        .await;
    assert_eq!(stream.status, StatusCode::OK);
    world
        .user("ada")
        .post(&format!("/v1/spaces/{space}/messages"), json!({ "text": "hi" }))
        .await
        .expect(202);
    stream.until("run-finish").await;
    nobody
        .get(&format!("/v1/spaces/{space}/events?{credentials}"))
        .await
        .expect(401);
    nobody
        .get(&format!("/v1/spaces/{space}?{credentials}"))
        .await
        .expect(401);
    let secret = nobody
        .with("accept", "text/event-stream")
        .get(&format!("/v1/spaces/{space}/events?key={SECRET}"))
        .await
        .expect(401);
    assert!(secret["detail"].as_str().unwrap().contains("never"));
}

#[tokio::test]
async fn one_who_asks_too_often_is_told_when_to_come_back_and_others_are_not_held_up() {
    let world = World::with(|settings| {
        settings.rate.public = Rate {
            per_second: 1,
            burst: 2,
        }
    })
    .await;
    let ada = world.user("ada");
    ada.get("/v1/spaces").await.expect(200);
    ada.get("/v1/spaces").await.expect(200);
    let told = ada.get("/v1/spaces").await;
    assert_eq!(told.header("retry-after"), "1");
    assert_eq!(told.code(429), "RATE_LIMITED");
    world.user("bob").get("/v1/spaces").await.expect(200);
    for _ in 0..3 {
        world.backend().get("/v1/spaces").await.expect(200);
    }
    // Another public key is no way around it.
    let body = json!({"kind": "public"});
    let key = world.backend().post("/v1/keys", body).await.expect(201)["key"]
        .as_str()
        .unwrap()
        .to_owned();
    let token = token(json!({ "sub": "ada", "exp": FAR }));
    let again = world.nobody().with("x-public-key", &key);
    let again = again.with("authorization", &format!("Bearer {token}"));
    assert_eq!(again.get("/v1/spaces").await.code(429), "RATE_LIMITED");
}
