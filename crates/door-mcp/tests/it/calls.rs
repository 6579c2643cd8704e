use serde_json::json;

use crate::talk::{Can, Incoming, NOTHING, Session, call, modern, send, world};

#[tokio::test]
async fn a_tool_is_called_in_both_eras() {
    let world = world().await;
    let answer = call(&world.backend(), "mirror", json!({"to": "you"}), NOTHING).await;
    let result = answer.result();
    assert_eq!(
        result["content"],
        json!([{"type": "text", "text": "{\"to\":\"you\"}"}])
    );
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result.get("structuredContent"), None);
    let run = result["_meta"]["toolgate/run"].as_str().unwrap();
    let record = world.engine.run(run.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(record.tool.unwrap().as_str(), "mirror");

    let session = Session::begin(&world.backend(), json!({})).await;
    let params = json!({"name": "mirror", "arguments": {"to": "you"}});
    let answer = session.ask("tools/call", params).await;
    let result = answer.result();
    assert_eq!(result["content"][0]["text"], "{\"to\":\"you\"}");
    assert_eq!(result.get("resultType"), None);
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_told_to_whom_it_concerns() {
    let world = world().await;
    let unknown = call(&world.backend(), "nothing", json!({}), NOTHING).await;
    assert_eq!(unknown.error()["code"], -32602);
    // A user learns nothing of a tool on the gateway's side.
    let hidden = call(&world.user("ann"), "mirror", json!({}), NOTHING).await;
    assert_eq!(hidden.error()["code"], -32602);
    let wrong = call(&world.backend(), "guarded", json!({"to": 3}), NOTHING).await;
    assert_eq!(wrong.result()["isError"], true);
    let words = wrong.result()["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("to"), "{words}");
    let failed = call(&world.backend(), "fail", json!({}), NOTHING).await;
    assert_eq!(failed.result()["isError"], true);
    let words = failed.result()["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("EXECUTION_FAILED: no luck"), "{words}");
}

#[tokio::test]
async fn an_agent_is_asked_and_the_conversation_goes_on_in_its_space() {
    let world = world().await;
    let user = world.user("ann");
    let answer = call(&user, "ask_default", json!({"message": "good day"}), NOTHING).await;
    let said = &answer.result()["structuredContent"];
    assert_eq!(said["answer"], "you said good day");
    let space = said["space"].clone();
    let again = json!({"message": "what was said?", "space": space});
    let answer = call(&user, "ask_default", again, NOTHING).await;
    let said = answer.result()["structuredContent"]["answer"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(said.contains("good day"), "{said}");
    let elsewhere = json!({"message": "hello", "space": said});
    assert_eq!(
        call(&user, "ask_default", elsewhere, NOTHING).await.result()["isError"],
        true
    );
    let theirs = json!({"message": "hello", "space": space});
    let other = call(&world.user("bob"), "ask_default", theirs, NOTHING).await;
    assert_eq!(other.error()["code"], -32602);
}

#[tokio::test]
async fn a_user_calls_in_a_space_of_its_own_unless_it_names_one() {
    let world = world().await;
    let user = world.user("ann");
    let mut spaces = Vec::new();
    for _ in 0..2 {
        let answer = call(&user, "open_mirror", json!({}), NOTHING).await;
        spaces.push(answer.result()["_meta"]["toolgate/space"].clone());
    }
    assert_eq!(spaces[0], spaces[1]);
    let other = call(&world.user("bob"), "open_mirror", json!({}), NOTHING).await;
    assert_ne!(other.result()["_meta"]["toolgate/space"], spaces[0]);
    let params = json!({"name": "open_mirror", "_meta": {"toolgate/space": spaces[0]}});
    let stranger = crate::talk::ask(&world.user("bob"), "tools/call", params, NOTHING).await;
    assert_eq!(stranger.error()["code"], -32602);
}

#[tokio::test]
async fn progress_is_told_on_the_stream_of_the_call() {
    let world = world().await;
    world.tools.gate.add_permits(1);
    let params =
        json!({"name": "slow", "arguments": {"progress": 3, "total": 7}, "_meta": {"progressToken": "p"}});
    let answer = crate::talk::ask(&world.backend(), "tools/call", params, NOTHING).await;
    let notices = answer.notices("notifications/progress");
    assert_eq!(
        notices[0]["params"]["progressToken"], "p",
        "{:?}",
        answer.messages
    );
    assert_eq!(notices[0]["params"]["progress"].as_f64(), Some(3.0));
    assert_eq!(notices[0]["params"]["total"].as_f64(), Some(7.0));
    assert_eq!(
        answer.result()["content"][0]["text"],
        "{\"progress\":3,\"total\":7}"
    );
}

#[tokio::test]
async fn closing_the_request_cancels_the_call() {
    let world = world().await;
    let params = json!({"name": "slow", "arguments": {"n": 1}, "_meta": {"progressToken": 1}});
    let response = send(&world.backend(), &modern("tools/call", params, NOTHING)).await;
    let mut incoming = Incoming::of(response);
    assert_eq!(incoming.next().await.unwrap()["method"], "notifications/progress");
    drop(incoming);
    world.tools.cancels()[0].cancelled().await;
}

#[tokio::test]
async fn a_cancelled_notice_of_a_session_cancels_the_call() {
    let world = world().await;
    let session = Session::begin(&world.backend(), json!({})).await;
    let params = json!({"name": "slow", "arguments": {"n": 1}, "_meta": {"progressToken": 1}});
    let request = session.request("tools/call", params);
    let id = request["id"].clone();
    let mut incoming = Incoming::of(session.open(request).await);
    assert_eq!(incoming.next().await.unwrap()["method"], "notifications/progress");
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    assert_eq!(session.post(cancelled).await.status, 202);
    world.tools.cancels()[0].cancelled().await;
}

#[tokio::test]
async fn a_header_that_says_something_else_than_the_body_is_refused() {
    let world = world().await;
    let message = modern("tools/call", json!({"name": "mirror"}), NOTHING);
    let client = world
        .backend()
        .with("accept", "application/json, text/event-stream")
        .with("content-type", "application/json")
        .with("host", "127.0.0.1")
        .with("mcp-protocol-version", crate::talk::MODERN)
        .with("mcp-method", "tools/call")
        .with("mcp-name", "guarded");
    let response = client
        .raw(
            http::Method::POST,
            "/mcp",
            axum::body::Body::from(message.to_string()),
        )
        .await;
    let told = crate::talk::read(response).await;
    assert_eq!(told.status, 400);
    assert_eq!(told.error()["code"], -32020);
}

#[tokio::test]
async fn the_capabilities_of_one_request_are_not_those_of_the_next() {
    let world = world().await;
    let both = Can {
        tasks: true,
        elicit: true,
    };
    let task = call(&world.backend(), "guarded", json!({"to": "x"}), both).await;
    assert_eq!(task.result()["resultType"], "task");
    let form = call(
        &world.backend(),
        "guarded",
        json!({"to": "x"}),
        crate::talk::ELICIT,
    )
    .await;
    assert_eq!(form.result()["resultType"], "input_required");
}
