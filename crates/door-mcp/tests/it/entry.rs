use axum::body::Body;
use http::Method;
use serde_json::json;
use toolgate_testkit_http::world::{FAR, PUBLIC, token};

use crate::talk::{NOTHING, ask, modern, post, read, send, world, world_with};

#[tokio::test]
async fn a_caller_without_a_key_is_told_where_to_look() {
    let world = world().await;
    let told = read(send(&world.nobody(), &modern("tools/list", json!({}), NOTHING)).await).await;
    assert_eq!(told.status, 401);
    let challenge = told.headers["www-authenticate"].to_str().unwrap();
    let at = "http://127.0.0.1:8787/.well-known/oauth-protected-resource/mcp";
    assert_eq!(challenge, format!("Bearer resource_metadata=\"{at}\""));
    let path = "/.well-known/oauth-protected-resource/mcp";
    let client = world.nobody().with("host", "127.0.0.1:8787");
    let response = client.raw(Method::GET, path, Body::empty()).await;
    let told = read(response).await;
    assert_eq!(
        told.messages[0],
        json!({
            "resource": "http://127.0.0.1:8787/mcp", "authorization_servers": ["https://login.example"],
            "bearer_methods_supported": ["header"], "resource_name": "Toolgate",
        })
    );
}

#[tokio::test]
async fn a_user_may_show_its_key_and_token_in_one_header() {
    let world = world().await;
    let jwt = token(json!({"sub": "ann", "exp": FAR}));
    let one = world
        .nobody()
        .with("authorization", &format!("Bearer {PUBLIC}.{jwt}"));
    let told = ask(&one, "tools/list", json!({}), NOTHING).await;
    let same = ask(&world.user("ann"), "tools/list", json!({}), NOTHING).await;
    assert_eq!(told.result(), same.result());
}

#[tokio::test]
async fn pages_and_hosts_that_nobody_allowed_are_refused() {
    let world = world_with(|_| (), vec!["tools.example".into()]).await;
    let message = modern("tools/list", json!({}), NOTHING);
    for (name, value, status) in [
        ("origin", "http://localhost:3000", 200),
        ("origin", "https://app.example", 200),
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
    ] {
        let client = world.backend().with(name, value);
        assert_eq!(send(&client, &message).await.status(), status, "{name}: {value}");
    }
    for (host, status) in [
        ("tools.example:443", 200),
        ("localhost:8787", 200),
        ("evil.example", 403),
    ] {
        let client = world
            .backend()
            .with("accept", "application/json, text/event-stream")
            .with("content-type", "application/json")
            .with("mcp-protocol-version", crate::talk::MODERN)
            .with("mcp-method", "tools/list")
            .with("host", host);
        let response = client
            .raw(Method::POST, "/mcp", Body::from(message.to_string()))
            .await;
        assert_eq!(response.status(), status, "{host}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_or_no_message_is_refused() {
    let world = world().await;
    let large = json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"x": "y".repeat(100_000)}});
    assert_eq!(post(&world.backend(), "/mcp", &large).await.status(), 413);
    let client = world
        .backend()
        .with("accept", "application/json, text/event-stream")
        .with("content-type", "application/json")
        .with("host", "localhost");
    for body in ["", "{", "[]", "7", "null", "{\"jsonrpc\":\"1.0\"}"] {
        let response = client.raw(Method::POST, "/mcp", Body::from(body)).await;
        assert!(
            response.status().is_client_error(),
            "{body:?}: {}",
            response.status()
        );
    }
    let modern_get = world
        .backend()
        .with("accept", "text/event-stream")
        .with("host", "localhost")
        .with("mcp-protocol-version", crate::talk::MODERN);
    assert_eq!(
        modern_get.raw(Method::GET, "/mcp", Body::empty()).await.status(),
        405
    );
}
