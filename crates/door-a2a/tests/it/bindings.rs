//! What both bindings check, and REST's own words.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use toolgate_a2a::client_tools::URI;

use crate::talk::{Events, ask, fields, message, paused, state_of, told, world};

#[tokio::test(start_paused = true)]
async fn requests_of_json_rpc_are_checked_in_order() {
    let world = world().await;
    let user = world.user("ann");
    let post = async |client: &toolgate_testkit_http::client::Client<'_>, kind: &str, body: &str| {
        let client = client.with("content-type", kind);
        let told = told(
            client
                .raw(Method::POST, "/a2a/", Body::from(body.to_owned()))
                .await,
        )
        .await;
        assert_eq!(told.status, 200, "{}", told.body);
        (
            told.body["id"].clone(),
            told.body["error"]["code"].as_i64().unwrap_or_default(),
        )
    };
    let get = r#"{"jsonrpc": "2.0", "id": "x", "method": "GetTask", "params": {"id": "y"}}"#;
    let json = "application/json";
    assert_eq!(post(&user, "text/plain", "not json").await, (Value::Null, -32005));
    assert_eq!(post(&user, json, "{").await, (Value::Null, -32700));
    assert_eq!(post(&user, json, "[]").await, (Value::Null, -32600));
    assert_eq!(
        post(&user, json, r#"{"jsonrpc": "2.0", "id": 1, "method": "Nothing"}"#).await,
        (json!(1), -32601)
    );
    assert_eq!(
        post(&user.with("a2a-version", "9.9"), json, get).await,
        (json!("x"), -32009)
    );
    for version in ["1.0", "0.3", ""] {
        assert_eq!(
            post(&user.with("a2a-version", version), json, get).await,
            (json!("x"), -32001),
            "{version}"
        );
    }
    assert_eq!(
        post(&user, "application/a2a+json; charset=utf-8", get).await,
        (json!("x"), -32001)
    );
    let nobody = ask(&world.nobody(), Method::POST, "/a2a", Some(json!({}))).await;
    assert_eq!(nobody.status, 401);
    assert_eq!(ask(&user, Method::GET, "/a2a", None).await.status, 405);
}

#[tokio::test(start_paused = true)]
async fn rest_does_what_json_rpc_does() {
    let world = world().await;
    let user = world.user("ann");
    let base = "/a2a/default";
    let sent = ask(
        &user,
        Method::POST,
        &format!("{base}/message:send"),
        Some(json!({"message": message("hello")})),
    )
    .await;
    assert_eq!(
        (sent.status.as_u16(), sent.header("content-type")),
        (200, "application/json")
    );
    let task = &sent.body["task"];
    let id = task["id"].as_str().unwrap();
    let read = ask(
        &user,
        Method::GET,
        &format!("{base}/tasks/{id}?historyLength=0"),
        None,
    )
    .await
    .body;
    assert_eq!((&read["id"], &read["history"]), (&task["id"], &Value::Null));
    let listed = ask(
        &user,
        Method::GET,
        &format!("{base}/tasks?pageSize=1&includeArtifacts=true"),
        None,
    )
    .await
    .body;
    assert_eq!(&listed["tasks"][0]["id"], &task["id"]);
    assert!(listed["tasks"][0]["artifacts"].is_array());
    let events = Events::open(
        &user,
        Method::POST,
        &format!("{base}/message:stream"),
        Some(json!({"message": message("hello")})),
    )
    .await;
    let events = events.rest().await;
    assert!(events[0].1["task"].is_object() && state_of(&events.last().unwrap().1) == "TASK_STATE_COMPLETED");

    let (paused, _) = paused(&user).await;
    let id = paused["id"].as_str().unwrap();
    let hooks = format!("{base}/tasks/{id}/pushNotificationConfigs");
    let made = ask(
        &user,
        Method::POST,
        &hooks,
        Some(json!({"id": "a b", "url": "https://hook.example"})),
    )
    .await
    .body;
    assert_eq!(made["taskId"], json!(id), "{made:#}");
    assert_eq!(
        ask(&user, Method::GET, &format!("{hooks}/a%20b"), None)
            .await
            .body,
        made
    );
    assert_eq!(
        ask(&user, Method::GET, &hooks, None).await.body["configs"],
        json!([made])
    );
    assert_eq!(
        ask(&user, Method::DELETE, &format!("{hooks}/a%20b"), None)
            .await
            .status,
        200
    );
    assert_eq!(
        ask(&user, Method::GET, &format!("{base}/extendedAgentCard"), None)
            .await
            .body["name"],
        "default"
    );
    let canceled = ask(
        &user,
        Method::POST,
        &format!("{base}/tasks/{id}:cancel"),
        Some(json!({})),
    )
    .await
    .body;
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test(start_paused = true)]
async fn rest_tells_errors_in_its_own_form() {
    let world = world().await;
    let user = world.user("ann");
    let missing = ask(&user, Method::GET, "/a2a/default/tasks/nothing", None).await;
    assert_eq!(missing.status, 404);
    assert_eq!(
        (
            &missing.body["error"]["status"],
            &missing.body["error"]["details"][0]["reason"]
        ),
        (&json!("NOT_FOUND"), &json!("TASK_NOT_FOUND"))
    );
    let empty = ask(&user, Method::POST, "/a2a/default/message:send", Some(json!({}))).await;
    assert_eq!(
        (empty.status.as_u16(), fields(&empty.body["error"]["details"])),
        (400, vec!["message".to_owned()])
    );
    let version = ask(
        &user.with("a2a-version", "0.3"),
        Method::GET,
        "/a2a/default/tasks",
        None,
    )
    .await;
    assert_eq!(
        (
            version.status.as_u16(),
            &version.body["error"]["details"][0]["reason"]
        ),
        (400, &json!("VERSION_NOT_SUPPORTED"))
    );
    let text = user
        .with("content-type", "text/plain")
        .raw(Method::POST, "/a2a/default/message:send", Body::from("x"))
        .await;
    assert_eq!(told(text).await.status, 415);
    let own = user
        .with("content-type", "application/a2a+json")
        .raw(Method::POST, "/a2a/default/message:send", Body::from("{}"))
        .await;
    assert_eq!(told(own).await.header("content-type"), "application/a2a+json");
    assert_eq!(
        ask(&user, Method::GET, "/a2a/default/nothing", None).await.status,
        404
    );
}

#[tokio::test(start_paused = true)]
async fn extensions_that_were_used_are_named_in_the_answer() {
    let world = world().await;
    let user = world.user("ann");
    let body = |method: &str, params: Value| {
        Some(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    };
    let client = user.with("a2a-extensions", &format!("https://other.example/x, {URI}"));
    let told = ask(&client, Method::POST, "/a2a", body("ListTasks", json!({}))).await;
    assert_eq!(told.header("a2a-extensions"), URI);
    let plain = ask(&user, Method::POST, "/a2a", body("ListTasks", json!({}))).await;
    assert_eq!(plain.header("a2a-extensions"), "");
    let tools = crate::talk::message_with_tools("hi", crate::talk::locate());
    let told = ask(
        &user,
        Method::POST,
        "/a2a",
        body("SendMessage", json!({"message": tools})),
    )
    .await;
    assert_eq!(told.header("a2a-extensions"), URI);
}
