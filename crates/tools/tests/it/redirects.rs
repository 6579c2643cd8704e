//! Where a redirect may lead, and what goes along.

use axum::response::Response;
use serde_json::{Value, json};
use toolgate_kernel::call::ErrorCode;

use crate::server::{Server, json_answer, redirect, request, toolkit};

/// A server that redirects `/go` to `to` and answers everything else.
async fn leading(status: u16, to: impl Into<String>) -> Server {
    let to = to.into();
    Server::start(move |asked, _| match asked.target.as_str() {
        "/go" => redirect(status, &to),
        _ => json_answer(200, &json!("there")),
    })
    .await
}

#[tokio::test]
async fn a_redirect_to_an_inner_address_is_refused() {
    for to in [
        "http://127.0.0.1:1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[fd00:ec2::254]/",
        "//localhost/",
        "file:///etc/passwd",
        "http://user:pass@example.com/",
    ] {
        let server = leading(302, to).await;
        let failed = request(
            &toolkit(&[&server]),
            json!({"url": server.url("/go"), "attempts": 1}),
            json!({}),
        )
        .await
        .expect_err(to);
        assert_eq!(failed.code, ErrorCode::PermissionDenied, "{to}: {failed}");
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn redirects_within_limits_are_followed() {
    let server = leading(302, "/elsewhere").await;
    let told = request(&toolkit(&[&server]), json!({"url": server.url("/go")}), json!({})).await;
    assert_eq!(told, Ok(json!({"status": 200, "body": "there"})));

    let endless = Server::start(|_, count| redirect(302, &format!("/{count}"))).await;
    let failed = request(&toolkit(&[&endless]), json!({"url": endless.url("/")}), json!({})).await;
    assert!(failed.unwrap_err().message.contains("more than 5 times"));
    assert_eq!(endless.asked().len(), 6);
}

#[tokio::test]
async fn a_secret_header_is_sent_to_the_host_it_was_meant_for_and_to_no_other() {
    let other = Server::with(json!("there")).await;
    let first = leading(302, other.url("/")).await;
    let call = json!({
        "url": first.url("/go"),
        "headers": {"Authorization": "Bearer ${secret.TOKEN}", "X-Api-Key": "${secret.TOKEN}"},
    });
    request(&toolkit(&[&first, &other]), call, json!({}))
        .await
        .unwrap();
    assert!(first.asked()[0].header("x-api-key").starts_with("tok-"));
    let asked = other.asked();
    for name in ["authorization", "x-api-key", "idempotency-key"] {
        assert_eq!(asked[0].header(name), "", "{name}");
    }
}

#[tokio::test]
async fn the_method_and_the_body_follow_as_the_status_says() {
    let sent = async |method: &str, status: u16| -> Vec<(String, String)> {
        let server = leading(status, "/there").await;
        let call = json!({"method": method, "url": server.url("/go"), "body": {"a": 1}});
        request(&toolkit(&[&server]), call, json!({})).await.unwrap();
        server
            .asked()
            .into_iter()
            .map(|asked| (asked.method, asked.body))
            .collect()
    };
    let pair = |method: &str, body: &str| (method.to_owned(), body.to_owned());
    let body = r#"{"a":1}"#;
    for status in [301, 302, 303] {
        assert_eq!(
            sent("POST", status).await,
            [pair("POST", body), pair("GET", "")],
            "{status}"
        );
    }
    for status in [307, 308] {
        assert_eq!(
            sent("POST", status).await,
            [pair("POST", body), pair("POST", body)],
            "{status}"
        );
    }
    assert_eq!(sent("PUT", 302).await, [pair("PUT", body), pair("PUT", body)]);
}

#[tokio::test]
async fn a_body_is_not_carried_to_another_host() {
    let other = Server::with(Value::Null).await;
    let first = leading(307, other.url("/")).await;
    let call = json!({"method": "POST", "url": first.url("/go"), "body": {"key": "${secret.TOKEN}"}});
    let failed = request(&toolkit(&[&first, &other]), call, json!({}))
        .await
        .unwrap_err();
    assert!(failed.message.contains("another host"), "{failed}");
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn a_redirect_without_an_address_is_an_answer() {
    let server = Server::start(|_, _| Response::builder().status(302).body("gone".into()).unwrap()).await;
    let told = request(&toolkit(&[&server]), json!({"url": server.url("/")}), json!({})).await;
    assert_eq!(told, Ok(json!({"status": 302, "body": "gone"})));
}
