//! What a server writes reaches the client as it was written.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::Value;
use toolgate_testkit_http::world::SECRET;

use crate::gateway::{Gateway, listen, soon, spawn};

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}"#;
const LISTED: &str = r#"{"zebra":1.50,"tools":[{"unknown":{"b":1,"a":2},"name":"odd","inputSchema":{"type":"object"},"outputSchema":true}],"resultType":"complete","ttlMs":9,"cacheScope":"public"}"#;
const CALLED: &str = r#"{"isNew":[1e2,12345678901234567890123],"resultType":"complete","content":[{"type":"hologram","z":0,"a":null}]}"#;

/// A server that says exactly this.
async fn server(body: Bytes) -> impl IntoResponse {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let result = match request["method"].as_str() {
        Some("server/discover") => DISCOVERED,
        Some("tools/list") => LISTED,
        _ => CALLED,
    };
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request["id"]);
    ([("content-type", "application/json")], answer)
}

async fn ask(url: &str, headers: &[(&str, &str)], body: String) -> (HeaderMap, String) {
    let mut request = reqwest::Client::new()
        .post(url)
        .bearer_auth(SECRET)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = soon("response", request.body(body).send()).await.unwrap();
    (response.headers().clone(), response.text().await.unwrap())
}

fn result(answer: &str) -> &str {
    let (_, result) = answer
        .split_once(r#""result":"#)
        .unwrap_or_else(|| panic!("{answer}"));
    result.strip_suffix('}').unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn members_keep_their_order_their_text_and_what_nobody_knows() {
    let (listener, url) = listen("mcp").await;
    let router = axum::Router::new().route("/mcp", post(server));
    let _server = spawn(async move { drop(axum::serve(listener, router).await) });
    let gateway = Gateway::before_address(&url).await;
    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let version = ("mcp-protocol-version", "2026-07-28");

    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    let (_, listed) = ask(&gateway.url, &[version, ("mcp-method", "tools/list")], body).await;
    assert_eq!(result(&listed), LISTED);
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"odd",{META}}}}}"#);
    let headers = [version, ("mcp-method", "tools/call"), ("mcp-name", "odd")];
    let (_, called) = ask(&gateway.url, &headers, body).await;
    assert_eq!(result(&called), CALLED);

    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
    let (opened, _) = ask(&gateway.url, &[], body.into()).await;
    let session = ("mcp-session-id", opened["mcp-session-id"].to_str().unwrap());
    let body = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let (_, listed) = ask(&gateway.url, &[session], body.into()).await;
    let without = LISTED.replace(r#","resultType":"complete","ttlMs":9,"cacheScope":"public""#, "");
    assert_eq!(result(&listed), without);
    let body = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"odd"}}"#;
    let (_, called) = ask(&gateway.url, &[session], body.into()).await;
    assert_eq!(result(&called), CALLED.replace(r#""resultType":"complete","#, ""));
}
