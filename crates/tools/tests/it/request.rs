//! `request`: what is sent, when it is sent again, and what the model is told.

use std::sync::OnceLock;

use axum::body::Body;
use axum::response::Response;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_engine::sources::Sources;
use toolgate_engine::store::EntityRecord;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::EntityId;
use toolgate_kernel::time::Time;

use crate::server::{Asked, Server, call, context, json_answer, parse, read, request, toolkit, typed};

/// What a server at the address `{server}` in `execution` was asked, once.
async fn sent(execution: Value, input: Value) -> Result<Asked, CallFailure> {
    let server = Server::with(json!({})).await;
    let execution = at(execution, &server);
    request(&toolkit(&[&server]), execution, input).await?;
    let mut asked = server.asked();
    assert_eq!(asked.len(), 1);
    Ok(asked.remove(0))
}

fn at(mut execution: Value, server: &Server) -> Value {
    let url = execution["url"]
        .as_str()
        .expect("a URL")
        .replace("{server}", &server.address);
    execution["url"] = url.into();
    execution
}

async fn target(url: &str, input: Value) -> Result<String, CallFailure> {
    Ok(sent(json!({ "url": url }), input).await?.target)
}

#[tokio::test]
async fn values_stand_in_their_places_in_the_address() {
    let input = json!({"id": "a/b?c#d", "q": "x&y=z {{id}}", "n": 5, "deep": {"list": ["é"]}});
    let url = "http://{server}/items/{{id}}/{{n}}/{{deep.list.0}}?q={{q}}&fixed=1#{{n}}";
    let expected = "/items/a%2Fb%3Fc%23d/5/%C3%A9?q=x%26y%3Dz%20%7B%7Bid%7D%7D&fixed=1";
    assert_eq!(target(url, input).await.as_deref(), Ok(expected));
}

#[tokio::test]
async fn a_value_cannot_leave_its_place_in_the_address() {
    for id in ["..", ".", "../admin", "a/../../b", "..\\x", "%2e%2e/..", ""] {
        let told = target("http://{server}/items/{{id}}/show", json!({ "id": id })).await;
        let failed = told.expect_err(id);
        assert_eq!(failed.code, ErrorCode::ExecutionFailed, "{id:?}: {failed}");
    }
    assert!(
        target("http://{server}/{{a}}{{b}}/x", json!({"a": ".", "b": "."}))
            .await
            .is_err()
    );
    // What was encoded already is encoded again, and so stays what it is.
    let told = target("http://{server}/items/{{id}}", json!({"id": "%2e%2e"})).await;
    assert_eq!(told.as_deref(), Ok("/items/%252e%252e"));
}

#[tokio::test]
async fn a_value_cannot_choose_the_host() {
    let server = Server::with(json!({})).await;
    let toolkit = toolkit(&[&server]);
    let url = "https://{{x}}.example.com/";
    for value in ["evil.example/", "evil.example", "a@b", "a:80", "a#", "", "a\\b"] {
        let failed = request(&toolkit, json!({ "url": url }), json!({ "x": value }))
            .await
            .unwrap_err();
        assert!(failed.message.contains("in front of a dot"), "{value}: {failed}");
    }
}

#[tokio::test]
async fn the_query_is_encoded_and_what_is_not_given_is_left_out() {
    let query = json!({"q": "{{q}}", "tags": "{{tags}}", "page": "{{page}}", "none": "{{none}}", "v": 2, "mix": "a {{q}}"});
    let input = json!({"q": "a&b=c", "tags": ["x", "y z"], "none": null});
    let asked = sent(json!({"url": "http://{server}/?k=1", "query": query}), input)
        .await
        .unwrap();
    assert_eq!(
        asked.target,
        "/?k=1&q=a%26b%3Dc&tags=x&tags=y+z&v=2&mix=a+a%26b%3Dc"
    );
}

