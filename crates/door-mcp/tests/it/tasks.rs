use serde_json::{Value, json};
use toolgate_engine::intake::Submission;
use toolgate_kernel::id::{CallId, RunId};

use crate::talk::{Can, NOTHING, TASKS, ask, call, world};

/// A client that takes tasks and can ask its person.
const BOTH: Can = Can {
    tasks: true,
    elicit: true,
};

fn first_call(task: &Value) -> CallId {
    let run: RunId = task["taskId"].as_str().unwrap().parse().unwrap();
    CallId { run, number: 0 }
}

#[tokio::test]
async fn a_call_that_a_client_executes_is_a_task_until_it_has_answered() {
    let world = world().await;
    let answer = call(&world.backend(), "ask", json!({"q": 1}), TASKS).await;
    let task = answer.result();
    assert_eq!(task["resultType"], "task");
    assert_eq!(task["status"], "working");
    assert!(task["pollIntervalMs"].as_u64().unwrap() > 0);
    let named = json!({"taskId": task["taskId"]});
    let open = ask(&world.backend(), "tasks/get", named.clone(), TASKS).await;
    assert_eq!(open.result()["status"], "working");
    let output = Submission::Output(json!({"a": 2}).into());
    world.engine.submit(first_call(task), output, None).await.unwrap();
    let done = ask(&world.backend(), "tasks/get", named.clone(), TASKS).await;
    assert_eq!(done.result()["status"], "completed");
    assert_eq!(done.result()["result"]["structuredContent"], json!({"a": 2}));
    // The same again: nothing is used up by asking.
    let again = ask(&world.backend(), "tasks/get", named.clone(), TASKS).await;
    assert_eq!(again.result(), done.result());
    // To others there is no such task.
    let other = ask(&world.stranger(), "tasks/get", named.clone(), TASKS).await;
    assert_eq!(other.error()["code"], -32602);
    let user = ask(&world.user("ann"), "tasks/get", named, TASKS).await;
    assert_eq!(user.error()["code"], -32602);
}

#[tokio::test]
async fn a_failed_call_is_a_completed_task_with_an_error_for_the_model() {
    let world = world().await;
    let answer = call(&world.backend(), "ask", json!({}), TASKS).await;
    let output = Submission::Error("no such button".into());
    world
        .engine
        .submit(first_call(answer.result()), output, None)
        .await
        .unwrap();
    let named = json!({"taskId": answer.result()["taskId"]});
    let done = ask(&world.backend(), "tasks/get", named, TASKS).await;
    assert_eq!(done.result()["status"], "completed");
    assert_eq!(done.result()["result"]["isError"], true);
    let words = done.result()["result"]["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(words.contains("no such button"), "{words}");
}

#[tokio::test]
async fn a_task_is_cancelled_by_whoever_may_reach_it() {
    let world = world().await;
    let answer = call(&world.backend(), "ask", json!({}), TASKS).await;
    let named = json!({"taskId": answer.result()["taskId"]});
    let other = ask(&world.stranger(), "tasks/cancel", named.clone(), TASKS).await;
    assert_eq!(other.error()["code"], -32602);
    let told = ask(&world.backend(), "tasks/cancel", named.clone(), TASKS).await;
    assert_eq!(told.result()["resultType"], "complete");
    let gone = ask(&world.backend(), "tasks/get", named, TASKS).await;
    assert_eq!(gone.result()["status"], "cancelled");
}

#[tokio::test]
async fn an_approval_of_a_task_is_answered_with_an_update() {
    let world = world().await;
    let answer = call(&world.backend(), "guarded", json!({"to": "you"}), BOTH).await;
    let named = json!({"taskId": answer.result()["taskId"]});
    assert_eq!(answer.result()["status"], "input_required");
    let open = ask(&world.backend(), "tasks/get", named.clone(), BOTH).await;
    let requests = open.result()["inputRequests"].as_object().unwrap().clone();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    assert!(
        request["params"]["message"]
            .as_str()
            .unwrap()
            .contains("{\"to\":\"you\"}")
    );
    let edited = json!({"approve": true, "input": "{\"to\": \"them\"}"});
    let mut update = named.clone();
    update["inputResponses"] = json!({key: {"action": "accept", "content": edited}});
    for _ in 0..2 {
        let told = ask(&world.backend(), "tasks/update", update.clone(), BOTH).await;
        assert_eq!(told.result()["resultType"], "complete");
    }
    let done = poll(&world, &named).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(done["result"]["content"][0]["text"], "{\"to\": \"them\"}");
}

/// The task once it has ended. The run goes on beside this test, so it is asked for again.
async fn poll(world: &toolgate_testkit_http::world::World, named: &Value) -> Value {
    loop {
        let told = ask(&world.backend(), "tasks/get", named.clone(), TASKS).await;
        if told.result()["status"] != "working" {
            return told.result().clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tasks_are_for_clients_that_declare_them() {
    let world = world().await;
    let answer = call(&world.backend(), "ask", json!({}), TASKS).await;
    let named = json!({"taskId": answer.result()["taskId"]});
    let told = ask(&world.backend(), "tasks/get", named, NOTHING).await;
    assert_eq!(told.status, 400);
    assert_eq!(told.error()["code"], -32021);
    let unknown = ask(&world.backend(), "tasks/get", json!({"taskId": "x"}), TASKS).await;
    assert_eq!(unknown.error()["code"], -32602);
    // Nobody is asked through a client that cannot ask.
    let mute = call(&world.backend(), "guarded", json!({}), TASKS).await;
    assert_eq!(mute.result()["status"], "working");
}
