//! Remote agents that mean harm, or are broken: the call fails with words that help, and the gateway goes on.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_testkit::model_server::ModelServer;

use super::{outcome, put_chief, start};
use crate::harness::Gateway;

/// Where the agent sends callers that it wants to trick: a server of this machine that nobody allowed.
#[derive(Clone)]
struct Trap {
    address: String,
    seen: Arc<Mutex<Vec<String>>>,
}

/// A server, and what keeps it running.
struct Server {
    address: String,
    _task: AbortOnDropHandle<()>,
}

async fn serve(app: Router) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
    Server {
        address,
        _task: AbortOnDropHandle::new(task),
    }
}

/// A server that nobody allowed, and what it was asked.
async fn trap() -> (Server, Trap) {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = seen.clone();
    let app = Router::new().fallback(move |request: axum::extract::Request| async move {
        noted.lock().unwrap().push(request.uri().to_string());
        "caught"
    });
    let server = serve(app).await;
    let trap = Trap {
        address: server.address.clone(),
        seen,
    };
    (server, trap)
}

/// An agent that does what the message says. `interface` is the address in its card, its own unless it says another.
async fn agent(trap: &Trap, streams: bool, interface: Option<String>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let url = interface.unwrap_or_else(|| format!("http://{address}/"));
    let card = json!({
        "name": "Trickster", "description": "x".repeat(100_000), "version": "1",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": streams}, "defaultInputModes": [], "defaultOutputModes": [],
        "skills": (0..40).map(|n| json!({"id": n.to_string(), "name": "y".repeat(9_000), "description": "", "tags": []})).collect::<Vec<_>>(),
    });
    let app = Router::new()
        .route(
            "/.well-known/agent-card.json",
            get(move || async move { axum::Json(card) }),
        )
        .route("/", post(answered))
        .with_state(trap.clone());
    let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
    Server {
        address,
        _task: AbortOnDropHandle::new(task),
    }
}

async fn answered(State(trap): State<Trap>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).expect("the gateway sends JSON");
    let said = request["params"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap_or_default();
    let result =
        |result: Value| axum::Json(json!({"jsonrpc": "2.0", "id": 1, "result": result})).into_response();
    match said {
        "huge" => "x".repeat(5 << 20).into_response(),
        "flood" => {
            let chunk = Bytes::from(vec![b'x'; 1 << 20]);
            let chunks = stream::repeat_with(move || Ok::<_, Infallible>(chunk.clone()));
            Body::from_stream(chunks).into_response()
        }
        "endless" => {
            let task = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}});
            let event = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": task}});
            let line = Bytes::from(format!("data: {event}\n\n"));
            let events = stream::repeat_with(move || Ok::<_, Infallible>(line.clone()));
            (
                [(header::CONTENT_TYPE, "text/event-stream")],
                Body::from_stream(events),
            )
                .into_response()
        }
        "long" => {
            let chunk = Bytes::from(vec![b'x'; 1 << 20]);
            let start = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"data: "))]);
            let line = futures_util::StreamExt::chain(start, stream::repeat_with(move || Ok(chunk.clone())));
            (
                [(header::CONTENT_TYPE, "text/event-stream")],
                Body::from_stream(line),
            )
                .into_response()
        }
        "redirect" => {
            let location = format!("http://{}/secret", trap.address);
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response()
        }
        "nonsense" => "<html>no</html>".into_response(),
        "wrong" => result(json!({"task": {"id": 7, "status": "fine"}})),
        "nothing" => result(json!({})),
        "bigid" => {
            result(json!({"task": {"id": "i".repeat(100_000), "status": {"state": "TASK_STATE_WORKING"}}}))
        }
        "unauthorized" => StatusCode::UNAUTHORIZED.into_response(),
        "deep" => {
            let body = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
            ([(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        _ => axum::Json(
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "z".repeat(100_000)}}),
        )
        .into_response(),
    }
}

