//! How often tools are listed, and how much of what a server lists is taken in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;
use toolgate_door_mcp::through::Limits;
use toolgate_mcp::Server;

use crate::caller::Caller;
use crate::gateway::{Gateway, exposed, listen, soon, spawn};

/// A server of 2026-07-28 that answers `tools/list` as a test wants, and counts that.
#[derive(Clone)]
struct Lists {
    page: Arc<dyn Fn(usize) -> Value + Send + Sync>,
    count: Arc<AtomicUsize>,
}

impl Lists {
    async fn start(
        page: impl Fn(usize) -> Value + Send + Sync + 'static,
    ) -> (Self, String, AbortOnDropHandle<()>) {
        let lists = Self {
            page: Arc::new(page),
            count: Arc::default(),
        };
        let (listener, url) = listen("mcp").await;
        let router = axum::Router::new()
            .route("/mcp", post(answer))
            .with_state(lists.clone());
        let task = spawn(async move { drop(axum::serve(listener, router).await) });
        (lists, url, task)
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

async fn answer(State(lists): State<Lists>, body: String) -> ([(&'static str, &'static str); 1], String) {
    let request: Value = serde_json::from_str(&body).unwrap();
    let result = match request["method"].as_str().unwrap() {
        "server/discover" => {
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                   "ttlMs": 0, "cacheScope": "private",
                   "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "lists", "version": "1"}}})
        }
        "tools/list" => {
            let page = (lists.page)(lists.count.fetch_add(1, Ordering::SeqCst));
            let mut result = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
            for (name, value) in page.as_object().unwrap() {
                result[name] = value.clone();
            }
            result
        }
        _ => json!({"resultType": "complete", "content": []}),
    };
    let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    ([("content-type", "application/json")], response.to_string())
}

fn tool(name: &str, bytes: usize) -> Value {
    json!({"name": name, "description": "x".repeat(bytes), "inputSchema": {"type": "object"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_looked_for_once_until_the_tools_change() {
    let (lists, url, _server) = Lists::start(|_| json!({"tools": [tool("known", 1)]})).await;
    let limits = Limits {
        listing_pause: Duration::from_secs(3600),
        known_for: Duration::from_secs(3600),
        ..Limits::default()
    };
    let gateway = Gateway::before_server(exposed(Server::http("fixture", url)), limits).await;
    let caller = Caller::backend(&gateway.url);
    let unknown = (0..8).map(|at| {
        let caller = caller.clone();
        tokio::spawn(async move { caller.call(&format!("unknown_{at}")).await })
    });
    for answered in unknown.collect::<Vec<_>>() {
        assert_eq!(answered.await.unwrap()["error"]["code"], -32_602);
    }
    assert_eq!(lists.count(), 1, "each call of an unknown tool lists the tools");
    assert_eq!(caller.call("known").await["result"]["resultType"], "complete");
    assert_eq!(lists.count(), 1);
    // Another decision about the tools is another list.
    gateway.exposed.lock().unwrap().reviewed = "2".into();
    assert_eq!(caller.call("unknown_0").await["error"]["code"], -32_602);
    assert_eq!(caller.call("unknown_1").await["error"]["code"], -32_602);
    assert_eq!(lists.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_looked_for_again_after_a_while() {
    let page = |count| match count {
        0 => json!({"tools": []}),
        _ => json!({"tools": [tool("new", 1)]}),
    };
    let (lists, url, _server) = Lists::start(page).await;
    let limits = Limits {
        listing_pause: Duration::ZERO,
        ..Limits::default()
    };
    let gateway = Gateway::before_server(exposed(Server::http("fixture", url)), limits).await;
    let caller = Caller::backend(&gateway.url);
    assert_eq!(caller.call("new").await["error"]["code"], -32_602);
    assert_eq!(caller.call("new").await["result"]["resultType"], "complete");
    assert_eq!(lists.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_or_a_listing_that_is_too_large_is_not_passed_on() {
    let (_, url, _server) = Lists::start(|_| json!({"tools": [tool("large", 3 << 20)]})).await;
    let gateway = Gateway::before_address(&url).await;
    let caller = Caller::backend(&gateway.url);
    let listed = caller.ask("tools/list", json!({})).await;
    assert_eq!(listed["error"]["code"], -32_603, "a page of 3 MiB is passed on");
    assert_eq!(caller.call("large").await["error"]["code"], -32_602);

    // Pages without an end, each of which is small enough.
    let endless = |count| json!({"tools": [tool(&format!("tool_{count}"), 1 << 20)], "nextCursor": "more"});
    let (lists, url, _server) = Lists::start(endless).await;
    let gateway = Gateway::before_address(&url).await;
    let called = Caller::backend(&gateway.url).call("another").await;
    assert_eq!(called["error"]["code"], -32_603, "{called}");
    assert!(lists.count() <= 5, "{} pages were asked for", lists.count());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_takes_no_listing_of_many_bytes_either() {
    let endless = |count| json!({"tools": [tool(&format!("tool_{count}"), 1 << 20)], "nextCursor": "more"});
    let (lists, url, _server) = Lists::start(endless).await;
    let connection = soon("connect", Server::http("fixture", url).connect())
        .await
        .unwrap();
    let listed = soon("list", connection.list_raw()).await;
    let words = listed.map(|tools| tools.len()).map_err(String::from);
    assert!(
        words
            .as_ref()
            .is_err_and(|words| words.contains("bytes of tools")),
        "{words:?}"
    );
    assert!(lists.count() <= 6, "{} pages were asked for", lists.count());
}
