//! What users of one server learn of each other: nothing.

use reqwest::StatusCode;
use serde_json::json;
use toolgate_kernel::agent::Access;
use toolgate_testkit_mcp::Eras;

use crate::caller::{Caller, Incoming, response};
use crate::gateway::{By, Gateway};

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_that_names_no_request_goes_to_no_other_user() {
    let gateway = Gateway::before(Eras::Modern, By::Pipe).await;
    let [ann, bob] = ["ann", "bob"].map(|name| Caller::user(&gateway.url, name));
    let params = |tool: &str| {
        json!({"name": tool, "arguments": {}, "_meta": {
            "progressToken": tool, "io.modelcontextprotocol/logLevel": "debug"}})
    };
    let mut anns = Incoming::of(ann.open("tools/call", params("log_when_watched")).await);
    assert_eq!(anns.next().await.unwrap()["method"], "notifications/progress");
    // Ann's call logs while Bob's is under way, which shares the pipe and is the newer one.
    let mut bobs = Incoming::of(bob.open("tools/call", params("watch")).await);
    loop {
        let message = bobs.next().await.unwrap();
        assert_ne!(
            message["method"], "notifications/message",
            "a log of another user's call: {message}"
        );
        if message.get("result").is_some() {
            break;
        }
    }
    loop {
        if anns.next().await.unwrap().get("result").is_some() {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_there_for_nobody_but_its_owner() {
    let gateway = Gateway::before(Eras::Modern, By::Http).await;
    let [ann, bob] = ["ann", "bob"].map(|name| Caller::user(&gateway.url, name));
    let params = json!({"name": "confirm_delete", "arguments": {"filename": "a.txt"}});
    let made = ann.ask("tools/call", params).await;
    let task = &made["result"]["taskId"];
    assert!(task.is_string(), "{made}");
    let named = || json!({ "taskId": task });
    let answers = json!({"taskId": task, "inputResponses": {}});
    let listened = json!({"notifications": {"taskIds": [task]}});
    for (method, params) in [
        ("tasks/get", named()),
        ("tasks/update", answers),
        ("tasks/cancel", named()),
        ("subscriptions/listen", listened),
    ] {
        let told = bob.ask(method, params.clone()).await;
        assert_eq!(told["error"]["code"], -32_602, "{method}: {told}");
        // What its client declares makes no difference.
        let told = response(bob.open_with(method, params, json!({})).await).await;
        assert_eq!(told["error"]["code"], -32_602, "{method}: {told}");
    }
    let told = ann.ask("tasks/get", named()).await;
    assert_eq!(told["result"]["taskId"], *task, "{told}");
    assert_ne!(told["result"]["status"], "cancelled", "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_when_its_server_is_configured_anew() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let gateway = Gateway::before(eras, By::Http).await;
        let session = Caller::user(&gateway.url, "ann").session().await;
        let done = session.call_in_session("test_simple_text").await;
        assert_eq!(done.status(), StatusCode::OK);
        // Other secrets, another address, another program.
        gateway.exposed.lock().unwrap().revision = "2".into();
        let done = session.call_in_session("test_simple_text").await;
        assert_eq!(
            done.status(),
            StatusCode::NOT_FOUND,
            "{eras:?}: the session kept what the server was before"
        );
        // A client that begins anew has the server as it is now.
        let session = Caller::user(&gateway.url, "ann").session().await;
        let done = session.call_in_session("test_simple_text").await;
        assert_eq!(done.status(), StatusCode::OK);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_server_is_not_exposed_to_its_reader_any_more() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let gateway = Gateway::before(eras, By::Http).await;
        let ann = Caller::user(&gateway.url, "ann");
        let session = ann.session().await;
        let listens = json!({"notifications": {"toolsListChanged": true}});
        let mut streams = [
            Incoming::of(ann.open("subscriptions/listen", listens).await),
            Incoming::of(session.listen().await),
        ];
        let acknowledged = streams[0].next().await.unwrap();
        assert_eq!(
            acknowledged["method"], "notifications/subscriptions/acknowledged",
            "{eras:?}: {acknowledged}"
        );
        gateway.exposed.lock().unwrap().access = Access::Backend;
        for stream in &mut streams {
            assert_eq!(stream.next().await, None, "{eras:?}");
        }
    }
}
