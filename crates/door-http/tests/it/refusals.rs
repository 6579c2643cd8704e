//! What wrong requests are told: one sentence that says what was seen, and what would be right.
//!
//! `refusals.txt` has the requests, each with its words below it. `REWRITE=1` writes the words anew.

use std::path::Path;

use http::Method;

use crate::world::World;

#[tokio::test]
async fn a_wrong_request_is_told_what_was_seen_and_what_would_be_right() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/refusals.txt");
    let expected = std::fs::read_to_string(&file).expect("the table");
    let world = World::new().await;
    let mut told = String::new();
    for request in expected.lines().filter(|line| !line.starts_with(' ')) {
        let mut parts = request.splitn(3, ' ');
        let [method, path, body] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let client = match body.is_empty() {
            true => world.backend(),
            false => world.backend().with("content-type", "application/json"),
        };
        let method: Method = method.parse().expect("a method");
        let answer = client.send(method, path, body.to_owned().into()).await;
        assert!(answer.status.is_client_error(), "{request}: {}", answer.status);
        let detail = answer.body["detail"].as_str().expect("words");
        assert!(
            detail.split_whitespace().count() >= 3,
            "{request}: {detail:?} says too little"
        );
        is_sentence(detail);
        for fault in answer.body["errors"].as_array().into_iter().flatten() {
            is_sentence(fault["message"].as_str().expect("words"));
        }
        told += &format!("{request}\n    {detail}\n");
    }
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&file, told).expect("the table is writable");
        return;
    }
    assert!(told == expected, "told:\n{told}\nexpected:\n{expected}");
}

/// Holds words to what every refusal keeps.
fn is_sentence(words: &str) {
    assert!(!words.contains("see errors"), "{words:?} says nothing by itself");
    for parser in [
        "invalid digit",
        "was not `true`",
        "cannot parse",
        "ParseInt",
        "invalid type",
    ] {
        assert!(!words.contains(parser), "{words:?} has a parser's words");
    }
    if let Some((_, list)) = words.split_once("one of ") {
        assert!(
            list.contains([',', '"']) || list.contains(" or "),
            "{words:?} has a bare list"
        );
    }
}

#[tokio::test]
async fn a_method_that_a_route_has_not_is_answered_with_those_that_it_has() {
    let world = World::new().await;
    let told = world.backend().delete("/v1/runs").await;
    assert_eq!(told.header("allow"), "POST,GET,HEAD");
    assert_eq!(told.header("content-type"), "application/problem+json");
    assert!(!told.header("x-request-id").is_empty());
    let told = told.expect(405);
    assert_eq!(told["code"], "METHOD_NOT_ALLOWED");
    assert_eq!(
        told["detail"],
        "DELETE is not possible here, expected POST, GET or HEAD"
    );
}
