//! Approvals and questions of tools, also of child runs.

use serde_json::{Value, json};
use toolgate_a2a::client_tools::URI;
use toolgate_testkit_http::client::Client;
use toolgate_testkit_http::world::{agent_with_tasks, project};

use crate::talk::{message, refused, result, text, world};

fn tag<'t>(task: &'t Value, name: &str) -> Option<&'t Value> {
    let parts = task["status"]["message"]["parts"].as_array()?;
    parts
        .iter()
        .map(|part| &part["metadata"][URI][name])
        .find(|tag| tag.is_object())
}

fn answer(task: &Value, tag: Value, data: Value) -> Value {
    json!({"message": {"messageId": "a", "role": "ROLE_USER", "taskId": task["id"], "parts": [
        {"data": data, "metadata": {URI: tag}},
    ]}})
}

async fn say(client: &Client<'_>, words: &str) -> Value {
    result(client, "SendMessage", json!({"message": message(words)})).await["task"].clone()
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_asked_for_and_given_by_a_tagged_part() {
    let world = world().await;
    let user = world.user("ann");
    let task = say(&user, "call:guarded={\"to\":\"bob\"}").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task:#}");
    let asked = tag(&task, "toolApproval").unwrap();
    assert_eq!(
        (&asked["name"], &asked["argumentsJson"]),
        (&json!("guarded"), &json!(r#"{"to":"bob"}"#))
    );
    let wrong = answer(
        &task,
        json!({"toolApprovalResponse": {"approvalId": asked["approvalId"]}}),
        json!({}),
    );
    let told = refused(&user, "SendMessage", wrong).await;
    assert_eq!(
        told,
        (
            -32602,
            vec![format!(
                "message.parts[0].metadata[{URI}].toolApprovalResponse.approved"
            )]
        )
    );
    let yes = answer(&task, asked["answer"].clone(), json!({}));
    let done = result(&user, "SendMessage", yes).await["task"].clone();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done:#}");

    let task = say(&user, "call:guarded={\"to\":\"eve\"}").await;
    let id = &tag(&task, "toolApproval").unwrap()["approvalId"];
    let no = json!({"toolApprovalResponse": {"approvalId": id, "approved": false, "reason": "not eve"}});
    let done = result(&user, "SendMessage", answer(&task, no, json!({}))).await["task"].clone();
    assert!(text(&done).contains("not eve"), "{}", text(&done));
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_tool_is_answered_by_its_form() {
    let world = world().await;
    let name = "default".parse().unwrap();
    world
        .engine
        .put_agent(project(1), &name, agent_with_tasks().into())
        .await
        .unwrap();
    let user = world.user("ann");
    let task = say(&user, "call:work={\"plan\":[\"ask\",\"end\"]}").await;
    let Some(asked) = tag(&task, "toolQuestion") else {
        panic!("{task:#}");
    };
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert!(asked["schemaJson"].is_string(), "{asked}");
    let schema: Value = serde_json::from_str(asked["schemaJson"].as_str().unwrap()).unwrap();
    let members = schema["properties"].as_object().unwrap().keys();
    let filled: Value = members
        .map(|name| (name.clone(), json!("yes")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let done = result(
        &user,
        "SendMessage",
        answer(&task, asked["answer"].clone(), filled),
    )
    .await["task"]
        .clone();
    assert_ne!(done["status"], task["status"], "{done:#}");
}

#[tokio::test(start_paused = true)]
async fn what_server_tools_do_reaches_no_public_key() {
    use toolgate_testkit_http::world::HIDDEN;
    let world = world().await;
    let user = world.user("ann");
    let task = say(&user, "hide:mirror").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(!task.to_string().contains(HIDDEN), "{task:#}");
    let events = crate::talk::Events::rpc(
        &user,
        "SendStreamingMessage",
        json!({"message": message("hide:fail")}),
    );
    let events = events.await.rest().await;
    assert!(
        events
            .iter()
            .all(|(_, event)| !event.to_string().contains(HIDDEN)),
        "{events:#?}"
    );
}
