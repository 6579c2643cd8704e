use axum::body::Body;
use http::Method;
use serde_json::json;
use toolgate_engine::store::{Directory as _, IdentityProvider, ProjectRecord};
use toolgate_kernel::time::Time;
use toolgate_testkit_http::world::{FAR, JWT_SECRET, OTHER_PUBLIC, PUBLIC, SECRET, project, token};

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
async fn the_issuer_of_a_project_is_named_where_the_address_has_its_public_key() {
    let world = world().await;
    let record = ProjectRecord {
        id: project(2),
        name: "other".into(),
        jwt_secret: Some(JWT_SECRET.into()),
        identity_provider: Some(IdentityProvider {
            jwks_url: "https://login.other.example/keys".into(),
            issuer: Some("https://login.other.example".into()),
            audience: None,
        }),
        settings: None,
        created: Time(0),
    };
    world.store.put_project(record).await.unwrap();
    let told = post(
        &world.nobody(),
        &format!("/mcp?key={OTHER_PUBLIC}"),
        &modern("tools/list", json!({}), NOTHING),
    )
    .await;
    assert_eq!(told.status(), 401);
    let challenge = told.headers()["www-authenticate"].to_str().unwrap();
    let at = format!("/.well-known/oauth-protected-resource/mcp?key={OTHER_PUBLIC}");
    assert_eq!(
        challenge,
        format!("Bearer resource_metadata=\"http://127.0.0.1:8787{at}\"")
    );
    let client = world.nobody().with("host", "127.0.0.1:8787");
    let read_at = async |path: &str| read(client.raw(Method::GET, path, Body::empty()).await).await;
    let told = read_at(&at).await;
    let resource = format!("http://127.0.0.1:8787/mcp?key={OTHER_PUBLIC}");
    assert_eq!(told.messages[0]["resource"], resource);
    let servers = &told.messages[0]["authorization_servers"];
    assert_eq!(*servers, json!(["https://login.other.example"]));
    // Servers that are exposed as they are have it too; a key that nobody has tells nothing.
    let below = at.replace("/mcp?", "/mcp/servers/files?");
    assert_eq!(read_at(&below).await.status, 200);
    let unknown = at.replace(OTHER_PUBLIC, "pk_nobody0123456789");
    assert_eq!(read_at(&unknown).await.status, 401);
    // A token comes in with the key of the address, as with the header.
    let jwt = token(json!({"sub": "ann", "exp": FAR}));
    let user = world.nobody().with("authorization", &format!("Bearer {jwt}"));
    let listed = post(
        &user,
        &format!("/mcp?key={PUBLIC}"),
        &modern("tools/list", json!({}), NOTHING),
    )
    .await;
    assert_eq!(listed.status(), 200);
    let secret = post(
        &user,
        &format!("/mcp?key={SECRET}"),
        &modern("tools/list", json!({}), NOTHING),
    )
    .await;
    assert_eq!(secret.status(), 401);
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
