//! Event streams: when they end, and coming back to them.

use serde_json::{Value, json};
use toolgate_testkit_http::client::{kinds, of};

use crate::world::{HEARTBEAT, World};

#[tokio::test]
async fn a_run_is_streamed_from_its_start_to_its_end() {
    let world = World::new().await;
    let stream = world.backend().say("/v1/runs", json!({ "text": "hello" })).await;
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    let run = stream.headers["toolgate-run-id"].to_str().unwrap().to_owned();
    let space = stream.headers["toolgate-space-id"].to_str().unwrap().to_owned();
    let events = stream.rest().await;
    assert_eq!(kinds(&events).first(), Some(&"run-start"));
    assert_eq!(kinds(&events).last(), Some(&"run-finish"));
    assert!(kinds(&events).contains(&"text-delta"));
    for event in &events {
        assert_eq!(event.data["type"], *event.kind);
        assert_eq!(event.data["seq"], event.id);
        assert_eq!(event.data["runId"], *run);
        assert_eq!(event.data["spaceId"], *space);
    }
    assert!(
        events.windows(2).all(|pair| pair[0].id < pair[1].id),
        "places only grow"
    );
}

#[tokio::test]
async fn a_stream_ends_where_the_run_waits_and_the_answer_streams_what_follows() {
    let world = World::new().await;
    let ada = world.user("ada");
    let asked = ada.run("call:ask").await;
    assert_eq!(kinds(&asked).last(), Some(&"run-status"));
    assert_eq!(asked.last().unwrap().data["status"], "waiting_tool");
    let (run, call) = (
        of(&asked, "run-start", "runId"),
        of(&asked, "tool-input-available", "toolCallId"),
    );
    let result = json!({ "toolCallId": call, "result": { "answer": 42 } });
    let rest = ada
        .say(&format!("/v1/runs/{run}/tool-results"), result.clone())
        .await
        .rest()
        .await;
    assert_eq!(kinds(&rest).first(), Some(&"tool-output-available"));
    assert_eq!(of(&rest, "text-end", "text"), r#"got {"answer":42}"#);
    assert_eq!(kinds(&rest).last(), Some(&"run-finish"));
    // The same result again is answered with the same events; deltas are folded by now.
    let again = ada
        .say(&format!("/v1/runs/{run}/tool-results"), result)
        .await
        .rest()
        .await;
    assert_eq!(of(&again, "text-end", "text"), r#"got {"answer":42}"#);
}

#[tokio::test]
async fn results_of_parallel_calls_stream_until_the_run_waits_again() {
    let world = World::new().await;
    let ada = world.user("ada");
    let asked = ada.run("call:ask call:ask").await;
    let run = of(&asked, "run-start", "runId");
    let calls: Vec<Value> = asked
        .iter()
        .filter(|event| event.kind == "tool-input-available")
        .map(|event| event.data["toolCallId"].clone())
        .collect();
    let path = format!("/v1/runs/{run}/tool-results");
    let first = ada
        .say(&path, json!({ "toolCallId": calls[0], "result": { "n": 1 } }))
        .await
        .rest()
        .await;
    assert_eq!(
        kinds(&first),
        ["tool-output-available"],
        "the other call is open: nothing more will come"
    );
    let both = json!({ "results": [
        { "toolCallId": calls[0], "result": { "n": 1 } },
        { "toolCallId": calls[1], "result": { "n": 2 } },
    ] });
    let rest = ada.say(&path, both).await.rest().await;
    assert_eq!(of(&rest, "text-end", "text"), r#"got {"n":1} and {"n":2}"#);
    assert_eq!(kinds(&rest).last(), Some(&"run-finish"));
}

#[tokio::test]
async fn a_stream_that_stays_through_pauses_ends_with_the_run() {
    let world = World::new().await;
    let ada = world.user("ada");
    let mut stream = ada.say("/v1/runs?until=end", json!({ "text": "call:ask" })).await;
    let asked = stream.until("tool-input-available").await;
    let (run, call) = (
        of(&asked, "run-start", "runId"),
        of(&asked, "tool-input-available", "toolCallId"),
    );
    ada.post(
        &format!("/v1/runs/{run}/tool-results"),
        json!({ "callId": call, "result": {} }),
    )
    .await
    .expect(200);
    assert_eq!(kinds(&stream.rest().await).last(), Some(&"run-finish"));
    ada.get(&format!("/v1/runs/{run}/events?until=never"))
        .await
        .expect(400);
}

#[tokio::test]
async fn a_waiting_run_is_read_up_to_where_it_waits() {
    let world = World::new().await;
    let ada = world.user("ada");
    let asked = ada.run("call:ask").await;
    let run = of(&asked, "run-start", "runId");
    let read = ada
        .follow(&format!("/v1/runs/{run}/events?until=pause"))
        .await
        .rest()
        .await;
    assert_eq!(read.last().unwrap().id, asked.last().unwrap().id);
    let after = read.last().unwrap().id;
    let none = ada
        .follow(&format!("/v1/runs/{run}/events?until=pause&after={after}"))
        .await
        .rest()
        .await;
    assert!(none.is_empty());
    // An earlier pause is history, not a reason to stop.
    let call = of(&asked, "tool-input-available", "toolCallId");
    ada.say(
        &format!("/v1/runs/{run}/tool-results"),
        json!({ "toolCallId": call, "result": {} }),
    )
    .await
    .rest()
    .await;
    let whole = ada
        .follow(&format!("/v1/runs/{run}/events?until=pause"))
        .await
        .rest()
        .await;
    assert_eq!(kinds(&whole).last(), Some(&"run-finish"));
}

#[tokio::test]
async fn a_stream_cut_at_any_event_goes_on_from_there() {
    let world = World::new().await;
    let ada = world.user("ada");
    let asked = ada.run("call:ask").await;
    let (run, call) = (
        of(&asked, "run-start", "runId"),
        of(&asked, "tool-input-available", "toolCallId"),
    );
    let path = format!("/v1/runs/{run}/tool-results");
    ada.say(&path, json!({ "toolCallId": call, "result": { "a": 1 } }))
        .await
        .rest()
        .await;
    let events = format!("/v1/runs/{run}/events");
    let whole = ada.follow(&events).await.rest().await;
    for (index, cut) in whole.iter().enumerate() {
        let rest: Vec<_> = whole[index + 1..].to_vec();
        let id = cut.id.to_string();
        if rest.is_empty() {
            let told = ada
                .with("accept", "text/event-stream")
                .with("last-event-id", &id)
                .get(&events)
                .await;
            told.expect(204);
            continue;
        }
        assert_eq!(
            ada.with("last-event-id", &id).follow(&events).await.rest().await,
            rest
        );
        assert_eq!(
            ada.follow(&format!("{events}?after={id}")).await.rest().await,
            rest
        );
        assert_eq!(
            ada.follow(&format!("{events}?lastEventId={id}"))
                .await
                .rest()
                .await,
            rest
        );
        let later = ada
            .with("last-event-id", &id)
            .follow(&format!("{events}?after=0"))
            .await;
        assert_eq!(
            later.rest().await,
            rest,
            "what a browser sends when it comes back wins"
        );
    }
    ada.with("last-event-id", "0")
        .get(&format!("{events}?after=x"))
        .await
        .expect(400);
    for bad in ["x", "-1", "1.5", "", "99999999999999999999", "+1"] {
        ada.with("last-event-id", bad).get(&events).await.expect(400);
        ada.get(&format!("{events}?after={}", bad.replace('+', "%2B")))
            .await
            .expect(400);
    }
}

#[tokio::test]
async fn a_list_tells_what_the_stream_tells_page_by_page() {
    let world = World::new().await;
    let ada = world.user("ada");
    let events = ada.run("call:mirror={\"a\":1}").await;
    let (run, space) = (
        of(&events, "run-start", "runId"),
        of(&events, "run-start", "spaceId"),
    );
    let stored: Vec<Value> = ada
        .follow(&format!("/v1/runs/{run}/events"))
        .await
        .rest()
        .await
        .into_iter()
        .map(|event| event.data)
        .collect();
    for path in [
        format!("/v1/runs/{run}/events"),
        format!("/v1/spaces/{space}/events"),
    ] {
        let mut listed = Vec::new();
        let mut after = json!(0);
        while !after.is_null() {
            let page = ada
                .get(&format!("{path}?limit=3&after={after}"))
                .await
                .expect(200);
            assert!(page["events"].as_array().unwrap().len() <= 3);
            listed.extend(page["events"].as_array().unwrap().clone());
            after = page["nextCursor"].clone();
        }
        assert_eq!(listed, stored);
    }
}

#[tokio::test]
async fn a_space_is_followed_across_its_runs() {
    let world = World::new().await;
    let ada = world.user("ada");
    let space = ada.post("/v1/spaces", json!({})).await.expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut stream = ada.follow(&format!("/v1/spaces/{space}/events")).await;
    for words in ["one", "two"] {
        ada.post(&format!("/v1/spaces/{space}/messages"), json!({ "text": words }))
            .await
            .expect(202);
        let events = stream.until("run-finish").await;
        assert_eq!(of(&events, "text-end", "text"), format!("you said {words}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_says_that_it_lives() {
    let world = World::new().await;
    let space = world.backend().post("/v1/spaces", json!({})).await.expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut stream = world
        .backend()
        .follow(&format!("/v1/spaces/{space}/events"))
        .await;
    let began = tokio::time::Instant::now();
    assert_eq!(stream.block().await.unwrap(), ":");
    assert_eq!(stream.block().await.unwrap(), ":");
    assert_eq!(began.elapsed().as_secs(), 2 * HEARTBEAT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_user_who_was_taken_out_reads_no_further() {
    let world = World::new().await;
    let ada = world.user("ada");
    let space = ada.post("/v1/spaces", json!({})).await.expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut stream = ada.follow(&format!("/v1/spaces/{space}/events")).await;
    assert_eq!(stream.block().await.unwrap(), ":");
    world
        .backend()
        .delete(&format!("/v1/spaces/{space}/members/ada"))
        .await
        .expect(204);
    assert!(stream.block().await.unwrap().contains("no longer allowed"));
    assert_eq!(stream.block().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_user_whose_token_runs_out_reads_no_further() {
    let world = World::new().await;
    let ada = world.user_for("ada", HEARTBEAT);
    let space = ada.post("/v1/spaces", json!({})).await.expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut stream = ada.follow(&format!("/v1/spaces/{space}/events")).await;
    let mut beats = 0;
    while stream.block().await.unwrap() == ":" {
        beats += 1;
    }
    assert_eq!(beats, 2, "the token's time, and some more for clocks that differ");
    assert_eq!(stream.block().await, None);
    ada.get(&format!("/v1/spaces/{space}")).await.expect(401);
}

#[tokio::test]
async fn a_reader_that_does_not_keep_up_is_cut_and_misses_nothing_when_it_comes_back() {
    let world = World::with_backlog(2_000).await;
    let ada = world.user("ada");
    let space = ada.post("/v1/spaces", json!({})).await.expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/v1/spaces/{space}/events");
    let mut slow = ada.follow(&path).await;
    for words in ["one", "two", "three"] {
        ada.say(&format!("/v1/spaces/{space}/messages"), json!({ "text": words }))
            .await
            .rest()
            .await;
    }
    let mut read = Vec::new();
    let mut last = String::new();
    while let Some(block) = slow.block().await {
        read.extend(slow.parse(&block));
        last = block;
    }
    assert!(last.contains("too slow"), "{last}");
    let cursor = read.last().map_or(0, |event| event.id);
    let told = ada.get(&format!("{path}?limit=500")).await.expect(200);
    let stored: Vec<u64> = told["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    let mut again = ada.follow(&format!("{path}?after={cursor}")).await;
    while read.last().is_none_or(|event| event.id < *stored.last().unwrap()) {
        read.extend(again.event().await);
    }
    let durable: Vec<u64> = read
        .iter()
        .map(|event| event.id)
        .filter(|id| stored.contains(id))
        .collect();
    assert_eq!(durable, stored);
}

#[tokio::test]
async fn a_gateway_that_goes_down_sends_its_readers_away_to_come_back() {
    let mut world = World::new().await;
    let asked = world.backend().run("call:ask").await;
    let run = of(&asked, "run-start", "runId");
    let mut stream = world.backend().follow(&format!("/v1/runs/{run}/events")).await;
    stream.until("run-status").await;
    world.stop.cancel();
    let mut last = String::new();
    while let Some(block) = stream.block().await {
        last = block;
    }
    assert!(last.contains("retry: 1000") && last.starts_with(": "), "{last}");
    world.stopped().await;
    assert_eq!(world.nobody().get("/readyz").await.code(503), "UNAVAILABLE");
    world.nobody().get("/healthz").await.expect(200);
    assert_eq!(
        world
            .backend()
            .post("/v1/runs", json!({ "text": "hi" }))
            .await
            .code(503),
        "UNAVAILABLE"
    );
}
