//! Other forms of client tools: AG2's, and tools in the parameters with `tasks/resume`.

use http::Method;
use serde_json::{Value, json};
use toolgate_a2a::client_tools::{AG2_CALL, AG2_HISTORY, AG2_RESULT, AG2_SCHEMAS, AG2_URI};

use crate::talk::{Events, ask, refused, result, state_of, text, world};

fn ag2(parts: Value, task: Option<&Value>) -> Value {
    let mut message = json!({"messageId": "m", "role": "ROLE_USER", "extensions": [AG2_URI], "parts": parts});
    if let Some(task) = task {
        message["taskId"] = task.clone();
    }
    json!({"message": message})
}

#[tokio::test(start_paused = true)]
async fn a_client_of_ag2_finds_its_calls_in_artifacts() {
    let world = world().await;
    let user = world.user("ann");
    let tools = json!({"tools": [{
        "name": "get_location", "description": "", "parameters": {"type": "object", "properties": {"accuracy_m": {"type": "integer"}}},
    }]});
    let history = json!({"data": {"events": [{"type": "x"}]}, "mediaType": AG2_HISTORY});
    let schemas = json!({"data": tools, "mediaType": AG2_SCHEMAS});
    let sent = ag2(
        json!([{"text": "call:get_location={\"accuracy_m\":10}"}, schemas, history]),
        None,
    );
    let events = Events::rpc(&user, "SendStreamingMessage", sent)
        .await
        .rest()
        .await;
    let task = events[0].1["task"]["id"].clone();
    let last = &events.last().unwrap().1["statusUpdate"]["status"];
    assert_eq!(
        (&last["state"], &last["message"]),
        (&json!("TASK_STATE_INPUT_REQUIRED"), &Value::Null)
    );
    let artifact = &events[events.len() - 2].1["artifactUpdate"];
    assert_eq!(artifact["lastChunk"], true);
    let part = &artifact["artifact"]["parts"][0];
    assert_eq!(
        (&part["mediaType"], &part["data"]["name"]),
        (&json!(AG2_CALL), &json!("get_location"))
    );
    assert_eq!(part["data"]["arguments"], r#"{"accuracy_m":10}"#);
    assert_eq!(artifact["artifact"]["artifactId"], part["data"]["id"]);

    let results = json!({"results": [{"id": part["data"]["id"], "name": "get_location", "content": "{\"lat\": 1}", "error": null}]});
    let answer = ag2(
        json!([{"data": results, "mediaType": AG2_RESULT}, schemas, history]),
        Some(&task),
    );
    let events = Events::rpc(&user, "SendStreamingMessage", answer)
        .await
        .rest()
        .await;
    // Such clients add up what they read: every text comes once.
    let texts: Vec<&Value> = events
        .iter()
        .map(|(_, event)| &event["artifactUpdate"])
        .filter(|update| update.is_object())
        .collect();
    assert_eq!(texts.len(), 1, "{events:#?}");
    assert_eq!(texts[0]["artifact"]["parts"][0]["text"], r#"got {"lat":1}"#);
    assert_eq!(state_of(&events.last().unwrap().1), "TASK_STATE_COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn the_requests_of_the_seed_work_as_they_are_written() {
    let world = world().await;
    let user = world.user("ann");
    // The seed leaves out the id of the message and its kind, and posts each method to a path of its own.
    let stream = r#"{
      "jsonrpc": "2.0", "id": 1, "method": "message/stream",
      "params": {
        "message": {
          "role": "user",
          "parts": [{ "kind": "text", "text": "call:search_users={\"query\":\"x\"}" }],
          "contextId": "ctx-123"
        },
        "tools": [{ "type": "function", "function": {
          "name": "search_users", "description": "Search users in client system",
          "parameters": { "type": "object", "properties": { "query": { "type": "string" } } }
        }}]
      }
    }"#;
    let body: Value = serde_json::from_str(stream).unwrap();
    let mut events = Events::open(&user, Method::POST, "/a2a/message/stream", Some(body)).await;
    let told = events.until("input-required").await;
    assert_eq!(told[0].1["kind"], "task");
    assert_eq!(told[0].1["contextId"], "ctx-123");
    let paused = &told.last().unwrap().1;
    assert_eq!(
        (&paused["kind"], &paused["final"]),
        (&json!("status-update"), &json!(false))
    );
    let call = &paused["status"]["message"]["toolCalls"][0];
    assert_eq!(
        (&call["type"], &call["function"]["name"]),
        (&json!("function"), &json!("search_users"))
    );
    assert_eq!(call["function"]["arguments"], r#"{"query":"x"}"#);

    let resume = json!({"jsonrpc": "2.0", "id": 2, "method": "tasks/resume", "params": {
        "taskId": paused["taskId"],
        "toolResults": [{"toolCallId": call["id"], "toolName": "search_users", "success": true, "result": {"users": []}}],
    }});
    let resumed = ask(&user, Method::POST, "/a2a/tasks/resume", Some(resume.clone()))
        .await
        .body;
    assert_eq!(
        (&resumed["id"], &resumed["result"]["kind"]),
        (&json!(2), &json!("task")),
        "{resumed:#}"
    );
    // The stream goes on by itself.
    let rest = events.rest().await;
    let done = &rest.last().unwrap().1;
    assert_eq!((state_of(done), &done["final"]), ("completed", &json!(true)));
    let task = result(&user, "tasks/get", json!({"id": paused["taskId"]})).await;
    assert_eq!(text(&task), r#"got {"users":[]}"#);
    // The other shape: a method at the agent's address, here for what is settled already.
    let again = ask(&user, Method::POST, "/a2a", Some(resume)).await.body;
    assert_eq!(again["result"]["status"]["state"], "completed", "{again:#}");
}

#[tokio::test(start_paused = true)]
async fn a_resume_says_what_is_wrong_with_it() {
    let world = world().await;
    let user = world.user("ann");
    let (task, call) = crate::talk::paused(&user).await;
    let resume = |results: Value| json!({"taskId": task["id"], "toolResults": results});
    for (results, field) in [
        (json!(null), "toolResults"),
        (json!([]), "toolResults"),
        (json!([{"success": true}]), "toolResults[0].toolCallId"),
        (json!([{"toolCallId": "call-456"}]), "toolResults[0].toolCallId"),
    ] {
        let told = refused(&user, "tasks/resume", resume(results)).await;
        assert_eq!(told, (-32602, vec![field.to_owned()]));
    }
    assert_eq!(
        refused(&world.user("ben"), "tasks/resume", resume(json!([])))
            .await
            .0,
        -32001
    );
    let failed =
        json!([{"toolCallId": call, "toolName": "get_location", "success": false, "error": "no signal"}]);
    let accepts = user.with("accept", "text/event-stream");
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tasks/resume", "params": resume(failed)});
    let events = Events::open(&accepts, Method::POST, "/a2a/default", Some(body))
        .await
        .rest()
        .await;
    assert_eq!(state_of(&events[0].1), "working");
    assert_eq!(state_of(&events.last().unwrap().1), "completed");
}

#[tokio::test(start_paused = true)]
async fn a_client_of_0_3_speaks_its_own_words() {
    let world = world().await;
    let user = world.user("ann");
    let message = json!({"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hello"}]});
    let task = result(&user, "message/send", json!({"message": message})).await;
    assert_eq!(
        (&task["kind"], &task["status"]["state"]),
        (&json!("task"), &json!("completed"))
    );
    assert_eq!(
        task["artifacts"][0]["parts"][0],
        json!({"kind": "text", "text": "you said hello"})
    );
    assert_eq!(task["history"][0]["role"], "user");
    let events = Events::rpc(&user, "message/stream", json!({"message": message}))
        .await
        .rest()
        .await;
    assert_eq!(events[0].1["kind"], "task");
    assert_eq!(events.last().unwrap().1["final"], true);
    let read = result(&user, "tasks/get", json!({"id": task["id"], "historyLength": 0})).await;
    assert!(read["history"].is_null());
    assert_eq!(
        refused(&user, "tasks/cancel", json!({"id": task["id"]})).await.0,
        -32002
    );
    let card = result(&user, "agent/getAuthenticatedExtendedCard", json!({})).await;
    assert_eq!(card["name"], "default");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_says_nothing_of_tools_leaves_the_form_as_it_was() {
    let world = world().await;
    let user = world.user("ann");
    let message =
        |words: &str| json!({"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": words}]});
    let tools =
        json!([{"name": "search_users", "description": "Search users.", "parameters": {"type": "object"}}]);
    let sent = json!({"message": message("call:search_users={}"), "tools": tools});
    let paused = result(&user, "message/send", sent).await;
    let calls = |task: &Value| task["status"]["message"]["toolCalls"].as_array().map(Vec::len);
    assert_eq!(calls(&paused), Some(1), "{paused:#}");
    let mut more = message("call:search_users={\"again\":true}");
    more["taskId"] = paused["id"].clone();
    let again = result(&user, "message/send", json!({"message": more})).await;
    assert_eq!(
        (&again["id"], calls(&again)),
        (&paused["id"], Some(1)),
        "{again:#}"
    );
}
