//! Push configurations.

use serde_json::{Value, json};

use crate::talk::{message, paused, refused, result, world};

#[tokio::test(start_paused = true)]
async fn configurations_are_kept_listed_and_deleted() {
    let world = world().await;
    let user = world.user("ann");
    let (task, _) = paused(&user).await;
    let id = &task["id"];
    let config = json!({"taskId": id, "id": "c1", "url": "https://hook.example/x", "token": "t",
        "authentication": {"scheme": "Bearer", "credentials": "secret"}});
    let made = result(&user, "CreateTaskPushNotificationConfig", config.clone()).await;
    assert_eq!(
        made,
        json!({"id": "c1", "url": "https://hook.example/x", "token": "t",
        "authentication": {"scheme": "Bearer", "credentials": "secret"}, "taskId": id})
    );
    let unnamed = json!({"taskId": id, "url": "https://hook.example/y"});
    let second = result(&user, "CreateTaskPushNotificationConfig", unnamed).await;
    assert!(second["id"].as_str().is_some_and(|id| !id.is_empty()));
    let of = |config: &Value| json!({"taskId": id, "id": config["id"]});
    assert_eq!(
        result(&user, "GetTaskPushNotificationConfig", of(&made)).await,
        made
    );
    let listed = result(&user, "ListTaskPushNotificationConfigs", json!({"taskId": id})).await;
    assert_eq!(listed["configs"].as_array().map(Vec::len), Some(2));
    for _ in 0..2 {
        assert_eq!(
            result(&user, "DeleteTaskPushNotificationConfig", of(&made)).await,
            json!({})
        );
    }
    assert_eq!(
        refused(&user, "GetTaskPushNotificationConfig", of(&made)).await.0,
        -32001
    );

    let old = result(&user, "tasks/pushNotificationConfig/list", json!({"id": id})).await;
    assert_eq!(old[0]["pushNotificationConfig"]["url"], "https://hook.example/y");
    for (url, field) in [("ftp://x", "url"), ("", "url")] {
        let wrong = json!({"taskId": id, "url": url});
        assert_eq!(
            refused(&user, "CreateTaskPushNotificationConfig", wrong).await,
            (-32602, vec![field.to_owned()])
        );
    }
    for scheme in ["B\r\nX: y", "", &"S".repeat(65)] {
        let wrong =
            json!({"taskId": id, "url": "https://hook.example/x", "authentication": {"scheme": scheme}});
        assert_eq!(
            refused(&user, "CreateTaskPushNotificationConfig", wrong).await,
            (-32602, vec!["authentication.scheme".to_owned()])
        );
    }
    let wrong = json!({"taskId": id, "url": "https://hook.example/x", "id": "a\u{0}b"});
    assert_eq!(
        refused(&user, "CreateTaskPushNotificationConfig", wrong).await,
        (-32602, vec!["id".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_may_bring_its_configuration() {
    let world = world().await;
    let user = world.user("ann");
    let push = json!({"url": "https://hook.example/z"});
    let sent = json!({"message": message("hello"), "configuration": {"taskPushNotificationConfig": push}});
    let task = result(&user, "SendMessage", sent).await["task"].clone();
    let listed = result(
        &user,
        "ListTaskPushNotificationConfigs",
        json!({"taskId": task["id"]}),
    )
    .await;
    assert_eq!(listed["configs"][0]["url"], "https://hook.example/z");
}

#[tokio::test(start_paused = true)]
async fn a_task_has_so_many_configurations_and_no_more() {
    let world = world().await;
    let user = world.user("ann");
    let (task, _) = paused(&user).await;
    let config = |n: usize| json!({"taskId": task["id"], "id": n.to_string(), "url": "https://hook.example"});
    for n in 0..16 {
        result(&user, "CreateTaskPushNotificationConfig", config(n)).await;
    }
    assert_eq!(
        refused(&user, "CreateTaskPushNotificationConfig", config(16))
            .await
            .0,
        -32602
    );
    result(&user, "CreateTaskPushNotificationConfig", config(3)).await;
}
