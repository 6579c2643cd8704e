//! Who may come in, and what a request must look like.

use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use toolgate_kernel::agent::Access;
use toolgate_testkit_http::world::{FAR, OTHER_SECRET, PUBLIC, SECRET, token};
use toolgate_testkit_mcp::Eras;

use crate::gateway::{By, Gateway, soon};

fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                             "io.modelcontextprotocol/clientCapabilities": {}});
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

async fn send(url: &str, headers: &[(&str, &str)], body: &Value) -> Response {
    let mut request = reqwest::Client::new()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    soon("response", request.body(body.to_string()).send())
        .await
        .unwrap()
}

async fn code(response: Response) -> (StatusCode, i64) {
    let status = response.status();
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    (status, body["error"]["code"].as_i64().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_may_reach_a_server_learn_that_it_is_there() {
    let gateway = Gateway::before_with(Eras::Both, By::Http, |exposed| {
        exposed.access = Access::Backend;
    })
    .await;
    let list = modern("tools/list", json!({}));
    let headers = |key: &str| {
        vec![
            ("authorization".to_owned(), format!("Bearer {key}")),
            ("mcp-protocol-version".to_owned(), "2026-07-28".to_owned()),
            ("mcp-method".to_owned(), "tools/list".to_owned()),
        ]
    };
    let status = async |url: &str, headers: Vec<(String, String)>| {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        send(url, &headers, &list).await.status()
    };
    assert_eq!(status(&gateway.url, headers(SECRET)).await, StatusCode::OK);
    assert_eq!(
        status(&gateway.url, headers("sk_nobody0123456789")).await,
        StatusCode::UNAUTHORIZED
    );
    let elsewhere = gateway.url.replace("fixture", "nothing");
    assert_eq!(status(&elsewhere, headers(SECRET)).await, StatusCode::NOT_FOUND);
    // Exposed to backends alone.
    let mut user = headers(&token(json!({"sub": "ada", "exp": FAR})));
    user.push(("x-public-key".to_owned(), PUBLIC.to_owned()));
    assert_eq!(status(&gateway.url, user).await, StatusCode::NOT_FOUND);
    let mut page = headers(SECRET);
    page.push(("origin".to_owned(), "http://evil.example.com".to_owned()));
    assert_eq!(status(&gateway.url, page).await, StatusCode::FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_entry_is_the_one_of_the_other_door() {
    let gateway = Gateway::before(Eras::Both, By::Http).await;
    let list = modern("tools/list", json!({}));
    let shown = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    // Without a key the caller is told where to look.
    let refused = send(&gateway.url, &shown, &list).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let challenge = refused.headers()["www-authenticate"].to_str().unwrap();
    let at = "/.well-known/oauth-protected-resource/mcp/servers/fixture\"";
    assert!(
        challenge.starts_with("Bearer resource_metadata=\"http://127.0.0.1:"),
        "{challenge}"
    );
    assert!(challenge.ends_with(at), "{challenge}");
    // Hosts are checked, before the key.
    let key = format!("Bearer {SECRET}");
    for (host, status) in [
        ("tools.example:443", StatusCode::OK),
        ("localhost:8787", StatusCode::OK),
        ("evil.example", StatusCode::FORBIDDEN),
    ] {
        let mut headers = vec![("host", host), ("authorization", &key)];
        headers.extend_from_slice(&shown);
        assert_eq!(
            send(&gateway.url, &headers, &list).await.status(),
            status,
            "{host}"
        );
    }
    // A page of the gateway's own address may call.
    let mut headers = vec![
        ("host", "tools.example"),
        ("origin", "http://tools.example"),
        ("authorization", &key),
    ];
    headers.extend_from_slice(&shown);
    assert_eq!(send(&gateway.url, &headers, &list).await.status(), StatusCode::OK);
    // The public key of a user may stand in the address, a secret key may not.
    let jwt = format!("Bearer {}", token(json!({"sub": "ada", "exp": FAR})));
    let mut headers = vec![("authorization", &*jwt)];
    headers.extend_from_slice(&shown);
    let at = format!("{}?key={PUBLIC}", gateway.url);
    assert_eq!(send(&at, &headers, &list).await.status(), StatusCode::OK);
    let at = format!("{}?key={SECRET}", gateway.url);
    assert_eq!(
        send(&at, &headers, &list).await.status(),
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_say_what_the_body_says() {
    let gateway = Gateway::before(Eras::Both, By::Http).await;
    let key = format!("Bearer {SECRET}");
    let version = ("mcp-protocol-version", "2026-07-28");
    let call = modern(
        "tools/call",
        json!({"name": "test_header_param", "arguments": {"region": "eu"}}),
    );
    let with = async |headers: &[(&str, &str)]| {
        let mut all = vec![("authorization", &*key), version, ("mcp-method", "tools/call")];
        all.extend_from_slice(headers);
        code(send(&gateway.url, &all, &call).await).await
    };
    let mismatch = (StatusCode::BAD_REQUEST, -32_020);
    assert_eq!(with(&[]).await, mismatch);
    assert_eq!(with(&[("mcp-name", "greet")]).await, mismatch);
    assert_eq!(with(&[("mcp-name", "test_header_param")]).await, mismatch);
    let region = |region| [("mcp-name", "test_header_param"), ("mcp-param-region", region)];
    assert_eq!(with(&region("us")).await, mismatch);
    assert_eq!(with(&region("eu")).await, (StatusCode::OK, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_whoever_opened_it() {
    let gateway = Gateway::before(Eras::Both, By::Http).await;
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "rules", "version": "1"}}});
    let key = format!("Bearer {SECRET}");
    let other = format!("Bearer {OTHER_SECRET}");
    let opened = send(&gateway.url, &[("authorization", &key)], &initialize).await;
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let status = async |key: &str, session: &str| {
        let headers = [("authorization", key), ("mcp-session-id", session)];
        send(&gateway.url, &headers, &ping).await.status()
    };
    assert_eq!(status(&key, &session).await, StatusCode::OK);
    assert_eq!(status(&other, &session).await, StatusCode::NOT_FOUND);
    let ended = reqwest::Client::new()
        .delete(&gateway.url)
        .header("authorization", &key);
    let ended = soon("delete", ended.header("mcp-session-id", &session).send())
        .await
        .unwrap();
    assert!(ended.status().is_success());
    assert_eq!(status(&key, &session).await, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_of_a_waiting_call_is_good_once_and_for_its_request_alone() {
    let gateway = Gateway::before(Eras::Legacy, By::Http).await;
    let key = format!("Bearer {SECRET}");
    let ask = async |tool: &str, more: Value| {
        let mut call = modern("tools/call", json!({"name": tool, "arguments": {}}));
        call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        for (name, value) in more.as_object().unwrap() {
            call["params"][name] = value.clone();
        }
        let headers = [
            ("authorization", &*key),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        let response = send(&gateway.url, &headers, &call).await;
        let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        body
    };
    const TOOL: &str = "test_input_required_result_elicitation";
    let asked = ask(TOOL, json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let state = &asked["result"]["requestState"];
    let name = asked["result"]["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let answer = json!({"requestState": state, "inputResponses": {name: {"action": "accept", "content": {"name": "Ada"}}}});
    let other = ask("test_streaming_elicitation", answer.clone()).await;
    assert_eq!(other["error"]["code"], -32_602);
    let done = ask(TOOL, answer.clone()).await;
    assert_eq!(done["result"]["content"][0]["text"], "Hello, Ada!");
    assert_eq!(done["result"]["resultType"], "complete");
    assert_eq!(ask(TOOL, answer).await["error"]["code"], -32_602);
}
