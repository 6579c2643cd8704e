//! Requests that wait for the run they start: `Prefer: wait=N` and `?wait=`. Time is held: it moves only when nothing
//! else can, so a wait that ends before its time takes none.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_testkit_http::client::Client;
use toolgate_testkit_http::world::{CONTENT, STREAMS_MAX};

use crate::world::{HIDDEN, World, agent};

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn patient<'w>(client: &Client<'w>) -> Client<'w> {
    client.with("prefer", "wait=30")
}

#[tokio::test(start_paused = true)]
async fn a_wait_gives_the_finished_run_in_one_document() {
    let world = World::new().await;
    let began = Instant::now();
    for (client, path, applied) in [
        (patient(&world.backend()), "/v1/runs", "wait=30"),
        (world.backend(), "/v1/runs?wait=30s", ""),
        (patient(&world.user("ada")), "/v1/runs?wait=20", ""),
    ] {
        let told = client.post(path, json!({"text": "hello"})).await;
        assert_eq!(told.header("preference-applied"), applied);
        let run = told.expect(200);
        assert_eq!(run["status"], "completed");
        assert_eq!(run["text"], "you said hello");
        assert_eq!(run["usage"], json!({"inputTokens": 10, "outputTokens": 5}));
        assert_eq!(run["finishReason"], "stop");
        assert_eq!(run["runId"], run["id"]);
        assert!(text(&run["messageId"]).starts_with("msg_"), "{run}");
        let mut plain = client
            .get(&format!("/v1/runs/{}", text(&run["id"])))
            .await
            .expect(200);
        for more in ["messageId", "runId"] {
            plain[more] = run[more].clone();
        }
        assert_eq!(run, plain, "the run as it can be read later");
    }
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_message_is_waited_for_in_its_space_and_one_that_nobody_answers_is_not() {
    let world = World::new().await;
    let ada = patient(&world.user("ada"));
    let space = text(&ada.post("/v1/spaces", json!({})).await.expect(201)["id"]);
    let path = format!("/v1/spaces/{space}/messages");
    let run = ada.post(&path, json!({"text": "hello"})).await.expect(200);
    assert_eq!(
        (&run["text"], &run["spaceId"]),
        (&json!("you said hello"), &json!(space))
    );
    let told = ada.post(&path, json!({"text": "psst", "respond": false})).await;
    assert_eq!(told.header("preference-applied"), "");
    assert_eq!(told.expect(202)["runId"], Value::Null);
    let stream = ada.say(&path, json!({"text": "hello"})).await;
    assert!(!stream.headers.contains_key("preference-applied"));
    assert_eq!(stream.rest().await.last().unwrap().kind, "run-finish");
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_run_waits_for_somebody_and_what_they_say_can_be_waited_for() {
    let world = World::new().await;
    let ada = patient(&world.user("ada"));
    let began = Instant::now();

    let run = ada
        .post("/v1/runs", json!({"text": "call:ask"}))
        .await
        .expect(200);
    assert_eq!(run["status"], "waiting_tool");
    let call = &run["pending"]["calls"][0];
    assert_eq!(call["toolName"], "ask");
    let path = format!("/v1/runs/{}/tool-results", text(&run["runId"]));
    let result = json!({"toolCallId": call["toolCallId"], "result": {"age": 7}});
    let told = ada.post(&path, result.clone()).await.expect(200);
    assert_eq!(told["toolCallId"], call["toolCallId"]);
    assert_eq!(told["run"]["status"], "completed");
    assert_eq!(told["run"]["text"], r#"got {"age":7}"#);
    let again = ada.post(&path, result).await.expect(200);
    assert_eq!(again, told, "the same result again waits for the same run");

    let run = ada
        .post("/v1/runs", json!({"text": r#"call:guarded={"to":"a"} call:ask"#}))
        .await
        .expect(200);
    assert_eq!(run["status"], "waiting_approval");
    let approval = text(&run["pending"]["approvals"][0]["approvalId"]);
    let path = format!("/v1/approvals/{approval}");
    let told = ada.post(&path, json!({"approved": true})).await.expect(200);
    assert_eq!(told["approvalId"], json!(approval));
    assert_eq!(
        told["run"]["status"], "waiting_tool",
        "the other call is still open"
    );
    let results = json!({"results": [{
        "toolCallId": told["run"]["pending"]["calls"][0]["toolCallId"], "result": {},
    }]});
    let space = text(&run["spaceId"]);
    let told = ada
        .post(&format!("/v1/spaces/{space}/tool-results"), results)
        .await
        .expect(200);
    assert_eq!(told["run"]["text"], r#"got {"to":"a"} and {}"#);
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_result_that_leaves_the_run_waiting_is_answered_at_once() {
    let world = World::new().await;
    let ada = patient(&world.user("ada"));
    let began = Instant::now();
    let run = ada
        .post("/v1/runs", json!({"text": "call:ask call:ask"}))
        .await
        .expect(200);
    let path = format!("/v1/runs/{}/tool-results", text(&run["runId"]));
    let result = json!({"toolCallId": run["pending"]["calls"][0]["toolCallId"], "result": {}});
    let told = ada.post(&path, result).await.expect(200);
    assert_eq!(told["run"]["status"], "waiting_tool");
    assert_eq!(told["run"]["pending"]["calls"].as_array().unwrap().len(), 1);
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_message_into_a_run_that_waits_is_waited_for_to_its_own_end() {
    let world = World::new().await;
    let ada = patient(&world.user("ada"));
    let run = ada
        .post("/v1/runs", json!({"text": "call:ask"}))
        .await
        .expect(200);
    let path = format!("/v1/spaces/{}/messages", text(&run["spaceId"]));
    let told = ada.post(&path, json!({"text": "never mind"})).await.expect(200);
    assert_eq!(told["runId"], run["runId"], "it joined the run");
    assert_eq!(told["status"], "completed");
    assert_eq!(told["text"], "you said never mind");
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_nothing_to_wait_for() {
    let world = World::new().await;
    let mut config = agent();
    let pause = json!({
        "name": "nap", "description": "for tests", "executionType": "waiting",
        "parameters": {"type": "object"}, "execution": {"duration": "10s"},
    });
    config["tools"].as_array_mut().unwrap().push(pause);
    world
        .backend()
        .put("/v1/agents/sleeper", config)
        .await
        .expect(201);
    let began = Instant::now();
    let body = json!({"text": "call:nap", "agent": "sleeper"});
    let run = patient(&world.backend()).post("/v1/runs", body).await.expect(200);
    assert_eq!(run["status"], "waiting_time");
    assert_eq!(run["pending"]["pauses"][0]["toolName"], "nap");
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_longer_is_202_and_its_repeat_waits_again() {
    let world = World::new().await;
    let ada = world.user("ada").with("idempotency-key", "once");
    let body = json!({"text": "call:slow"});
    let began = Instant::now();
    let told = ada.with("prefer", "wait=5").post("/v1/runs", body.clone()).await;
    assert_eq!(began.elapsed().as_secs(), 5);
    assert_eq!(told.header("preference-applied"), "wait=5");
    let place = told.header("location").to_owned();
    let posted = told.expect(202);
    assert_eq!(place, format!("/v1/runs/{}", text(&posted["runId"])));
    assert_eq!(ada.get(&place).await.expect(200)["status"], "running");

    let polled = ada.with("prefer", "wait=4").get(&place).await;
    assert_eq!(polled.header("preference-applied"), "wait=4");
    assert_eq!(polled.expect(200)["status"], "running");
    assert_eq!(began.elapsed().as_secs(), 9);

    let began = Instant::now();
    let client = patient(&ada);
    let again = client.post("/v1/runs", body);
    let release = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        world.tools.gate.add_permits(1);
    };
    let (told, polled, ()) = tokio::join!(again, client.get(&place), release);
    let run = told.expect(200);
    assert_eq!(polled.expect(200)["text"], run["text"]);
    assert_eq!(began.elapsed().as_secs(), 3, "as soon as the run has ended");
    assert_eq!(
        (&run["runId"], &run["text"]),
        (&posted["runId"], &json!("got {}"))
    );
    assert_eq!(world.tools.calls().len(), 1, "it ran once");
}

#[tokio::test(start_paused = true)]
async fn a_wait_has_a_limit_and_must_be_readable() {
    let world = World::new().await;
    let began = Instant::now();
    let told = world
        .backend()
        .with("prefer", "respond-async, wait=100000")
        .post("/v1/runs", json!({"text": "call:slow"}))
        .await;
    assert_eq!(told.header("preference-applied"), "wait=60");
    told.expect(202);
    assert_eq!(began.elapsed().as_secs(), 60, "http.wait_max");
    let told = world
        .backend()
        .post("/v1/runs?wait=soon", json!({"text": "hello"}))
        .await
        .expect(400);
    assert!(
        text(&told["detail"]).contains("\"soon\" is no time; send one like 30s"),
        "{told}"
    );
    let unread = world.backend().with("prefer", "wait=soon");
    unread
        .post("/v1/runs", json!({"text": "hello"}))
        .await
        .expect(201);
    let none = world.backend().with("prefer", "wait=0");
    none.post("/v1/runs", json!({"text": "call:slow"}))
        .await
        .expect(202);
}

#[tokio::test(start_paused = true)]
async fn waits_count_among_the_streams_of_a_user_until_they_end_or_are_given_up() {
    let world = World::new().await;
    let ada = patient(&world.user("ada"));
    let space = text(&ada.post("/v1/spaces", json!({})).await.expect(201)["id"]);
    let mut streams = Vec::new();
    for _ in 1..STREAMS_MAX {
        streams.push(ada.follow(&format!("/v1/spaces/{space}/events")).await);
    }
    let slow = || ada.post("/v1/runs", json!({"text": "call:slow"}));
    let others = async {
        let told = ada.post("/v1/runs", json!({"text": "hello"})).await;
        assert_eq!(told.code(429), "TOO_MANY_STREAMS");
        patient(&world.user("bob"))
            .post("/v1/runs", json!({"text": "hello"}))
            .await
            .expect(200);
    };
    let (told, ()) = tokio::join!(slow(), others);
    told.expect(202);
    // A client that goes away takes its wait along.
    tokio::time::timeout(Duration::from_secs(1), slow())
        .await
        .err()
        .expect("nothing was said yet");
    ada.post("/v1/runs", json!({"text": "hello"})).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_access_of_whoever_waits() {
    let world = World::new().await;
    let ada = patient(&world.user("ada"));
    let space = text(&ada.post("/v1/spaces", json!({})).await.expect(201)["id"]);
    let path = format!("/v1/spaces/{space}/messages");
    let began = Instant::now();
    let remove = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let member = format!("/v1/spaces/{space}/members/ada");
        world.backend().delete(&member).await.expect(204);
    };
    let (told, ()) = tokio::join!(ada.post(&path, json!({"text": "call:slow"})), remove);
    assert_eq!(told.code(404), "NOT_FOUND");
    assert_eq!(began.elapsed().as_secs(), 1, "by a notice");

    let brief = world
        .user_for("bob", Duration::from_secs(5))
        .with("prefer", "wait=50");
    let began = Instant::now();
    let told = brief.post("/v1/runs", json!({"text": "call:slow"})).await;
    assert_eq!(told.code(401), "UNAUTHENTICATED");
    assert_eq!(
        began.elapsed().as_secs(),
        45,
        "the first heartbeat after its token has expired, and some more for clocks that differ"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_gateway_goes_down() {
    let world = World::new().await;
    let began = Instant::now();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.stop.cancel();
    };
    let client = patient(&world.backend());
    let (told, ()) = tokio::join!(client.post("/v1/runs", json!({"text": "call:slow"})), stop);
    assert!(text(&told.expect(202)["runId"]).starts_with("run_"));
    assert_eq!(began.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_user_learns_no_more_by_waiting_than_otherwise() {
    let world = World::new().await;
    let mut config = agent();
    config["access"] = json!("public");
    config["tools"][3]["approval"] = json!({"approvers": {"roles": ["boss"]}});
    world.backend().put("/v1/agents/strict", config).await.expect(201);
    for (client, is_told) in [(world.user("ada"), false), (world.backend(), true)] {
        let body = json!({"text": "hide:guarded", "agent": "strict"});
        let run = patient(&client).post("/v1/runs", body).await.expect(200);
        assert_eq!(run["pending"]["approvals"][0]["toolName"], "guarded");
        assert_eq!(run.to_string().contains(HIDDEN), is_told, "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_request_that_waits_is_not_kept() {
    let world = World::with(|settings| settings.in_flight_bytes_max = CONTENT.message).await;
    let words = format!("call:slow {}", "x".repeat(CONTENT.message / 2 + 1000));
    let client = patient(&world.backend());
    let body = || json!({ "text": words });
    let (one, other) = tokio::join!(client.post("/v1/runs", body()), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.post("/v1/runs", body()).await
    });
    one.expect(202);
    other.expect(202);
}