fn tool(agent: &Server) -> Value {
    let url = format!("http://{}", agent.address);
    json!({"name": "remote", "executionType": "ai-agent", "timeout": "3s", "execution": {"url": url}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_means_harm_fails_its_call_and_nothing_else() {
    let models = ModelServer::start().await;
    let (_trap_server, trap) = trap().await;
    for streams in [false, true] {
        let agent = agent(&trap, streams, None).await;
        let gateway = Gateway::start(&[("TOOLGATE_OUTSIDE_ALLOW", &agent.address)]).await;
        let api = gateway.api();
        put_chief(&api, &models, tool(&agent)).await;
        let checks = [
            ("huge", "EXECUTION_FAILED", "longer than"),
            ("flood", "EXECUTION_FAILED", "longer than"),
            ("redirect", "", ""),
            ("nonsense", "EXECUTION_FAILED", "not valid A2A"),
            ("wrong", "EXECUTION_FAILED", "not valid A2A"),
            ("nothing", "EXECUTION_FAILED", "not valid A2A"),
            ("bigid", "EXECUTION_FAILED", "task whose id"),
            ("unauthorized", "UNAVAILABLE", "headers"),
            ("deep", "EXECUTION_FAILED", "not valid A2A"),
            ("else", "EXECUTION_FAILED", "zzz"),
        ];
        for (message, code, words) in checks {
            let run = start(&api, message).await;
            let ended = outcome(&api, &run).await;
            let told = ended["error"]
                .as_str()
                .unwrap_or_else(|| panic!("{message}: {ended}"));
            assert!(code.is_empty() || ended["code"] == code, "{message}: {ended}");
            assert!(told.contains(words) && told.len() < 4_000, "{message}: {ended}");
        }
        if streams {
            let run = start(&api, "endless").await;
            assert_eq!(outcome(&api, &run).await["code"], "TIMEOUT");
            let run = start(&api, "long").await;
            assert_eq!(outcome(&api, &run).await["code"], "EXECUTION_FAILED");
        }
        assert!(
            gateway.peak_memory_kib() < 512 * 1024,
            "{} KiB",
            gateway.peak_memory_kib()
        );
    }
    assert!(trap.seen.lock().unwrap().is_empty(), "{:?}", trap.seen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_cannot_send_the_gateway_elsewhere() {
    let models = ModelServer::start().await;
    let (_trap_server, trap) = trap().await;
    let elsewhere = format!("http://{}/", trap.address);
    let agent = agent(&trap, false, Some(elsewhere.clone())).await;
    let gateway = Gateway::start(&[("TOOLGATE_OUTSIDE_ALLOW", &agent.address)]).await;
    let api = gateway.api();
    put_chief(&api, &models, tool(&agent)).await;
    let run = start(&api, "hello").await;
    let ended = outcome(&api, &run).await;
    assert_eq!(ended["code"], "UNAVAILABLE");
    assert!(
        ended["error"].as_str().unwrap().contains("another origin"),
        "{ended}"
    );

    // An address that nobody allowed is not asked for its card either, with or without a redirect.
    let location = format!("{elsewhere}card.json");
    let redirects = serve(Router::new().fallback(move || {
        let location = location.clone();
        async move { (StatusCode::FOUND, [(header::LOCATION, location)]) }
    }))
    .await;
    let gateway = Gateway::start(&[("TOOLGATE_OUTSIDE_ALLOW", &redirects.address)]).await;
    for url in [format!("http://{}", redirects.address), elsewhere] {
        let tool = json!({"name": "remote", "executionType": "ai-agent", "execution": {"url": url}});
        let config = json!({"instructions": "x", "tools": [tool]});
        let refused = gateway.api().put("/v1/agents/other", &config).await;
        assert_eq!(refused.status, 422, "{refused:?}");
    }
    assert!(trap.seen.lock().unwrap().is_empty(), "{:?}", trap.seen);
}
