//! What a model is given of a conversation: as much as its context window holds, the date, and who speaks.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Event, Gateway, gateway, put_agent, tool, worker};

/// Bytes that count as one token.
const BYTES_PER_TOKEN: usize = 3;

fn agent(models: &ModelServer, context: Value) -> Value {
    json!({
        "instructions": "Be brief. script: say:fine",
        "access": "public",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "context": context,
    })
}

async fn new_space(api: &Api, agent: &str) -> String {
    api.post("/v1/spaces", &json!({ "agent": agent }))
        .await
        .text("id")
}

/// Posts a message and waits for the end of its run, which must be a good one.
async fn say(api: &Api, space: &str, text: &str) -> Vec<Event> {
    let posted = api
        .post(&format!("/v1/spaces/{space}/messages"), &json!({ "text": text }))
        .await;
    let log = api.finished(&posted.text("runId")).await;
    let end = log.last().unwrap();
    assert_eq!(end.data["status"], "completed", "{end:?}");
    log
}

/// A message of 300 bytes, known by its number.
fn numbered(number: usize) -> String {
    format!("{:x<300}", format!("message {number} "))
}

fn content(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// The numbers of the messages that a request has, oldest first.
fn numbers(request: &[Value]) -> Vec<usize> {
    let users = request.iter().filter(|message| message["role"] == "user");
    let number = |message| {
        content(message)
            .strip_prefix("message ")?
            .split(' ')
            .next()?
            .parse()
            .ok()
    };
    users.filter_map(number).collect()
}

fn tokens(request: &[Value]) -> usize {
    request
        .iter()
        .map(|message| content(message).len() / BYTES_PER_TOKEN)
        .sum()
}

fn last(models: &ModelServer) -> Arc<Vec<Value>> {
    models.conversations().last().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_beyond_the_window_goes_on_and_moves_in_strides() {
    const MAX: usize = 1_500;
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    put_agent(
        &api,
        "brief",
        &agent(&models, json!({"maxTokens": MAX, "keep": 3})),
    )
    .await;
    let space = new_space(&api, "brief").await;
    let (mut cuts, mut before) = (0, vec![Value::Null]);
    for number in 1..=40 {
        if number == 20 {
            gateway.crash().await;
        }
        let log = say(&api, &space, &numbered(number)).await;
        let request = last(&models);
        assert!(tokens(&request) <= MAX, "{number}: {} tokens", tokens(&request));
        let kept = numbers(&request);
        assert_eq!(kept.last(), Some(&number));
        assert!(kept.windows(2).all(|pair| pair[1] == pair[0] + 1), "{kept:?}");
        match log.iter().any(|event| event.kind == "context-cut") {
            true => {
                cuts += 1;
                assert_eq!(kept.len(), 4, "the newest three, and the new one: {kept:?}");
            }
            // The date stands in the first message: a day that ends meanwhile is another beginning.
            false => assert_eq!(request[1..before.len()], before[1..], "{number}"),
        }
        before = request.to_vec();
    }
    assert!((2..=5).contains(&cuts), "{cuts} cuts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_the_vendor_finds_too_long_is_sent_again_with_half_of_it() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    put_agent(&api, "plain", &agent(&models, json!({}))).await;
    let space = new_space(&api, "plain").await;
    for number in 1..=20 {
        say(&api, &space, &numbered(number)).await;
    }
    assert_eq!(numbers(&last(&models)).len(), 20);
    models.set_window(5_000);
    let log = say(&api, &space, &numbered(21)).await;
    assert_eq!(models.refused(), 1, "one retry is enough");
    assert!(log.iter().any(|event| event.kind == "step-retry"));
    let kept = numbers(&last(&models));
    assert!(
        (3..=14).contains(&kept.len()) && kept.last() == Some(&21),
        "{kept:?}"
    );
    // What was left out stays so: nothing is refused again.
    say(&api, &space, "hello").await;
    assert_eq!(models.refused(), 1);
    // Others read what was said, not what the model is given.
    let user = gateway.api().as_user("ada");
    let own = user
        .post("/v1/spaces", &json!({"agent": "plain"}))
        .await
        .text("id");
    for number in 1..=18 {
        say(&user, &own, &numbered(number)).await;
    }
    assert!(models.refused() > 1);
    let seen = user.list(&format!("/v1/spaces/{own}/events")).await;
    assert!(seen.iter().all(|event| event.kind != "context-cut"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_too_long_by_itself_ends_its_run_and_no_other() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    put_agent(&api, "plain", &agent(&models, json!({}))).await;
    let space = new_space(&api, "plain").await;
    models.set_window(5_000);
    let path = format!("/v1/spaces/{space}/messages");
    let posted = api.post(&path, &json!({"text": "x".repeat(6_000)})).await;
    let log = api.finished(&posted.text("runId")).await;
    let end = log.last().unwrap();
    assert_eq!(end.data["reason"], "model-error", "{end:?}");
    assert!(end.text("error").contains("maximum context length"), "{end:?}");
    say(&api, &space, "hello").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_results_are_shortened_before_anything_is_left_out() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    let mut config = worker(&models);
    let pages = json!({"mode": "static", "output": {"text": "long ".repeat(4_000)}});
    config["tools"] = json!([tool("read", pages, json!({}))]);
    config["context"] = json!({"maxTokens": 4_000});
    put_agent(&api, "reader", &config).await;
    let space = new_space(&api, "reader").await;
    say(&api, &space, "the first message").await;
    say(&api, &space, "call:read say:done").await;
    let request = last(&models);
    let result = request.iter().find(|message| message["role"] == "tool").unwrap();
    let shown = content(result);
    assert!(
        shown.len() <= 2_000 && shown.starts_with(r#"{"text":"long long"#),
        "{shown}"
    );
    assert!(shown.ends_with(" more bytes left out]"), "{shown}");
    assert_eq!(content(&request[1]), "the first message");
    // The next run begins with the same bytes.
    say(&api, &space, "and now?").await;
    assert_eq!(last(&models)[1..request.len()], request[1..]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_stands_for_what_is_left_out() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    let context = json!({"maxTokens": 1_000, "keep": 1, "compact": "summary"});
    put_agent(&api, "keeper", &agent(&models, context)).await;
    let space = new_space(&api, "keeper").await;
    // The model that sums up follows the script in what it reads.
    let mut cut = None;
    for number in 1..=12 {
        let words = format!("{} say:gist-{number} ", numbered(number));
        let log = say(&api, &space, &words).await;
        cut = log.into_iter().find(|event| event.kind == "context-cut").or(cut);
        if cut.is_some() {
            break;
        }
    }
    let cut = cut.expect("twelve messages do not fit");
    let summary = cut.text("summary").to_owned();
    assert!(summary.starts_with("gist-"), "{summary}");
    assert!(cut.data["usage"]["inputTokens"].is_u64(), "{cut:?}");
    let request = last(&models);
    assert!(content(&request[1]).ends_with(&summary), "{:?}", request[1]);
    assert_eq!(numbers(&request[2..]).len(), 2, "one is kept, and the new one");
    gateway.crash().await;
    say(&api, &space, "and now?").await;
    assert_eq!(
        last(&models)[1..request.len()],
        request[1..],
        "the same summary after a crash"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_step_of_a_run_begins_with_what_the_step_before_was_told() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let started = gateway.api().start("tools:4 call:clock call:echo say:done").await;
    gateway.api().finished(started["runId"].as_str().unwrap()).await;
    let requests = models.conversations();
    assert_eq!(requests.len(), 5);
    for pair in requests.windows(2) {
        assert_eq!(pair[1][..pair[0].len()], pair[0][..]);
    }
}

/// The system prompt of the last request.
fn system(models: &ModelServer) -> String {
    let request = last(models);
    assert_eq!(request[0]["role"], "system");
    content(&request[0]).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_is_told_the_date_in_the_time_zone_that_is_known() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    put_agent(&api, "plain", &agent(&models, json!({}))).await;
    put_agent(&api, "roman", &agent(&models, json!({"timeZone": "Europe/Rome"}))).await;
    let space = new_space(&api, "plain").await;
    say(&api, &space, "hi").await;
    let told = system(&models);
    let date = told
        .strip_prefix("Be brief. script: say:fine\n\nToday is ")
        .unwrap();
    let days = ["Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur", "Sun"];
    let rest = days
        .iter()
        .find_map(|day| date.strip_prefix(&format!("{day}day, 20")));
    assert!(rest.is_some_and(|rest| rest.ends_with(" (UTC).")), "{told}");

    let space = new_space(&api, "roman").await;
    say(&api, &space, "hi").await;
    assert!(
        system(&models).contains("(time zone Europe/Rome, UTC+0"),
        "the agent's"
    );
    let metadata = json!({"agent": "roman", "metadata": {"timeZone": "Asia/Tokyo"}});
    let space = api.post("/v1/spaces", &metadata).await.text("id");
    say(&api, &space, "hi").await;
    assert!(
        system(&models).contains("(time zone Asia/Tokyo, UTC+09:00)"),
        "the space's"
    );
    let ada = api.as_member_of("ada", &json!({"zoneinfo": "America/Sao_Paulo"}));
    let space = ada.post("/v1/spaces", &metadata).await.text("id");
    say(&ada, &space, "hi").await;
    assert!(
        system(&models).contains("(time zone America/Sao_Paulo, UTC-03:00)"),
        "the person's token"
    );
    let bob = json!({"metadata": {"timeZone": "Asia/Kolkata"}});
    assert!(api.put("/v1/entities/bob", &bob).await.is_success());
    let bob = api.as_user("bob");
    let space = bob
        .post("/v1/spaces", &json!({"agent": "plain"}))
        .await
        .text("id");
    say(&bob, &space, "hi").await;
    assert!(
        system(&models).contains("(time zone Asia/Kolkata, UTC+05:30)"),
        "the person's metadata"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_several_people_speak_the_model_is_told_who() {
    let models = ModelServer::start().await;
    let gateway: Gateway = gateway(&models).await;
    let api = gateway.api();
    put_agent(&api, "plain", &agent(&models, json!({}))).await;
    assert!(
        api.put("/v1/entities/ada", &json!({"name": "Ada\nL."}))
            .await
            .is_success()
    );
    let shared = json!({"agent": "plain", "members": ["ada", "bob"]});
    let space = api.post("/v1/spaces", &shared).await.text("id");
    let (ada, bob) = (api.as_user("ada"), api.as_user("bob"));
    say(&ada, &space, "I like cats").await;
    say(&bob, &space, "what does she like?").await;
    say(&api, &space, "for the record").await;
    let request = last(&models);
    let said: Vec<&str> = request
        .iter()
        .filter(|m| m["role"] == "user")
        .map(content)
        .collect();
    assert_eq!(
        said,
        [
            "Ada L.: I like cats",
            "bob: what does she like?",
            "for the record"
        ]
    );
    let alone = ada
        .post("/v1/spaces", &json!({"agent": "plain"}))
        .await
        .text("id");
    say(&ada, &alone, "hi").await;
    assert_eq!(content(&last(&models)[1]), "hi");
    let seen = bob.list(&format!("/v1/spaces/{space}/events")).await;
    let seen: Vec<&Event> = seen.iter().filter(|event| event.kind == "message").collect();
    assert_eq!(seen[0].data["message"]["parts"][0]["text"], "I like cats");
    assert!(seen[0].data["message"]["sender"].is_null(), "{:?}", seen[0]);
}
