//! `fetch` of code with permissions, against a real server on loopback that the operator has allowed.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::{any, get};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolgate_egress::{AllowList, Egress, Policy};
use toolgate_sandbox::{GuardedFetch, ScriptFailure};

use crate::{job, sandbox};

/// A server that redirects where it must not.
async fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let redirect = |to: &'static str| move || async move { (StatusCode::FOUND, [(header::LOCATION, to)]) };
    let app = Router::new()
        .route(
            "/echo",
            any(|headers: HeaderMap, body: String| async move {
                let names: Vec<String> = headers.keys().map(ToString::to_string).collect();
                (
                    [(header::SET_COOKIE, "session=1")],
                    json!({"headers": names, "body": body}).to_string(),
                )
            }),
        )
        .route("/bytes", get(|| async { vec![0u8, 255, 10] }))
        .route("/large", get(|| async { "x".repeat(3 << 20) }))
        .route(
            "/to-metadata",
            get(redirect("http://169.254.169.254/latest/meta-data/")),
        )
        .route("/to-other", get(redirect("http://other.example/")))
        .route("/around", get(redirect("/around")))
        .fallback(|| async { StatusCode::NOT_FOUND.into_response() });
    tokio::spawn(async move { axum::serve(listener, app).await });
    port
}

/// Runs code with permissions for two hosts, of which the operator allows the server alone.
async fn fetch(port: u16, code: &str) -> Result<Value, ScriptFailure> {
    let allow = AllowList::new(&[format!("127.0.0.1:{port}")]).expect("an address");
    let client = Egress::new().client(Policy::public(allow));
    // The metadata address is named too: what keeps it out of reach is the SSRF guard.
    let hosts = ["127.0.0.1", "169.254.169.254"].map(|host| host.parse().expect("a host"));
    let guarded = GuardedFetch::new(client, hosts.to_vec());
    let code = code.replace("BASE", &format!("http://127.0.0.1:{port}"));
    let ran = sandbox().run(job(1, &code, json!({})), Arc::new(guarded)).await;
    ran.map(|output| output.to_value())
}

#[tokio::test]
async fn a_request_carries_what_the_code_wrote_and_nothing_else() {
    let port = server().await;
    let code = "const answer = await fetch('BASE/echo', {method: 'POST', headers: {'X-Mine': '1'}, body: 'hello'});
        const sent = await answer.json();
        return [answer.status, sent.body, sent.headers.filter((name) => /cookie|auth/.test(name)), sent.headers.includes('x-mine'), answer.headers.get('set-cookie')]";
    assert_eq!(fetch(port, code).await, Ok(json!([200, "hello", [], true, null])));
    let code = "return [...await (await fetch('BASE/bytes')).bytes()]";
    assert_eq!(fetch(port, code).await, Ok(json!([0, 255, 10])));
    assert_eq!(
        fetch(port, "return (await fetch('BASE/none')).status").await,
        Ok(json!(404))
    );
}

#[tokio::test]
async fn what_is_not_permitted_is_refused_with_the_permission_that_it_would_take() {
    let port = server().await;
    for (code, words) in [
        ("await fetch('http://other.example/')", "\"fetch:other.example\""),
        ("await fetch('BASE/to-other')", "\"fetch:other.example\""),
        ("await fetch('BASE/to-metadata')", "outside.allow"),
        ("await fetch('BASE/around')", "redirects more than 5 times"),
        ("await fetch('BASE/large')", "longer than 2097152 bytes"),
        (
            "await fetch('BASE/echo', {headers: {Host: 'x'}})",
            "the header host is set by the gateway",
        ),
        (
            "await fetch('BASE/echo', {method: 'CONNECT'})",
            "expected the method GET",
        ),
        ("await fetch('file:///etc/passwd')", "not permitted"),
    ] {
        let failed = fetch(port, code).await.expect_err(code);
        assert!(failed.message.contains(words), "{code}: {failed}");
    }
}
