use serde_json::{Value, json};

use crate::talk::{ELICIT, Incoming, Session, ask, call, world};

fn retry(arguments: Value, told: &Value, answer: Value) -> Value {
    let key = told["inputRequests"].as_object().unwrap().keys().next().unwrap();
    json!({
        "name": "guarded", "arguments": arguments,
        "requestState": told["requestState"], "inputResponses": {key: answer},
    })
}

#[tokio::test]
async fn a_client_without_tasks_is_asked_for_an_approval_and_comes_back_with_it() {
    let world = world().await;
    let arguments = json!({"to": "you"});
    let asked = call(&world.backend(), "guarded", arguments.clone(), ELICIT).await;
    let told = asked.result();
    assert_eq!(told["resultType"], "input_required");
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let again = retry(arguments, told, yes);
    // Twice: a repeat gets the same answer, and nothing runs again.
    for _ in 0..2 {
        let done = ask(&world.backend(), "tools/call", again.clone(), ELICIT).await;
        assert_eq!(done.result()["resultType"], "complete");
        assert_eq!(done.result()["content"][0]["text"], "{\"to\":\"you\"}");
    }
}

#[tokio::test]
async fn a_no_is_told_to_the_model_with_its_reason() {
    let world = world().await;
    for (answer, words) in [
        (
            json!({"action": "accept", "content": {"approve": false, "reason": "too late"}}),
            "too late",
        ),
        (json!({"action": "decline"}), "DENIED"),
    ] {
        let asked = call(&world.backend(), "guarded", json!({}), ELICIT).await;
        let done = ask(
            &world.backend(),
            "tools/call",
            retry(json!({}), asked.result(), answer),
            ELICIT,
        )
        .await;
        assert_eq!(done.result()["isError"], true);
        let text = done.result()["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn a_state_is_good_for_its_caller_and_its_request_alone() {
    let world = world().await;
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let asked = call(&world.backend(), "guarded", json!({"to": "you"}), ELICIT).await;
    let other_arguments = retry(json!({"to": "them"}), asked.result(), yes.clone());
    let same = retry(json!({"to": "you"}), asked.result(), yes);
    let mut forged = same.clone();
    let state = same["requestState"].as_str().unwrap();
    forged["requestState"] = json!(format!("{}x", &state[..state.len() - 1]));
    for (client, wrong) in [
        (world.backend(), other_arguments),
        (world.backend(), forged),
        (world.stranger(), same.clone()),
    ] {
        let told = ask(&client, "tools/call", wrong, ELICIT).await;
        assert_eq!(told.error()["code"], -32602, "{:?}", told.messages);
    }
    let done = ask(&world.backend(), "tools/call", same, ELICIT).await;
    assert_eq!(done.result()["resultType"], "complete");
}

#[tokio::test]
async fn a_session_is_asked_in_the_middle_of_the_call() {
    let world = world().await;
    let session = Session::begin(&world.backend(), json!({"elicitation": {}})).await;
    let params = json!({"name": "guarded", "arguments": {"to": "you"}});
    let mut incoming = Incoming::of(session.open(session.request("tools/call", params)).await);
    let question = incoming.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"approve": true}},
    });
    assert_eq!(session.post(answer).await.status, 202);
    let done = incoming.next().await.unwrap();
    assert_eq!(done["result"]["content"][0]["text"], "{\"to\":\"you\"}");
}

#[tokio::test]
async fn an_approval_that_somebody_else_gives_ends_the_question() {
    let world = world().await;
    let session = Session::begin(&world.backend(), json!({"elicitation": {}})).await;
    let params = json!({"name": "guarded", "arguments": {"to": "you"}});
    let mut incoming = Incoming::of(session.open(session.request("tools/call", params)).await);
    assert_eq!(incoming.next().await.unwrap()["method"], "elicitation/create");
    let project = toolgate_testkit_http::world::project(1);
    let filter = toolgate_engine::store::RunFilter {
        limit: 1,
        ..Default::default()
    };
    let runs = world.engine.runs(project, filter).await.unwrap().runs;
    let approval = toolgate_kernel::id::CallId {
        run: runs[0].id,
        number: 0,
    }
    .approval();
    let yes = toolgate_engine::intake::Decision::Approve(None);
    let by = toolgate_kernel::tool::Decider::Backend;
    world.engine.decide(approval, yes, by).await.unwrap();
    loop {
        let message = incoming.next().await.unwrap();
        if message.get("result").is_some() {
            assert_eq!(message["result"]["content"][0]["text"], "{\"to\":\"you\"}");
            break;
        }
    }
}

#[tokio::test]
async fn what_a_tool_asks_in_the_middle_of_a_call_is_asked_as_a_form() {
    let world = world().await;
    let project = toolgate_testkit_http::world::project(1);
    let agent = toolgate_testkit_http::world::agent_with_tasks();
    let name = "default".parse().unwrap();
    world
        .engine
        .put_agent(project, &name, agent.into())
        .await
        .unwrap();
    let arguments = json!({"plan": ["ask", "end"]});
    let asked = call(&world.backend(), "work", arguments.clone(), ELICIT).await;
    let told = asked.result();
    assert_eq!(told["resultType"], "input_required", "{told}");
    let (key, question) = told["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["params"]["message"], "Which seat?");
    assert_eq!(question["params"]["requestedSchema"]["required"], json!(["seat"]));
    let again = json!({
        "name": "work", "arguments": arguments, "requestState": told["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"seat": "12A"}}},
    });
    for _ in 0..2 {
        let done = ask(&world.backend(), "tools/call", again.clone(), ELICIT).await;
        let text = done.result()["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.contains("12A"), "{text}");
    }
}