#[tokio::test]
async fn a_place_in_the_middle_that_has_no_value_is_told() {
    for execution in [
        json!({"url": "http://{server}/{{id}}"}),
        json!({"url": "http://{server}/", "headers": {"x-a": "id {{id}}"}}),
        json!({"url": "http://{server}/", "method": "POST", "body": {"a": "id {{id}}"}}),
    ] {
        let failed = sent(execution, json!({})).await.unwrap_err();
        assert!(failed.message.contains("{{id}}"), "{failed}");
    }
}

#[tokio::test]
async fn headers_carry_values_and_the_call_and_no_line_breaks() {
    let execution =
        json!({"url": "http://{server}/", "headers": {"X-User": "u {{user}}", "X-None": "{{none}}"}});
    let asked = sent(execution.clone(), json!({"user": "ada"})).await.unwrap();
    assert_eq!(asked.header("x-user"), "u ada");
    assert!(asked.headers.get("x-none").is_none());
    assert_eq!(asked.header("idempotency-key"), call().to_string());
    for user in ["a\r\nx-evil: 1", "a\nb", "a\u{0}b"] {
        let failed = sent(execution.clone(), json!({ "user": user }))
            .await
            .unwrap_err();
        assert!(failed.message.contains("x-user"), "{failed}");
    }
}

#[tokio::test]
async fn the_body_is_json_whose_places_become_values() {
    let body = json!({
        "whole": "{{item}}", "n": "{{n}}", "text": "n={{n}}", "gone": "{{none}}", "null": "{{nil}}",
        "list": ["{{n}}", "{{none}}", {"deep": "{{item.name}}"}], "fixed": [1, true, null],
    });
    let input = json!({"item": {"name": "a\"b"}, "n": 5, "nil": null});
    let asked = sent(
        json!({"method": "POST", "url": "http://{server}/", "body": body}),
        input,
    )
    .await
    .unwrap();
    assert_eq!(asked.header("content-type"), "application/json");
    let expected = json!({
        "whole": {"name": "a\"b"}, "n": 5, "text": "n=5", "null": null,
        "list": [5, {"deep": "a\"b"}], "fixed": [1, true, null],
    });
    assert_eq!(serde_json::from_str::<Value>(&asked.body).unwrap(), expected);
}

