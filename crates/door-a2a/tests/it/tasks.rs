//! Tasks: sent, read, canceled, by whom they belong to.

use serde_json::{Value, json};

use crate::talk::{message, paused, refused, result, text, world};

#[tokio::test(start_paused = true)]
async fn a_message_is_answered_by_a_task_that_has_ended() {
    let world = world().await;
    let user = world.user("ann");
    let sent = result(&user, "SendMessage", json!({"message": message("hello")})).await;
    let task = &sent["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task:#}");
    assert_eq!(text(task), "you said hello");
    assert_eq!(task["history"][0]["parts"], json!([{"text": "hello"}]));
    assert_eq!(task["history"][0]["messageId"], "m1");
    let stamp = task["status"]["timestamp"].as_str().unwrap();
    assert!(
        stamp.ends_with('Z') && stamp.len() == "2026-11-18T00:00:00.000Z".len(),
        "{stamp}"
    );

    let read = result(&user, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(&read, task);
    let none = result(&user, "GetTask", json!({"id": task["id"], "historyLength": 0})).await;
    assert!(none["history"].is_null(), "{none:#}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_wait_is_given_the_task_at_once() {
    let world = world().await;
    let user = world.user("ann");
    let sent = json!({"message": message("call:slow"), "configuration": {"returnImmediately": true}});
    let task = result(&user, "SendMessage", sent).await["task"].clone();
    let state = task["status"]["state"].as_str().unwrap();
    assert!(
        ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state),
        "{task:#}"
    );
    let canceled = result(&user, "CancelTask", json!({"id": task["id"]})).await;
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(
        refused(&user, "CancelTask", json!({"id": task["id"]})).await.0,
        -32002
    );
}

#[tokio::test(start_paused = true)]
async fn a_context_is_a_conversation_under_the_name_that_the_client_gave_it() {
    let world = world().await;
    let user = world.user("ann");
    let say = |words: &str| {
        let mut message = message(words);
        message["contextId"] = json!("ctx-123");
        json!({"message": message})
    };
    let first = result(&user, "SendMessage", say("hello")).await["task"].clone();
    let second = result(&user, "SendMessage", say("what was said?")).await["task"].clone();
    assert_eq!(
        (&first["contextId"], &second["contextId"]),
        (&json!("ctx-123"), &json!("ctx-123"))
    );
    assert_ne!(first["id"], second["id"]);
    assert!(text(&second).contains("you said hello"), "{}", text(&second));
    let read = result(&user, "GetTask", json!({"id": first["id"]})).await;
    assert_eq!(read["contextId"], "ctx-123");

    // The same name of another user is another conversation.
    let other = world.user("ben");
    let theirs = result(&other, "SendMessage", say("what was said?")).await["task"].clone();
    assert!(!text(&theirs).contains("you said hello"), "{}", text(&theirs));
}

#[tokio::test(start_paused = true)]
async fn a_task_of_somebody_else_is_not_found() {
    let world = world().await;
    let (task, _) = paused(&world.user("ann")).await;
    let stranger = world.stranger();
    for other in [&world.user("ben"), &stranger] {
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            assert_eq!(
                refused(other, method, json!({"id": task["id"]})).await.0,
                -32001,
                "{method}"
            );
        }
        let mut answer = message("hello");
        answer["taskId"] = task["id"].clone();
        assert_eq!(
            refused(other, "SendMessage", json!({"message": answer})).await.0,
            -32001
        );
        let of = json!({"taskId": task["id"], "id": "x", "url": "https://hook.example"});
        for method in ["Create", "Get", "Delete"] {
            let method = format!("{method}TaskPushNotificationConfig");
            assert_eq!(refused(other, &method, of.clone()).await.0, -32001, "{method}");
        }
    }
    for id in ["run_0000000000000000000000000", "nonsense", ""] {
        let code = refused(&world.backend(), "GetTask", json!({"id": id})).await.0;
        assert_eq!(code, if id.is_empty() { -32602 } else { -32001 }, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_ended_task_takes_no_more_messages() {
    let world = world().await;
    let user = world.user("ann");
    let task = result(&user, "SendMessage", json!({"message": message("hello")})).await["task"].clone();
    let mut more = message("more");
    more["taskId"] = task["id"].clone();
    assert_eq!(
        refused(&user, "SendMessage", json!({"message": more})).await.0,
        -32004
    );
    assert_eq!(
        refused(&user, "SubscribeToTask", json!({"id": task["id"]}))
            .await
            .0,
        -32004
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_message_is_told_by_its_fields() {
    let world = world().await;
    let user = world.user("ann");
    let (task, _) = paused(&user).await;
    let mut elsewhere = message("hello");
    elsewhere["taskId"] = task["id"].clone();
    elsewhere["contextId"] = json!("another");
    let raw = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"raw": "/w==", "mediaType": "application/zip"}]});
    let cases: [(Value, i64, &[&str]); 5] = [
        (json!({}), -32602, &["message"]),
        (
            json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}}),
            -32602,
            &["message.parts"],
        ),
        (
            json!({"message": message("a"), "configuration": {"historyLength": -1}}),
            -32602,
            &["configuration.historyLength"],
        ),
        (json!({"message": elsewhere}), -32602, &["message.contextId"]),
        (json!({"message": raw}), -32005, &[]),
    ];
    for (params, code, fields) in cases {
        let told = refused(&user, "SendMessage", params.clone()).await;
        assert_eq!(
            told,
            (code, fields.iter().map(ToString::to_string).collect()),
            "{params}"
        );
    }
}
