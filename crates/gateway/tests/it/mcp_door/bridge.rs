//! What `toolgate mcp` sends before it knows its session: nothing but `initialize`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use super::{Bridge, initialize};
use crate::harness::soon;

/// How long `initialize` waits for something that comes too early.
const EARLY: Duration = Duration::from_millis(500);

/// The method of a request, and the session that it named.
type Came = (String, Option<String>);

/// A gateway that takes its time to begin a session, and remembers what comes with which session.
#[derive(Clone, Default)]
struct Slow {
    came: Arc<Mutex<Vec<Came>>>,
    another: Arc<Notify>,
}

async fn answer(State(slow): State<Slow>, headers: HeaderMap, body: String) -> axum::response::Response {
    let message: Value = serde_json::from_str(&body).expect("JSON");
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let session = headers.get("mcp-session-id");
    let session = session.map(|session| session.to_str().expect("text").to_owned());
    slow.came.lock().unwrap().push((method.clone(), session));
    if method == "initialize" {
        // What comes without waiting comes now.
        let _ = tokio::time::timeout(EARLY, slow.another.notified()).await;
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                            "serverInfo": {"name": "slow", "version": "1"}});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        return ([("mcp-session-id", "s1")], axum::Json(answer)).into_response();
    }
    slow.another.notify_one();
    match message.get("id") {
        None => StatusCode::ACCEPTED.into_response(),
        Some(id) => axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": {"tools": []}})).into_response(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_initialize_waits_for_its_session() {
    let slow = Slow::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let routes = Router::new().route("/mcp", post(answer)).with_state(slow.clone());
    let serving = tokio::spawn(async move { drop(axum::serve(listener, routes).await) });
    let _serving = AbortOnDropHandle::new(serving);

    let mut bridge = Bridge::start(&url);
    bridge.say(initialize()).await;
    bridge
        .say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    bridge
        .say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))
        .await;
    for id in [1, 2] {
        assert_eq!(bridge.hear().await["id"], id);
    }
    drop(bridge.input);
    let ended = soon("the bridge ends", bridge.child.wait()).await;
    assert!(ended.expect("a status").success());
    let came = slow.came.lock().unwrap().clone();
    let with = |method: &str| (method.to_owned(), Some("s1".to_owned()));
    assert_eq!(
        came,
        [
            ("initialize".to_owned(), None),
            with("notifications/initialized"),
            with("tools/list")
        ]
    );
}