#[tokio::test]
async fn a_value_cannot_write_the_rest_of_a_body() {
    let sent = async |kind: &str, body: &str, x: &str| {
        let execution = json!({
            "method": "POST", "url": "http://{server}/", "headers": {"content-type": kind}, "body": body,
        });
        sent(execution, json!({ "x": x })).await.map(|asked| asked.body)
    };
    let told = sent("text/xml", "<a b='{{x}}'>{{x}}</a>", "'/><c>&").await;
    let expected = "<a b='&#39;/&gt;&lt;c&gt;&amp;'>&#39;/&gt;&lt;c&gt;&amp;</a>";
    assert_eq!(told.as_deref(), Ok(expected));
    let told = sent("application/json", r#""hi {{x}}""#, r#"", "a"#).await;
    assert_eq!(told.as_deref(), Ok(r#""hi \", \"a""#));
    let execution = json!({"method": "POST", "url": "http://{server}/", "body": "<a>{{x}}</a>"});
    let told = self::sent(execution, json!({"x": "</a><b/>"}))
        .await
        .unwrap()
        .body;
    assert_eq!(told, "<a>&lt;/a&gt;&lt;b/&gt;</a>");
    let failed = sent(
        "application/graphql",
        "{ user(id: {{x}}) { name } }",
        "1) { secret } }",
    )
    .await;
    assert!(failed.unwrap_err().message.contains("could write the rest"));
    let told = sent("application/graphql", "{ users { name } }", "").await;
    assert_eq!(told.as_deref(), Ok("{ users { name } }"));
}

#[tokio::test]
async fn a_body_of_text_or_a_form_is_sent_as_such() {
    let body = async |kind: Option<&str>, body: Value, input: Value| {
        let mut execution = json!({"method": "POST", "url": "http://{server}/", "body": body});
        if let Some(kind) = kind {
            execution["headers"] = json!({"content-type": kind});
        }
        sent(execution, input)
            .await
            .map(|asked| (asked.header("content-type").to_owned(), asked.body))
    };
    let form = "application/x-www-form-urlencoded";
    let told = |kind: &str, body: &str| Ok((kind.to_owned(), body.to_owned()));
    let input = json!({"a": "1&b=2", "q": "\",\"admin\":true,\"x\":\""});
    assert_eq!(
        body(Some(form), json!({"a": "{{a}}"}), input.clone()).await,
        told(form, "a=1%26b%3D2")
    );
    assert_eq!(
        body(Some(form), json!("a={{a}}&c=3"), input.clone()).await,
        told(form, "a=1%26b%3D2&c=3")
    );
    assert_eq!(
        body(None, json!("hi {{a}}"), input.clone()).await,
        told("text/plain; charset=utf-8", "hi 1&b=2")
    );
    assert_eq!(
        body(None, json!("{{a}}"), input.clone()).await,
        told("application/json", "\"1&b=2\"")
    );
    let (_, sent) = body(None, json!("{\"a\": \"{{q}}\"}"), input.clone())
        .await
        .unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&sent).unwrap(),
        json!({"a": input["q"]})
    );
    assert!(
        body(Some("application/json"), json!("{\"n\": {{n}}}"), json!({"n": 1}))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn the_result_is_the_answer_or_the_part_of_it_that_is_wanted() {
    let server = Server::with(json!({"data": [{"name": "x"}], "a/b": 1})).await;
    let toolkit = toolkit(&[&server]);
    let told = async |result: Value| {
        request(
            &toolkit,
            json!({"url": server.url("/"), "result": result}),
            json!({}),
        )
        .await
    };
    let whole = json!({"status": 200, "body": {"data": [{"name": "x"}], "a/b": 1}});
    assert_eq!(told(Value::Null).await, Ok(whole));
    assert_eq!(told(json!("/data/0/name")).await, Ok(json!("x")));
    assert_eq!(told(json!("/a~1b")).await, Ok(json!(1)));
    let failed = told(json!("/data/1")).await.unwrap_err();
    assert_eq!(failed.message, "the server's answer has nothing at /data/1");
}

#[tokio::test]
async fn an_error_of_the_server_is_told_with_its_first_words() {
    let server = Server::start(|asked, _| match asked.target.as_str() {
        "/long" => typed(404, "text/plain", "x".repeat(5_000)),
        "/none" => typed(500, "text/plain", ""),
        _ => json_answer(422, &json!({"reason": "no such order"})),
    })
    .await;
    let toolkit = toolkit(&[&server]);
    let told = async |path| {
        let failed = request(&toolkit, json!({"url": server.url(path)}), json!({}))
            .await
            .unwrap_err();
        assert_eq!(failed.code, ErrorCode::ExecutionFailed);
        failed.message
    };
    let expected = r#"the server answered 422 Unprocessable Entity: {"reason":"no such order"}"#;
    assert_eq!(told("/").await, expected);
    assert_eq!(
        told("/long").await.len(),
        "the server answered 404 Not Found: ".len() + 1_000
    );
    assert_eq!(
        told("/none").await,
        "the server answered 500 Internal Server Error"
    );
}

/// How often a server that always fails so is asked.
async fn tries(method: &str, answer: impl Fn() -> Response + Send + Sync + 'static) -> usize {
    let server = Server::start(move |_, _| answer()).await;
    let call = json!({"method": method, "url": server.url("/"), "attempts": 3});
    request(&toolkit(&[&server]), call, json!({}))
        .await
        .expect_err("it always fails");
    let asked = server.asked();
    assert!(
        asked
            .windows(2)
            .all(|two| two[0].header("idempotency-key") == two[1].header("idempotency-key"))
    );
    asked.len()
}

fn failing(status: u16, after: &str) -> impl Fn() -> Response + Send + Sync + 'static {
    let after = after.to_owned();
    move || {
        let answer = Response::builder()
            .status(status)
            .header("retry-after", after.as_str());
        answer.body(Body::empty()).unwrap()
    }
}

#[tokio::test]
async fn a_request_is_sent_again_where_that_does_no_harm() {
    for (method, status, expected) in [
        ("GET", 503, 3),
        ("PUT", 502, 3),
        ("DELETE", 504, 3),
        ("POST", 503, 1),
        ("PATCH", 502, 1),
        ("POST", 429, 3),
        ("GET", 429, 3),
        ("GET", 500, 1),
        ("GET", 404, 1),
    ] {
        assert_eq!(
            tries(method, failing(status, "0")).await,
            expected,
            "{method} {status}"
        );
    }
}

#[tokio::test]
async fn who_asks_for_more_patience_than_there_is_is_not_asked_again() {
    assert_eq!(tries("GET", failing(503, "3600")).await, 1);
    // Moments are read by the server's own clock.
    let dated = |after: &'static str| {
        move || {
            let answer = Response::builder()
                .status(503)
                .header("date", "Sun, 06 Nov 1994 08:49:37 GMT");
            answer.header("retry-after", after).body(Body::empty()).unwrap()
        }
    };
    assert_eq!(tries("GET", dated("Sun, 06 Nov 1994 09:49:37 GMT")).await, 1);
    assert_eq!(tries("GET", dated("Sun, 06 Nov 1994 08:49:37 GMT")).await, 3);
}

#[tokio::test]
async fn a_second_try_that_works_is_the_answer() {
    let server = Server::start(|_, before| match before {
        0 => failing(503, "0")(),
        _ => json_answer(200, &json!("done")),
    })
    .await;
    let told = request(&toolkit(&[&server]), json!({"url": server.url("/")}), json!({})).await;
    assert_eq!(told, Ok(json!({"status": 200, "body": "done"})));
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_refused_also_when_it_is_packed() {
    let server = Server::start(|asked, _| match asked.target.as_str() {
        "/fits" => typed(200, "text/plain", "x".repeat(1_000)),
        _ => typed(200, "text/plain", "x".repeat(1_001)),
    })
    .await;
    let toolkit = toolkit(&[&server]);
    let told = async |path| {
        request(
            &toolkit,
            json!({"url": server.url(path), "maxBytes": 1_000}),
            json!({}),
        )
        .await
    };
    assert!(told("/fits").await.is_ok());
    assert_eq!(
        told("/long").await.unwrap_err().message,
        "its answer is longer than 1000 bytes"
    );
}

#[tokio::test]
async fn nobody_there_is_unavailable_and_inside_is_denied() {
    let server = Server::with(json!({})).await;
    let gone = Server::with(json!({})).await;
    let toolkit = toolkit(&[&gone]);
    let address = gone.url("/");
    drop(gone);
    let failed = request(&toolkit, json!({"url": address, "attempts": 1}), json!({}))
        .await
        .unwrap_err();
    assert_eq!(failed.code, ErrorCode::Unavailable, "{failed}");
    let failed = request(&toolkit, json!({"url": server.url("/")}), json!({}))
        .await
        .unwrap_err();
    assert_eq!(failed.code, ErrorCode::PermissionDenied, "{failed}");
    assert!(server.asked().is_empty());
}

/// What an agent's author may write in `execution`, at random.
fn odd_execution() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![
            Just("https://{{x}}.example.com/{{y}}".to_owned()),
            Just("http://{{x}}".to_owned()),
            Just("POST".to_owned()),
            Just("/data/0".to_owned()),
            ".{0,20}",
        ]
        .prop_map(Value::from),
    ];
    let member = prop_oneof![
        Just("url".to_owned()),
        Just("method".to_owned()),
        Just("headers".to_owned()),
        Just("query".to_owned()),
        Just("body".to_owned()),
        Just("result".to_owned()),
        Just("attempts".to_owned()),
        Just("maxBytes".to_owned()),
        Just("baseUrl".to_owned()),
        Just("apiKey".to_owned()),
        Just("model".to_owned()),
        ".{0,8}",
    ];
    scalar.prop_recursive(3, 16, 4, move |inner| {
        let map = prop::collection::vec((member.clone(), inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::Array),
            map.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

static SOURCES: OnceLock<Sources> = OnceLock::new();

proptest! {
    #[test]
    fn any_configuration_is_read_again_as_it_was_or_refused(execution in odd_execution()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let sources = SOURCES.get_or_init(|| toolkit(&[]));
        for kind in ["request", "image-generator"] {
            let config = json!({"tools": [
                {"name": "t", "description": "A tool.", "executionType": kind, "execution": execution},
            ]});
            let read = runtime.block_on(read(sources, &config));
            match read {
                Ok(agent) => prop_assert_eq!(agent.tools.len(), 1),
                Err(problems) => {
                    prop_assert!(!problems.is_empty());
                    for problem in problems {
                        prop_assert!(problem.pointer.starts_with("/tools/0"), "{:?}", problem);
                    }
                }
            }
        }
    }
}

/// What a server is asked in a call for this person, with what the model says.
async fn sent_for(
    person: Option<EntityRecord>,
    execution: Value,
    input: Value,
) -> Result<Asked, CallFailure> {
    let server = Server::with(json!({})).await;
    let toolkit = toolkit(&[&server]);
    let tool = parse(&toolkit, "request", at(execution, &server)).await;
    let context = CallContext {
        profile: person,
        ..context()
    };
    toolkit.run(&tool, &input.into(), &context).await?;
    Ok(server.asked().remove(0))
}

fn zoe() -> EntityRecord {
    EntityRecord {
        id: EntityId::from_bytes([9; 16]),
        project: context().project,
        subject: "zoe@example.com".into(),
        kind: "person".into(),
        name: None,
        metadata: Some(json!({"customer": 42, "region": "north/east"}).into()),
        grants: Vec::new(),
        created: Time(0),
    }
}

#[tokio::test]
async fn the_gateway_says_for_whom_and_where_a_request_is_and_the_model_cannot() {
    let execution = json!({
        "method": "POST",
        "url": "http://{server}/users/{{context.user.subject}}/{{context.user.metadata.region}}",
        "headers": {"X-User": "{{context.user.subject}}", "X-Note": "{{context.note}}"},
        "body": {"customer": "{{context.user.metadata.customer}}", "space": "{{context.space.id}}"},
    });
    let lies = json!({"context": {"user": {"subject": "root", "metadata": {"customer": 1}}, "space": {"id": "x"}, "note": "hi"}});
    for (input, note) in [(json!({}), ""), (lies.clone(), "hi")] {
        let asked = sent_for(Some(zoe()), execution.clone(), input).await.unwrap();
        assert_eq!(asked.target, "/users/zoe%40example.com/north%2Feast");
        assert_eq!(
            (asked.header("x-user"), asked.header("x-note")),
            ("zoe@example.com", note)
        );
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        assert_eq!(body, json!({"customer": 42, "space": context().space}));
    }
    // A request without its user is not sent, whatever the model says.
    for (person, place) in [
        (None, "context.user.subject"),
        (Some(zoe()), "context.user.metadata.none"),
    ] {
        let execution = json!({"url": "http://{server}/", "headers": {"X-User": format!("{{{{{place}}}}}")}});
        let refused = sent_for(person.clone(), execution, lies.clone())
            .await
            .unwrap_err();
        assert!(refused.message.contains(place), "{refused}");
        let execution = json!({"method": "POST", "url": "http://{server}/", "body": {"user": format!("{{{{ {place} }}}}")}});
        assert!(sent_for(person, execution, lies.clone()).await.is_err());
    }
}

#[tokio::test]
async fn a_refusal_of_the_guard_names_the_setting_that_would_allow_it() {
    let server = Server::with(json!({})).await;
    let refused = request(&toolkit(&[]), json!({"url": server.url("/")}), json!({}))
        .await
        .unwrap_err();
    let allowed = format!(
        "\"{}\" in the setting outside.allow would allow it",
        server.address
    );
    assert!(refused.message.contains(&allowed), "{refused}");
}
