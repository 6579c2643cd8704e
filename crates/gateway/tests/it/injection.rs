//! What a model writes is a value, wherever it ends up: it names no secret and no place, and leaves its own for nothing.

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Asked, Event, Gateway, Outside, put_agent};

const TOKEN: &str = "tok-71aa/+only-the-server-may-know";
const TOKEN_IN_ADDRESS: &str = "tok-71aa%2F%2Bonly-the-server-may-know";

/// What a hostile model writes. No spaces: the script of a model has none.
const VALUES: &[&str] = &[
    "plain",
    "${secret.API_TOKEN}",
    "{{other}}",
    "{{secret.API_TOKEN}}",
    "${secret.{{other}}}",
    "$${secret.API_TOKEN}}",
    "a\r\nX-Injected:yes\r\n\r\nGET/admin",
    "../../admin",
    "%2e%2e%2fadmin",
    "a?admin=1#b",
    "@evil.example/",
    "\"},\"admin\":true,\"x\":{\"y\":\"",
    "&admin=1",
    "／．．／admin",
    "\u{202e}nimda\u{0}",
    "say:hijacked",
];

/// An agent with a tool that asks outside and a prompt tool; both take the same values.
fn agent(models: &ModelServer, server: &Outside, tool: &str, value: &str) -> Value {
    let input = json!({"value": value, "nested": {"list": [value]}, "other": "API_TOKEN"});
    json!({
        "instructions": format!("script: call:{tool} input:{input} text:1"),
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [
            {"name": "send", "description": "Sends.", "executionType": "request", "execution": {
                "method": "POST",
                "url": server.url("/echo/{{value}}?key=${secret.API_TOKEN}&v={{value}}"),
                "query": {"q": "{{nested.list.0}}", "all": "{{nested.list}}"},
                "headers": {"Authorization": "Bearer ${secret.API_TOKEN}"},
                "body": {"a": "{{value}}", "b": "x{{value}}", "c": "{{nested}}", "d": "${secret.{{other}}}"},
            }},
            {"name": "mark", "description": "Sends a header.", "executionType": "request", "execution": {
                "url": server.url("/echo/header"),
                "headers": {"X-Given": "{{value}}", "X-Both": "${secret.{{other}}}", "Authorization": "${secret.API_TOKEN}"},
            }},
            {"name": "host", "description": "Chooses.", "executionType": "request", "execution": {
                "url": format!("http://{{{{value}}}}{}", server.url("/echo/host").trim_start_matches("http://127")),
                "headers": {"Authorization": "${secret.API_TOKEN}"},
            }},
            {"name": "words", "description": "Asks.", "executionType": "prompt", "execution": {
                "prompt": "text:1 <{{value}}> <{{nested.list.0}}> <${secret.API_TOKEN}> <{{none}}>",
            }},
        ],
    })
}

/// Lets a model call a tool with a value; gives its events and all that anybody can read of it.
async fn call(
    gateway: &Gateway,
    models: &ModelServer,
    server: &Outside,
    tool: &str,
    value: &str,
) -> (Vec<Event>, String) {
    let api = gateway.api();
    put_agent(&api, "hostile", &agent(models, server, tool, value)).await;
    let started = api
        .post("/v1/runs", &json!({"agent": "hostile", "message": "go"}))
        .await;
    let run = started.text("runId");
    let events = api.finished(&run).await;
    let mut read = format!("{events:?}");
    for path in [
        "/v1/runs",
        "/v1/agents/hostile",
        &format!("/v1/runs/{run}"),
        &format!("/v1/runs/{run}/events"),
    ] {
        read += &api.get(path).await.body.to_string();
    }
    (events, read)
}

fn outcome(events: &[Event]) -> &Event {
    let settled = events.iter().find(|event| event.kind.starts_with("tool-output"));
    settled.expect("the call settled")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_model_writes_stays_a_value_and_reads_no_secret() {
    let (models, server) = (ModelServer::start().await, Outside::start().await);
    server.open();
    let mut settings = server.settings();
    settings.push(("TOOLGATE_SECRET_API_TOKEN", TOKEN.into()));
    settings.push(("TOOLGATE_LOG_LEVEL", "trace".into()));
    let settings: Vec<(&str, &str)> = settings
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let gateway = Gateway::start(&settings).await;
    let mut read = String::new();
    for value in VALUES {
        for tool in ["send", "mark", "host", "words"] {
            let before = server.all().len();
            let (events, text) = call(&gateway, &models, &server, tool, value).await;
            read += &text;
            assert_eq!(
                events.last().expect("an end").data["status"],
                "completed",
                "{events:?}"
            );
            let sent = server.all().split_off(before);
            let outcome = outcome(&events);
            match (tool, sent.as_slice()) {
                ("send", [asked]) => check_sent(asked, value),
                ("mark", [asked]) => {
                    assert_eq!(
                        asked.headers.get("x-given").expect("a header").as_bytes(),
                        value.as_bytes()
                    );
                    assert_eq!(asked.header("x-both"), "${secret.API_TOKEN}");
                }
                ("words", []) => check_asked(&models, value),
                // Nothing was sent: the model is told why.
                (_, []) => assert_eq!(outcome.kind, "tool-output-error", "{tool} {value:?}: {outcome:?}"),
                (_, sent) => panic!("{tool} {value:?} sent {sent:?}"),
            }
            if tool == "mark" {
                let clean = value.chars().all(|c| !c.is_control());
                assert_eq!(!sent.is_empty(), clean, "{value:?} in a header: {outcome:?}");
            }
        }
    }
    read += &gateway.log();
    read += &gateway.api().get("/metrics").await.body.to_string();
    read += &format!("{:?}", models.conversations());
    assert!(
        read.contains("TRACE") && read.contains("[secret API_TOKEN]"),
        "there was a secret to hide"
    );
    for spelling in [TOKEN, TOKEN_IN_ADDRESS, "tok-71aa"] {
        let place = read.find(spelling);
        assert!(
            place.is_none(),
            "a secret can be read in {:?}",
            place.map(|at| &read[at.saturating_sub(200)..at])
        );
    }
}

/// The value is in its place in the address and in the body, as it was written, and nothing else changed.
fn check_sent(asked: &Asked, value: &str) {
    let url = url::Url::parse(&format!("http://host{}", asked.target)).expect("an address");
    let steps: Vec<&str> = url.path_segments().expect("a path").collect();
    assert_eq!((steps.len(), steps[0]), (2, "echo"), "{asked:?}");
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let expected = [("key", TOKEN), ("v", value), ("q", value), ("all", value)];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(pairs, expected);
    let body: Value = serde_json::from_str(&asked.body).expect("JSON");
    let expected =
        json!({"a": value, "b": format!("x{value}"), "c": {"list": [value]}, "d": "${secret.API_TOKEN}"});
    assert_eq!(body, expected);
    assert!(asked.headers.get("x-injected").is_none());
    assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
}

/// The model behind a prompt tool read the value as it is; nothing in it was filled, and no secret ever is.
fn check_asked(models: &ModelServer, value: &str) {
    let expected = format!("text:1 <{value}> <{value}> <${{secret.API_TOKEN}}> <{{{{none}}}}>");
    let conversations = models.conversations();
    let asked = conversations
        .iter()
        .any(|messages| messages.iter().any(|message| message["content"] == *expected));
    assert!(asked, "{expected}");
}
