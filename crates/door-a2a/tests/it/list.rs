//! Lists of tasks.

use serde_json::{Value, json};

use crate::talk::{message, paused, refused, result, world};

fn ids(page: &Value) -> Vec<&str> {
    page["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["id"].as_str().unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_callers_tasks_are_listed_by_their_newest_status_in_pages() {
    let world = world().await;
    let (ann, ben) = (world.user("ann"), world.user("ben"));
    let mut sent = Vec::new();
    for _ in 0..5 {
        world.clock.jump(1000);
        let task = result(&ann, "SendMessage", json!({"message": message("hello")})).await["task"].clone();
        sent.push(task["id"].as_str().unwrap().to_owned());
    }
    result(&ben, "SendMessage", json!({"message": message("hello")})).await;
    sent.reverse();

    let all = result(&ann, "ListTasks", json!({})).await;
    assert_eq!(ids(&all), sent);
    assert_eq!(
        (&all["totalSize"], &all["pageSize"], &all["nextPageToken"]),
        (&json!(5), &json!(50), &json!(""))
    );
    assert!(
        all["tasks"][0]["artifacts"].is_null() && all["tasks"][0]["history"].is_null(),
        "{all:#}"
    );
    let more = result(
        &ann,
        "ListTasks",
        json!({"includeArtifacts": true, "historyLength": 1, "pageSize": 1}),
    )
    .await;
    assert!(
        more["tasks"][0]["artifacts"].is_array() && more["tasks"][0]["history"].is_array(),
        "{more:#}"
    );

    let (mut seen, mut token) = (Vec::new(), json!(""));
    loop {
        let page = result(&ann, "ListTasks", json!({"pageSize": 2, "pageToken": token})).await;
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        assert_eq!(page["totalSize"], 5);
        token = page["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    assert_eq!(seen, sent);
    let everybody = result(&world.backend(), "ListTasks", json!({})).await;
    assert_eq!(everybody["totalSize"], 6);
}

#[tokio::test(start_paused = true)]
async fn a_list_keeps_to_its_filter() {
    let world = world().await;
    let user = world.user("ann");
    let (waits, _) = paused(&user).await;
    let mut named = message("hello");
    named["contextId"] = json!("ctx-1");
    let done = result(&user, "SendMessage", json!({"message": named})).await["task"].clone();
    let list = async |filter: Value| result(&user, "ListTasks", filter).await;
    let waiting = list(json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await;
    assert_eq!(ids(&waiting), [waits["id"].as_str().unwrap()]);
    assert_eq!(waiting["tasks"][0]["status"], waits["status"]);
    assert_eq!(
        ids(&list(json!({"contextId": "ctx-1"})).await),
        [done["id"].as_str().unwrap()]
    );
    assert_eq!(ids(&list(json!({"contextId": "ctx-2"})).await).len(), 0);
    assert_eq!(
        ids(&list(json!({"status": "TASK_STATE_REJECTED"})).await).len(),
        0
    );
    assert_eq!(
        ids(&list(json!({"statusTimestampAfter": "2999-01-01T00:00:00Z"})).await).len(),
        0
    );
    for (filter, field) in [
        (json!({"pageSize": 0}), "pageSize"),
        (json!({"pageSize": 101}), "pageSize"),
        (json!({"pageToken": "x"}), "pageToken"),
        (json!({"status": "DONE"}), "status"),
        (json!({"historyLength": -1}), "historyLength"),
        (json!({"statusTimestampAfter": "soon"}), "statusTimestampAfter"),
    ] {
        assert_eq!(
            refused(&user, "ListTasks", filter).await,
            (-32602, vec![field.to_owned()])
        );
    }
}
