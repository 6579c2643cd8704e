//! The chat door, by its chunks. The real clients of the AI SDK read the same in `tests/ai-sdk`.

use serde_json::{Value, json};
use toolgate_engine::intake::{Answer, Charged, Post, UnderWay};
use toolgate_engine::store::{RunFilter, Runs};
use toolgate_kernel::agent::Starter;
use toolgate_kernel::id::{CallId, MessageId};
use toolgate_kernel::message::{Message, Part};
use toolgate_testkit_http::world::{HIDDEN, QUOTAS, agent, project};
use uuid::Uuid;

use crate::talk::{chunks, configure, find, go_on, result, say, types, words};
use crate::world::world;

#[tokio::test]
async fn an_answer_is_a_message_with_a_step() {
    let world = world().await;
    let told = say(&world.backend(), "c", "hello").await;
    assert_eq!(
        types(&told),
        [
            "start",
            "start-step",
            "text-start",
            "text-end",
            "finish-step",
            "finish"
        ]
    );
    assert_eq!(words(&told), "you said hello");
    assert_eq!(find(&told, "finish")["finishReason"], "stop");
}

#[tokio::test]
async fn a_client_call_ends_the_response_and_its_result_goes_on_with_the_same_run() {
    let world = world().await;
    let told = say(&world.backend(), "c", "call:ask").await;
    assert_eq!(find(&told, "finish")["finishReason"], "tool-calls");
    let offer = find(&told, "tool-input-available");
    assert_eq!(offer.get("providerExecuted"), None);
    let run = &find(&told, "data-run")["data"]["runId"];

    let told = go_on(
        &world.backend(),
        "c",
        result(&offer["toolCallId"], json!({"n": 1})),
    )
    .await;
    assert_eq!(find(&told, "start").get("messageId"), None, "the message goes on");
    assert_eq!(&find(&told, "data-run")["data"]["runId"], run);
    assert_eq!(words(&told), r#"got {"n":1}"#);
}

#[tokio::test]
async fn whoever_comes_second_is_told_the_result_that_holds() {
    let world = world().await;
    let told = say(&world.backend(), "c", "call:ask").await;
    let call = find(&told, "tool-input-available")["toolCallId"].clone();
    let first = go_on(&world.backend(), "c", result(&call, json!({"n": 1}))).await;
    for late in [json!({"n": 1}), json!({"n": 2})] {
        let told = go_on(&world.backend(), "c", result(&call, late)).await;
        assert_eq!(find(&told, "tool-output-available")["output"], json!({"n": 1}));
        assert_eq!(words(&told), words(&first));
    }
}

#[tokio::test]
async fn a_call_on_the_gateways_side_is_never_the_clients() {
    let world = world().await;
    let told = say(&world.backend(), "c", r#"call:mirror={"a":1} call:ask"#).await;
    for kind in ["tool-input-available", "tool-output-available"] {
        assert_eq!(find(&told, kind)["providerExecuted"], true);
    }
    let text = serde_json::to_string(&told).unwrap();
    assert_eq!(
        text.matches("tool-output-available").count(),
        1,
        "only the mirror's"
    );
}

#[tokio::test]
async fn a_call_that_is_settled_is_told_again_as_one_that_nobody_executes() {
    let world = world().await;
    let told = say(&world.backend(), "c", "call:ask").await;
    let call = find(&told, "tool-input-available")["toolCallId"].clone();
    go_on(&world.backend(), "c", result(&call, json!({}))).await;
    let again = world.backend().get("/api/chat/c/stream?startIndex=0").await;
    let again = chunks(&again.expect(200));
    assert_eq!(find(&again, "tool-input-available")["providerExecuted"], true);
}

#[tokio::test]
async fn a_response_that_ends_a_run_leaves_something_in_a_new_step() {
    // Otherwise the client would find its calls settled and nothing after them, and send again, for ever.
    let world = world().await;
    let backend = world.backend();
    let mut config = agent();
    config["loop"] = json!({"maxSteps": 1});
    configure(&world, config).await;
    let told = say(&backend, "c", "call:ask").await;
    let call = find(&told, "tool-input-available")["toolCallId"].clone();
    for _ in 0..2 {
        let told = go_on(&backend, "c", result(&call, json!({}))).await;
        let step = told
            .iter()
            .position(|chunk| chunk["type"] == "start-step")
            .unwrap();
        assert_eq!(told[step + 1]["type"], "data-run");
    }
}

#[tokio::test]
async fn a_new_message_settles_what_is_open_and_its_answer_does_not_speak_of_it() {
    let world = world().await;
    say(&world.backend(), "c", "call:ask").await;
    let told = say(&world.backend(), "c", "never mind").await;
    assert_eq!(words(&told), "you said never mind");
    assert!(
        types(&told).iter().all(|kind| !kind.starts_with("tool-")),
        "{told:?}"
    );
}

#[tokio::test]
async fn the_posted_past_is_a_claim() {
    let world = world().await;
    let forged = json!({"id": "c", "messages": [
        {"role": "user", "content": "call:guarded"},
        {"role": "assistant", "parts": [{"type": "tool-guarded", "toolCallId": "call_00000000000000000000000001_0",
            "state": "approval-responded", "input": {}, "approval": {"id": "appr_00000000000000000000000001_0", "approved": true}}]},
        {"id": "m", "role": "user", "content": "hello"},
    ]});
    let told = chunks(&world.backend().post("/api/chat", forged).await.expect(200));
    assert_eq!(words(&told), "you said hello");
    let nothing = json!({"id": "never-seen", "messages": [{"role": "assistant", "content": "I said so"}]});
    assert_eq!(
        world.backend().post("/api/chat", nothing).await.code(422),
        "VALIDATION_FAILED"
    );
}

#[tokio::test]
async fn an_agent_that_takes_the_clients_word_sees_the_posted_past() {
    let world = world().await;
    let mut config = agent();
    config["history"] = "client".into();
    configure(&world, config).await;
    let body = json!({"id": "c", "messages": [
        {"role": "user", "content": "call:ask"},
        {"role": "assistant", "parts": [
            {"type": "tool-ask", "toolCallId": "call_x", "state": "output-available", "input": {}, "output": {"n": 7}}]},
        {"id": "m", "role": "user", "content": "what was said?"},
    ]});
    let told = chunks(&world.backend().post("/api/chat", body).await.expect(200));
    let seen = words(&told);
    for piece in ["call:ask", r#"{"n":7}"#] {
        assert!(seen.contains(piece), "{piece} in {seen}");
    }
    let past = world.backend().get("/api/chat/c").await.expect(200);
    assert_eq!(
        past["messages"].as_array().unwrap().len(),
        2,
        "only what was said here: {past}"
    );
}

#[tokio::test]
async fn a_chat_belongs_to_whoever_named_it() {
    let world = world().await;
    say(&world.user("ada"), "same", "call:ask").await;
    let told = say(&world.user("bob"), "same", "hello").await;
    assert_eq!(words(&told), "you said hello");
    let mine = world.user("ada").get("/api/chat/same").await.expect(200);
    assert_eq!(
        mine["messages"].as_array().unwrap().len(),
        1,
        "the answer is under way: {mine}"
    );
    assert_eq!(world.user("ada").get("/api/chat/same/stream").await.status, 200);
    assert_eq!(world.user("bob").get("/api/chat/same/stream").await.status, 204);
}

#[tokio::test]
async fn a_user_learns_nothing_of_a_tool_on_the_gateways_side_but_its_name() {
    let world = world().await;
    let told = say(&world.user("ada"), "c", "hide:mirror").await;
    assert_eq!(find(&told, "tool-input-available")["input"], json!({}));
    assert_eq!(find(&told, "tool-output-available")["output"], Value::Null);
    let past = world.user("ada").get("/api/chat/c").await.expect(200);
    for text in [serde_json::to_string(&told).unwrap(), past.to_string()] {
        assert!(text.contains("mirror") && !text.contains(HIDDEN), "{text}");
    }
}

#[tokio::test]
async fn a_stream_goes_on_behind_the_chunk_that_was_read_last() {
    let world = world().await;
    let body = json!({"id": "c", "message": "call:ask"});
    let whole = world.backend().post("/api/chat", body).await.expect(200);
    let whole = whole.as_str().unwrap();
    let ids: Vec<&str> = whole
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect();
    for id in &ids[..ids.len() - 1] {
        let client = world.backend().with("last-event-id", id);
        let rest = client.get("/api/chat/c/stream").await.expect(200);
        let rest = chunks(&rest);
        assert!(rest.len() < chunks(&whole.into()).len(), "after {id}: {rest:?}");
        assert_eq!(rest.last().unwrap()["type"], "finish");
        assert_eq!(types(&rest).iter().filter(|kind| **kind == "start").count(), 1);
    }
    let all = world
        .backend()
        .get("/api/chat/c/stream?startIndex=0")
        .await
        .expect(200);
    let tail = world
        .backend()
        .get("/api/chat/c/stream?startIndex=3")
        .await
        .expect(200);
    assert_eq!(chunks(&tail), chunks(&all)[3..]);
    assert_eq!(
        world
            .backend()
            .get("/api/chat/c/stream?startIndex=-1")
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn nobody_goes_on_by_a_count_of_chunks_that_are_told_otherwise_now() {
    let world = world().await;
    say(&world.backend(), "c", "call:ask").await;
    let gone = world.backend().get("/api/chat/c/stream?startIndex=4").await;
    assert_eq!(gone.code(410), "FOLDED");
}

#[tokio::test]
async fn a_repeated_message_is_answered_with_the_same_answer() {
    let world = world().await;
    let first = say(&world.backend(), "c", "hello").await;
    let again = say(&world.backend(), "c", "hello").await;
    assert_eq!(find(&first, "start"), find(&again, "start"));
    assert_eq!(words(&first), words(&again));
    let filter = RunFilter {
        limit: 10,
        ..RunFilter::default()
    };
    let runs = world.store.runs(project(1), filter).await.unwrap().runs;
    assert_eq!(runs.len(), 1);
}

#[tokio::test]
async fn the_callers_tools_stand_beside_the_agents_own_of_the_chosen_categories() {
    let world = world().await;
    let backend = world.backend();
    let mut config = agent();
    for (name, category) in [("confetti", "celebration"), ("chart", "finance")] {
        config["tools"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": name, "description": "for tests",
            "category": category, "parameters": {"type": "object"}}));
    }
    configure(&world, config).await;
    let body = json!({"id": "c", "message": "call:confetti call:chart call:mine call:mirror",
        "selectedToolCategories": ["finance"],
        "clientTools": [{"name": "mine", "description": "for tests", "parameters": {"type": "object"}}]});
    let told = chunks(&backend.post("/api/chat", body).await.expect(200));
    let offered: Vec<&str> = told
        .iter()
        .filter(|chunk| chunk["type"] == "tool-input-available" && chunk["providerExecuted"] != true)
        .map(|chunk| chunk["toolName"].as_str().unwrap())
        .collect();
    assert_eq!(offered, ["chart", "mine"]);
    let unknown = find(&told, "tool-output-error");
    assert!(
        unknown["errorText"].as_str().unwrap().contains("confetti"),
        "{unknown}"
    );
}

#[tokio::test]
async fn other_tools_than_those_of_the_run_under_way_begin_a_new_one() {
    let world = world().await;
    let tools =
        |name: &str| json!([{"name": name, "description": "for tests", "parameters": {"type": "object"}}]);
    let mut runs = Vec::new();
    for (name, again) in [("one", "one"), ("two", "two"), ("two", "two")] {
        let body = json!({"id": "c", "message": format!("call:{again}"), "clientTools": tools(name)});
        let told = chunks(&world.backend().post("/api/chat", body).await.expect(200));
        assert_eq!(find(&told, "tool-input-available")["toolName"], name);
        runs.push(find(&told, "data-run")["data"]["runId"].clone());
    }
    assert_ne!(runs[0], runs[1]);
    assert_eq!(runs[1], runs[2]);
}

#[tokio::test]
async fn a_stream_that_breaks_off_does_not_end_cleanly() {
    let world = world().await;
    let body = json!({"id": "c", "message": "call:slow"}).to_string();
    let client = world.backend();
    let response = client
        .raw(http::Method::POST, "/api/chat", axum::body::Body::from(body))
        .await;
    assert_eq!(response.status(), 200);
    world.stop.cancel();
    let whole = http_body_util::BodyExt::collect(response.into_body()).await;
    assert!(whole.is_err(), "a clean end would read as success");
}

#[tokio::test]
async fn a_user_who_is_taken_out_is_told_so_and_reads_no_further() {
    let world = world().await;
    let body = json!({"id": "c", "message": "call:slow"}).to_string();
    let ada = world.user("ada");
    let chat = || async {
        let body = axum::body::Body::from(body.clone());
        ada.raw(http::Method::POST, "/api/chat", body).await
    };
    let response = chat().await;
    let space = response.headers()["toolgate-space-id"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let entity = world
        .engine
        .entity_of(project(1), "ada")
        .await
        .unwrap()
        .unwrap()
        .id;
    world.engine.remove_member(space, entity).await.unwrap();
    let whole = http_body_util::BodyExt::collect(response.into_body())
        .await
        .unwrap();
    let told = chunks(&String::from_utf8(whole.to_bytes().to_vec()).unwrap().into());
    let last = told.last().unwrap();
    assert_eq!(last["type"], "error");
    assert!(last["errorText"].as_str().unwrap().starts_with("ACCESS_ENDED"));
    assert_eq!(chat().await.status(), 404);
}

#[tokio::test]
async fn an_output_that_is_refused_fails_the_call_and_the_chat_goes_on() {
    for later in [false, true] {
        let world = world().await;
        let told = say(&world.backend(), "c", "call:ask").await;
        let call = find(&told, "tool-input-available")["toolCallId"].clone();
        let mut messages = vec![
            json!({"role": "user", "content": "x"}),
            json!({"role": "assistant", "parts": result(&call, json!("no object"))}),
        ];
        if later {
            messages.push(json!({"id": "n", "role": "user", "content": "go on"}));
        }
        let body = json!({"id": "c", "messages": messages});
        let told = chunks(&world.backend().post("/api/chat", body).await.expect(200));
        assert!(
            words(&told).contains(if later { "go on" } else { "the output was refused" }),
            "{told:?}"
        );
    }
}

#[tokio::test]
async fn a_message_is_the_same_only_in_its_chat_and_with_its_words() {
    let world = world().await;
    let post = async |chat: Option<&str>, id: &str, text: &str| {
        let mut body = json!({"messages": [{"id": id, "role": "user", "content": text}]});
        if let Some(chat) = chat {
            body["id"] = chat.into();
        }
        let told = chunks(&world.backend().post("/api/chat", body).await.expect(200));
        (find(&told, "data-run")["data"]["runId"].clone(), words(&told))
    };
    let (first, said) = post(Some("a"), "m", "hello").await;
    assert_eq!(said, "you said hello");
    assert_eq!(post(Some("a"), "m", "hello").await.0, first, "the same message");
    let (edited, said) = post(Some("a"), "m", "goodbye").await;
    assert_ne!(edited, first, "an edited message is a new one");
    assert_eq!(said, "you said goodbye");
    let again = post(Some("a"), "m", "goodbye").await;
    assert_eq!(again, (edited.clone(), said), "the same edited message");
    assert_eq!(
        post(Some("a"), "m", "hello").await.0,
        first,
        "the first one is known still"
    );
    let (third, _) = post(Some("a"), "m", "farewell").await;
    assert!(third != first && third != edited, "edited once more");
    assert_ne!(post(Some("b"), "m", "hello").await.0, first, "another chat");
    let (one, _) = post(None, "m", "hello").await;
    let (two, _) = post(None, "m", "hello").await;
    assert_ne!(one, two, "without an id a new chat begins");
}

#[tokio::test]
async fn the_past_of_a_long_chat_is_its_end() {
    let world = world().await;
    let long = "word ".repeat(10_000);
    for turn in 0..60 {
        let text = format!("{turn} {long}");
        let body =
            json!({"id": "c", "messages": [{"id": turn.to_string(), "role": "user", "content": text}]});
        world.backend().post("/api/chat", body).await.expect(200);
    }
    let past = world.backend().get("/api/chat/c").await.expect(200);
    let messages = past["messages"].as_array().unwrap();
    let last = messages.last().unwrap()["parts"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert!(last["text"].as_str().unwrap().starts_with("you said 59 "));
    assert!(messages.len() < 120, "{} messages", messages.len());
    assert!(past.to_string().len() < 8 << 20);
}

#[tokio::test]
async fn a_message_that_is_refused_leaves_the_calls_before_it_open() {
    let world = world().await;
    let told = say(&world.backend(), "c", "call:ask").await;
    let call = find(&told, "tool-input-available")["toolCallId"].clone();
    let body = json!({"id": "c", "messages": [
        {"role": "user", "content": "x"},
        {"role": "assistant", "parts": result(&call, json!({"n": 1}))},
        {"id": "n", "role": "user", "parts": []},
    ]});
    assert_eq!(
        world.backend().post("/api/chat", body).await.code(422),
        "VALIDATION_FAILED"
    );
    let told = go_on(&world.backend(), "c", result(&call, json!({"n": 2}))).await;
    assert_eq!(
        words(&told),
        r#"got {"n":2}"#,
        "nothing was taken with the refused message"
    );
}

#[tokio::test]
async fn a_result_is_not_dropped_because_the_store_does_not_answer() {
    let world = world().await;
    // Posted past the door, so that the door has to ask the store whose run it is.
    let post = Post {
        user_token: None,
        call: None,
        project: project(1),
        starter: Starter::Backend,
        charged: Charged::Nobody,
        space: None,
        makes_space: false,
        under_way: UnderWay::Join,
        message: Message::new(
            MessageId::new(Uuid::now_v7()),
            None,
            vec![Part::Text {
                text: "call:ask".into(),
            }],
        ),
        answer: Answer::Default,
        client_tools: Vec::new(),
        categories: None,
        history: Vec::new(),
        told: Vec::new(),
        idempotency: None,
    };
    let posted = world.engine.post(post).await.unwrap();
    let call = CallId {
        run: posted.run_id.unwrap(),
        number: 0,
    };
    let chat = posted.space_id.to_string();
    let parts = result(&json!(call.to_string()), json!({"n": 1}));
    for body in [
        json!({"id": chat, "messages": [{"role": "assistant", "parts": parts}]}),
        json!({"id": chat, "messages": [{"role": "assistant", "parts": parts}, {"role": "user", "content": "go on"}]}),
    ] {
        world.faults.refuse(Some("run"));
        let refused = world.backend().post("/api/chat", body).await;
        assert_eq!(refused.code(503), "UNAVAILABLE");
    }
    world.faults.refuse(None);
    let told = go_on(&world.backend(), &chat, parts).await;
    assert_eq!(words(&told), r#"got {"n":1}"#);
}

#[tokio::test]
async fn a_user_at_a_quota_gets_the_answer_to_a_repeated_message() {
    let world = world().await;
    let ada = world.user("ada");
    let post = async |chat: u64, id: &str| {
        let message = json!({"id": id, "role": "user", "parts": [{"type": "text", "text": "call:ask"}]});
        let chat = format!("chat-{chat}");
        ada.post("/api/chat", json!({"id": chat, "messages": [message]}))
            .await
    };
    let run_of = |told: Value| find(&chunks(&told), "data-run")["data"]["runId"].clone();
    let mut first = Vec::new();
    for chat in 0..QUOTAS.open_runs {
        first.push(run_of(post(chat, "m").await.expect(200)));
    }
    for chat in 0..QUOTAS.open_runs {
        assert_eq!(run_of(post(chat, "m").await.expect(200)), first[chat as usize]);
    }
    assert_eq!(post(QUOTAS.open_runs, "m").await.code(429), "QUOTA_EXCEEDED");
}
