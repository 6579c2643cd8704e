//! A `request` tool from end to end: over a crash, and without a secret in anything that can be read.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Event, Gateway, put_agent, soon};

const TOKEN: &str = "tok-9d2e-only-the-server-may-know";

/// A server that never answers its first request, and repeats what it was sent in every later answer.
struct Api {
    address: String,
    asked: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

struct Shared {
    keys: Mutex<Vec<String>>,
    count: watch::Sender<usize>,
}

impl Api {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let asked = Arc::new(Shared {
            keys: Mutex::default(),
            count: watch::Sender::new(0),
        });
        let app = Router::new().fallback(answer).with_state(asked.clone());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
        Self {
            address,
            asked,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Waits until it was asked so often.
    async fn asked(&self, count: usize) {
        let mut so_far = self.asked.count.subscribe();
        soon("a request", so_far.wait_for(|asked| *asked >= count))
            .await
            .expect("the server lives");
    }

    fn keys(&self) -> Vec<String> {
        self.asked.keys.lock().unwrap().clone()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> String {
    let header = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap());
    shared.keys.lock().unwrap().push(header("idempotency-key").into());
    let mut first = false;
    shared.count.send_modify(|count| {
        first = *count == 0;
        *count += 1;
    });
    if first {
        std::future::pending::<()>().await;
    }
    json!({"you sent": header("authorization"), "to": uri.to_string()}).to_string()
}

/// An agent that calls the API once.
fn agent(models: &ModelServer, api: &Api, method: &str) -> Value {
    json!({
        "instructions": "script: call:ask_api input:{\"id\":\"a/b\"} text:2",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [{
            "name": "ask_api",
            "description": "Asks the API.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            "executionType": "request",
            "execution": {
                "method": method,
                "url": format!("http://{}/items/{{{{id}}}}?key=${{secret.API_TOKEN}}", api.address),
                "headers": {"Authorization": "Bearer ${secret.API_TOKEN}"},
            },
        }],
    })
}

/// Kills the gateway while a call is under way, and gives what is known of it after the next start.
async fn over_a_crash(method: &str) -> (Api, Vec<Event>) {
    let (models, api) = (ModelServer::start().await, Api::start().await);
    let mut gateway = Gateway::start(&[
        ("TOOLGATE_OUTSIDE_ALLOW", &api.address),
        ("TOOLGATE_SECRET_API_TOKEN", TOKEN),
        ("TOOLGATE_LOG_LEVEL", "trace"),
    ])
    .await;
    put_agent(&gateway.api(), "caller", &agent(&models, &api, method)).await;
    let started = gateway
        .api()
        .post("/v1/runs", &json!({"agent": "caller", "message": "go"}))
        .await;
    let (run, space) = (started.text("runId"), started.text("spaceId"));
    api.asked(1).await;
    gateway.crash().await;
    let events = gateway.api().finished(&run).await;

    let mut read = vec![
        gateway.log(),
        format!("{events:?}"),
        format!("{:?}", models.conversations()),
    ];
    for path in [
        "/v1/agents".to_owned(),
        "/v1/agents/caller".to_owned(),
        "/v1/tools?agent=caller".to_owned(),
        "/metrics".to_owned(),
        format!("/v1/runs/{run}"),
        format!("/v1/runs/{run}/events"),
        format!("/v1/spaces/{space}/events"),
    ] {
        read.push(gateway.api().get(&path).await.body.to_string());
    }
    assert!(read[0].contains("TRACE"), "the log was to say everything");
    for text in &read {
        assert!(!text.contains(TOKEN), "a secret can be read in {text}");
    }
    (api, events)
}

fn settled(events: &[Event]) -> &Event {
    let mut settled = events
        .iter()
        .filter(|event| event.kind.starts_with("tool-output"));
    let first = settled.next().expect("the call settled");
    assert!(settled.next().is_none(), "once");
    first
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_a_crash_cut_is_sent_again_under_the_same_key() {
    let (api, events) = over_a_crash("GET").await;
    let keys = api.keys();
    assert_eq!(keys.len(), 2);
    assert!(keys[0].starts_with("call_") && keys[0] == keys[1], "{keys:?}");
    let event = settled(&events);
    assert_eq!(event.kind, "tool-output-available");
    assert_eq!(event.call(), keys[0]);
    let expected = json!({"status": 200, "body": {
        "you sent": "Bearer [secret API_TOKEN]",
        "to": "/items/a%2Fb?key=[secret API_TOKEN]",
    }});
    assert_eq!(event.data["output"], expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_may_have_done_something_is_not_sent_again() {
    let (api, events) = over_a_crash("POST").await;
    assert_eq!(api.keys().len(), 1);
    let event = settled(&events);
    assert_eq!(event.kind, "tool-output-error");
    assert_eq!(event.text("code"), "INTERRUPTED");
}
