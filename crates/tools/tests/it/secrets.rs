//! A secret goes where its author sends it, and nowhere else; and no value can ask for one.

use serde_json::{Value, json};
use toolgate_kernel::agent::Missing;

use crate::server::{Asked, Server, TOKEN, json_answer, read_with, redirect, request, toolkit, typed};

fn call(server: &Server) -> Value {
    json!({
        "method": "POST",
        "url": server.url("/${secret.TOKEN}/x?k=${secret.TOKEN}"),
        "query": {"q": "${secret.TOKEN}", "given": "{{given}}"},
        "headers": {"Authorization": "Bearer ${secret.TOKEN}", "X-Given": "{{given}}"},
        "body": {"key": "${secret.TOKEN}", "given": "{{given}}"},
        "attempts": 1,
    })
}

/// Everything of a request, as a server that repeats it would say it.
fn repeated(asked: &Asked) -> Value {
    let headers: Vec<_> = asked
        .headers
        .iter()
        .map(|(name, value)| json!([name.as_str(), value.to_str().unwrap()]))
        .collect();
    let body: Value = serde_json::from_str(&asked.body).unwrap_or(Value::Null);
    json!({"target": asked.target, "headers": headers, "body": body, "raw": asked.body})
}

fn assert_hidden(told: &str) {
    for spelling in [TOKEN, "tok-4f1c%2F%2Bsecret", "tok-4f1c\\/+secret"] {
        assert!(!told.contains(spelling), "{told}");
    }
}

#[tokio::test]
async fn a_secret_is_sent_and_is_in_nothing_that_comes_back() {
    let server = Server::start(|asked, _| json_answer(200, &repeated(asked))).await;
    let told = request(&toolkit(&[&server]), call(&server), json!({"given": "x"}))
        .await
        .unwrap();
    let asked = &server.asked()[0];
    assert_eq!(
        asked.target,
        "/tok-4f1c%2F%2Bsecret/x?k=tok-4f1c%2F%2Bsecret&q=tok-4f1c%2F%2Bsecret&given=x"
    );
    assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
    assert_eq!(serde_json::from_str::<Value>(&asked.body).unwrap()["key"], TOKEN);
    assert_hidden(&told.to_string());
    assert!(told.to_string().contains("Bearer [secret TOKEN]"), "{told}");
}

#[tokio::test]
async fn a_secret_is_in_no_error() {
    let servers = [
        Server::start(|asked, _| json_answer(400, &repeated(asked))).await,
        Server::start(|asked, _| typed(500, "text/html", format!("<pre>{asked:?}</pre>"))).await,
        Server::start(|asked, _| redirect(302, &format!("http://{TOKEN}.local{}", asked.target))).await,
        Server::start(|asked, _| redirect(302, &format!("ftp://a{}", asked.target))).await,
        Server::start(|asked, _| redirect(307, &format!("http://10.0.0.1{}", asked.target))).await,
    ];
    for server in &servers {
        let failed = request(&toolkit(&[server]), call(server), json!({"given": "x"}))
            .await
            .unwrap_err();
        assert_hidden(&failed.message);
        assert_hidden(&format!("{failed:?}"));
    }
    let gone = Server::with(json!({})).await;
    let (toolkit, call) = (toolkit(&[&gone]), call(&gone));
    drop(gone);
    let failed = request(&toolkit, call, json!({"given": "x"})).await.unwrap_err();
    assert_hidden(&failed.message);
}

#[tokio::test]
async fn no_part_of_a_secret_is_left_where_an_error_is_cut() {
    for padding in 940..1_010 {
        let server = Server::start(move |_, _| {
            let start = "x".repeat(padding);
            typed(400, "text/plain", format!("{start}{TOKEN}"))
        })
        .await;
        let failed = request(&toolkit(&[&server]), call(&server), json!({"given": "x"})).await;
        let failed = failed.unwrap_err();
        assert!(!failed.message.contains(&TOKEN[..3]), "{failed}");
    }
}

#[tokio::test]
async fn a_value_that_names_a_secret_is_only_a_value() {
    for given in [
        "${secret.TOKEN}",
        "{{secret.TOKEN}}",
        "$${secret.TOKEN}",
        "${secret.{{name}}}",
        "TOKEN}",
    ] {
        let server = Server::with(json!({})).await;
        let execution = json!({
            "method": "POST",
            "url": server.url("/{{given}}?a={{given}}"),
            "query": {"b": "{{given}}", "c": "${secret.{{name}}}"},
            "headers": {"X-A": "{{given}}", "X-B": "${secret.{{given}}}", "X-C": "${secret.{{name}}}"},
            "body": {"a": "{{given}}", "b": "x {{given}}", "c": "${secret.{{name}}}", "d": "{{list}}", "e": "${{half}}"},
        });
        let input =
            json!({"given": given, "name": "TOKEN", "list": ["${secret.TOKEN}"], "half": "{secret.TOKEN}"});
        request(&toolkit(&[&server]), execution, input).await.unwrap();
        let asked = repeated(&server.asked()[0]).to_string();
        assert_hidden(&asked);
        let words = serde_json::to_string(given).unwrap();
        assert!(
            asked.contains(words.trim_matches('"')),
            "the value arrives as it was given: {asked}"
        );
    }
}

#[tokio::test]
async fn a_secret_that_there_is_none_of_is_told_by_name() {
    let server = Server::with(json!({})).await;
    let execution = json!({"url": server.url("/"), "headers": {"x-a": "${secret.MISSING}"}});
    let failed = request(&toolkit(&[&server]), execution, json!({}))
        .await
        .unwrap_err();
    assert!(failed.message.contains("\"MISSING\""), "{failed}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_literal_credential_is_refused_in_a_new_configuration_and_read_in_an_old_one() {
    let toolkit = toolkit(&[]);
    let config = |value: &str| {
        let headers = json!({"X-Api-Key": value, "Accept": "text/plain"});
        json!({"tools": [{"name": "t", "description": "A tool.", "executionType": "request",
            "execution": {"url": "https://api.example.com/", "headers": headers}}]})
    };
    let literal = config("abc-123");
    let refused = read_with(&toolkit, &literal, Missing::Refused).await.unwrap_err();
    let [problem] = refused.as_slice() else {
        panic!("{refused:?}");
    };
    assert_eq!(problem.pointer, "/tools/0/execution/headers");
    assert!(problem.message.contains("${secret.NAME}"), "{problem:?}");
    assert!(!problem.message.contains("abc-123"), "{problem:?}");
    let stored = read_with(&toolkit, &literal, Missing::LeftOut).await.unwrap();
    assert_eq!(stored.tools.len(), 1);
    for value in ["${secret.TOKEN}", "{{key}}"] {
        let read = read_with(&toolkit, &config(value), Missing::Refused).await;
        assert_eq!(read.unwrap().tools.len(), 1);
    }
}
