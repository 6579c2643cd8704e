//! Tools that the client brings: offered, called, answered, in part, twice, too late.

use serde_json::{Value, json};
use toolgate_a2a::client_tools::URI;

use crate::talk::{
    Events, brief, calls, locate, message, message_with_tools, paused, refused, result, result_message, rpc,
    state_of, text, world,
};

#[tokio::test(start_paused = true)]
async fn a_call_is_asked_for_exactly_and_its_result_goes_to_the_model() {
    let world = world().await;
    let user = world.user("ann");
    let (task, call) = paused(&user).await;
    let asked = &task["status"]["message"];
    assert_eq!(asked["role"], "ROLE_AGENT");
    assert_eq!(
        asked["parts"][0]["text"],
        "Waiting for the client to run get_location."
    );
    assert_eq!(asked["parts"][1]["data"], json!({"accuracy_m": 10}));
    assert_eq!(asked["extensions"], json!([URI]));
    let told = &calls(&task)[0];
    assert_eq!(told["argumentsJson"], r#"{"accuracy_m":10}"#);
    assert!(
        told["expiresAt"]
            .as_str()
            .is_some_and(|moment| moment.ends_with('Z')),
        "{told}"
    );
    // The tools are kept with the run, not with the message.
    assert!(task["history"][0]["metadata"].is_null(), "{task:#}");

    let answer = json!({"message": result_message(&task, &call, json!({"lat": 52.5, "floor": 3.0}))});
    let done = result(&user, "SendMessage", answer.clone()).await["task"].clone();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(
        (&done["id"], text(&done)),
        (&task["id"], r#"got {"lat":52.5,"floor":3}"#.to_owned())
    );
    // Sent again, as after a lost response, it is the same answer; another one is told the winner.
    let again = result(&user, "SendMessage", answer).await["task"].clone();
    assert_eq!(again, done);
    let other = json!({"message": result_message(&task, &call, json!({"lat": 0}))});
    let told = rpc(&user, "SendMessage", other).await;
    assert!(told["error"]["data"].to_string().contains("winner"), "{told:#}");
}

#[tokio::test(start_paused = true)]
async fn the_first_event_after_a_resume_is_the_task_at_work() {
    let world = world().await;
    let user = world.user("ann");
    let (task, call) = paused(&user).await;
    let answer = json!({"message": result_message(&task, &call, json!({"lat": 1}))});
    let events = Events::rpc(&user, "SendStreamingMessage", answer)
        .await
        .rest()
        .await;
    assert_eq!(
        events[0].1["task"]["status"]["state"], "TASK_STATE_WORKING",
        "{events:#?}"
    );
    assert_eq!(state_of(&events.last().unwrap().1), "TASK_STATE_COMPLETED");
}

#[tokio::test(start_paused = true)]
async fn results_may_come_in_part_and_twice_but_not_otherwise() {
    let world = world().await;
    let user = world.user("ann");
    let words = "call:get_location={\"accuracy_m\":1} call:get_location={\"accuracy_m\":2}";
    let sent = json!({"message": message_with_tools(words, locate())});
    let task = result(&user, "SendMessage", sent).await["task"].clone();
    let ids: Vec<String> = calls(&task)
        .iter()
        .map(|call| call["callId"].as_str().unwrap().to_owned())
        .collect();
    let answer = |call: &str, data: Value| json!({"message": result_message(&task, call, data)});

    let first = result(&user, "SendMessage", answer(&ids[1], json!("two"))).await["task"].clone();
    assert_eq!(first["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(calls(&first).len(), 1);
    assert_eq!(calls(&first)[0]["callId"], json!(ids[0]));
    let again = result(&user, "SendMessage", answer(&ids[1], json!("two"))).await["task"].clone();
    assert_eq!(again["status"], first["status"]);

    let other = rpc(&user, "SendMessage", answer(&ids[1], json!("three"))).await;
    assert_eq!(other["error"]["code"], -32602, "{other:#}");
    let info = other["error"]["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|detail| detail["reason"] == "CONFLICT");
    let winner = info.unwrap()["metadata"]["winner"].as_str().unwrap();
    assert!(winner.contains(&ids[1]), "{winner}");
    let unknown = ids[1].replace("_1", "_9");
    assert_eq!(
        refused(&user, "SendMessage", answer(&unknown, json!(1))).await.0,
        -32602
    );
    assert_eq!(
        refused(&user, "SendMessage", answer("call_x", json!(1))).await.0,
        -32602
    );

    let done = result(&user, "SendMessage", answer(&ids[0], json!("one"))).await["task"].clone();
    assert_eq!(text(&done), "got \"one\" and \"two\"");
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_and_several_parts_are_one_result() {
    let world = world().await;
    let user = world.user("ann");
    let (task, call) = paused(&user).await;
    let part = |content: Value, failed: bool| {
        let mut part = content;
        part["metadata"] = json!({URI: {"toolResult": {"callId": call, "isError": failed}}});
        part
    };
    let answer = |parts: Value| json!({"message": {"messageId": "m", "role": "ROLE_USER", "taskId": task["id"], "parts": parts}});
    let mixed = json!([part(json!({"text": "no"}), true), part(json!({"data": 1}), false)]);
    assert_eq!(refused(&user, "SendMessage", answer(mixed)).await.0, -32602);
    let broken = json!([part(json!({"text": "{", "mediaType": "application/json"}), false)]);
    let told = refused(&user, "SendMessage", answer(broken)).await;
    assert_eq!(told, (-32602, vec!["message.parts[0].text".to_owned()]));
    let exact = json!([
        part(
            json!({"text": "9007199254740993", "mediaType": "application/json"}),
            false
        ),
        part(json!({"text": "and words"}), false),
    ]);
    let done = result(&user, "SendMessage", answer(exact)).await["task"].clone();
    assert_eq!(text(&done), r#"got [9007199254740993,"and words"]"#);

    let (task, call) = paused(&user).await;
    let failed = json!({"messageId": "m", "role": "ROLE_USER", "taskId": task["id"], "parts": [
        {"text": "no signal", "metadata": {URI: {"toolResult": {"callId": call, "isError": true}}}},
    ]});
    let done = result(&user, "SendMessage", json!({"message": failed})).await["task"].clone();
    assert!(text(&done).contains("no signal"), "{}", text(&done));
}

#[tokio::test(start_paused = true)]
async fn a_message_without_results_is_the_user_speaking() {
    let world = world().await;
    let user = world.user("ann");
    let (task, call) = paused(&user).await;
    let mut speaks = message("never mind");
    speaks["taskId"] = task["id"].clone();
    let events = Events::rpc(&user, "SendStreamingMessage", json!({"message": speaks}))
        .await
        .rest()
        .await;
    assert_eq!(events[0].1["task"]["status"]["state"], "TASK_STATE_WORKING");
    let done = result(&user, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(done["history"].as_array().map(Vec::len), Some(2));
    let late = json!({"message": result_message(&task, &call, json!(1))});
    assert_eq!(refused(&user, "SendMessage", late).await.0, -32602);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_answers_ends_and_the_task_goes_on() {
    let world = world().await;
    let user = world.user("ann");
    let (task, _) = paused(&user).await;
    let mut events = Events::rpc(&user, "SubscribeToTask", json!({"id": task["id"]})).await;
    let (_, first) = events.next().await.unwrap();
    assert_eq!(state_of(&first), "TASK_STATE_INPUT_REQUIRED");
    let rest = events.until("TASK_STATE_COMPLETED").await;
    assert_eq!(state_of(&rest[0].1), "TASK_STATE_WORKING", "{rest:#?}");
    assert!(
        rest.iter().any(|event| brief(event).contains("in time")),
        "{rest:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn tools_are_checked_before_there_is_a_task() {
    let world = world().await;
    let user = world.user("ann");
    let at = format!("message.metadata[{URI}].tools");
    let tool = |name: &str, schema: Value| json!({"name": name, "description": "d", "inputSchema": schema});
    let object = json!({"type": "object"});
    let cases = [
        (json!("all"), vec![at.clone()]),
        (
            json!([tool("a b", object.clone())]),
            vec![format!("{at}[0].name")],
        ),
        (json!([tool("ask", object.clone())]), vec![format!("{at}[0]")]),
        (
            json!([tool("a", json!({"type": "string"}))]),
            vec![format!("{at}[0].inputSchema")],
        ),
        (
            json!([
                tool("a", object.clone()),
                tool(
                    "a",
                    json!({"type": "object", "properties": {"x": {"$ref": "#/y"}}})
                )
            ]),
            vec![format!("{at}[1].inputSchema.properties.x.$ref")],
        ),
    ];
    for (tools, mut expected) in cases {
        let (code, mut fields) = refused(
            &user,
            "SendMessage",
            json!({"message": message_with_tools("hi", tools.clone())}),
        )
        .await;
        fields.sort();
        expected.sort();
        assert_eq!((code, fields), (-32602, expected), "{tools}");
    }
    let none = result(&user, "ListTasks", json!({})).await;
    assert_eq!((&none["tasks"], &none["totalSize"]), (&json!([]), &json!(0)));

    // MCP's further members, and numbers that went through protobuf.
    let mcp = json!([{
        "name": "get_location", "title": "Where", "annotations": {"readOnlyHint": true},
        "inputSchema": {"type": "object", "properties": {"accuracy_m": {"type": "integer", "minimum": 1.0}}},
    }]);
    let sent = json!({"message": message_with_tools("call:get_location={\"accuracy_m\":10}", mcp)});
    let task = result(&user, "SendMessage", sent).await["task"].clone();
    assert_eq!(calls(&task).len(), 1, "{task:#}");
}

#[tokio::test(start_paused = true)]
async fn a_task_keeps_the_tools_that_it_began_with() {
    let world = world().await;
    let user = world.user("ann");
    let (task, _) = paused(&user).await;
    let mut same = message_with_tools("hello", locate());
    same["taskId"] = task["id"].clone();
    let mut other = same.clone();
    other["metadata"][URI]["tools"][0]["name"] = json!("get_altitude");
    let told = refused(&user, "SendMessage", json!({"message": other})).await;
    assert_eq!(told, (-32602, vec![format!("message.metadata[{URI}].tools")]));
    let still = result(&user, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(still["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let done = result(&user, "SendMessage", json!({"message": same})).await["task"].clone();
    assert_eq!(done["id"], task["id"]);
}
