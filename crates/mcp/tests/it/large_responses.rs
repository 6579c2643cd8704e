//! A server at an address whose responses are larger than a gateway can hold.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_mcp::{CallError, Connection, Server};

use crate::soon;

/// What a body that is called endless stops at by itself.
const ENDLESS_BYTES: usize = 256 << 20;
/// More than the limit of a message and all that may be on its way in buffers.
const READ_BYTES_MAX: usize = 64 << 20;
const TOO_LARGE: &str = "the MCP server sent a response of more than 16777216 bytes, which is the limit";

type Answer = Arc<dyn Fn(Value) -> Response<Body> + Send + Sync>;

/// A server that answers every request so.
async fn serve(
    answer: impl Fn(Value) -> Response<Body> + Send + Sync + 'static,
) -> (String, AbortOnDropHandle<()>) {
    let answer: Answer = Arc::new(answer);
    let respond = |State(answer): State<Answer>, body: String| async move {
        answer(serde_json::from_str(&body).unwrap())
    };
    let router = axum::Router::new()
        .route("/mcp", post(respond))
        .with_state(answer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let task = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
    (url, AbortOnDropHandle::new(task))
}

/// A server of 2026-07-28 that answers so once it is connected.
async fn serve_modern(
    answer: impl Fn(Value) -> Response<Body> + Send + Sync + 'static,
) -> (String, AbortOnDropHandle<()>) {
    serve(move |request| match request["method"].as_str() {
        Some("server/discover") => {
            let server = json!({"name": "large", "version": "1"});
            let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": server}});
            json_response(&request, &result)
        }
        _ => answer(request),
    })
    .await
}

fn json_response(request: &Value, result: &Value) -> Response<Body> {
    let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    with(StatusCode::OK, "application/json", response.to_string())
}

fn with(status: StatusCode, content_type: &str, body: impl Into<Body>) -> Response<Body> {
    let response = Response::builder()
        .status(status)
        .header("content-type", content_type);
    response.body(body.into()).unwrap()
}

/// A body that begins so and then goes on with spaces. Counts what was taken of it.
fn endless(start: &'static str, taken: &Arc<AtomicUsize>) -> Body {
    const PIECE: &[u8] = &[b' '; 64 * 1024];
    let taken = taken.clone();
    let rest = stream::repeat(Bytes::from_static(PIECE)).take(ENDLESS_BYTES / PIECE.len());
    let pieces = stream::iter([Bytes::from_static(start.as_bytes())]).chain(rest);
    Body::from_stream(pieces.map(move |piece| {
        taken.fetch_add(piece.len(), Ordering::SeqCst);
        Ok::<_, std::io::Error>(piece)
    }))
}

async fn connect(url: &str) -> Connection {
    soon("connect", Server::http("large", url).connect())
        .await
        .unwrap()
}

async fn list_error(url: &str) -> String {
    let connection = connect(url).await;
    let listed = soon("list", connection.list_raw()).await;
    listed.expect_err("a list that is too large was read").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_without_end_is_cut_and_the_connection_goes_on() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = taken.clone();
    let (url, _server) = serve_modern(move |request| match request["method"].as_str() {
        Some("tools/call") => with(StatusCode::OK, "application/json", endless("{", &counted)),
        _ => {
            let result = json!({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"});
            json_response(&request, &result)
        }
    })
    .await;
    let connection = connect(&url).await;
    let called = soon("call", connection.caller().call("any", None)).await;
    assert_eq!(called, Err(CallError::Failed(TOO_LARGE.into())));
    let taken = taken.load(Ordering::SeqCst);
    assert!(taken < READ_BYTES_MAX, "{taken} bytes were read");
    let tools = soon("list", connection.list_raw()).await.unwrap();
    assert_eq!(tools, [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_response_without_end_is_cut() {
    let (url, _server) =
        serve(|_| with(StatusCode::OK, "application/json", endless("{", &Arc::default()))).await;
    let connected = soon("connect", Server::http("large", url).connect()).await;
    let error = connected
        .err()
        .expect("a response without end was read")
        .to_string();
    assert!(error.contains(TOO_LARGE), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_without_end_is_cut() {
    for (status, expected) in [
        (
            StatusCode::BAD_REQUEST,
            "HTTP 400 Bad Request, with a body of more than 16384 bytes",
        ),
        (StatusCode::INTERNAL_SERVER_ERROR, "HTTP 500"),
    ] {
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = taken.clone();
        let (url, _server) =
            serve_modern(move |_| with(status, "application/json", endless("{", &counted))).await;
        let error = list_error(&url).await;
        assert!(error.contains(expected), "{error:.300}");
        let taken = taken.load(Ordering::SeqCst);
        assert!(taken < READ_BYTES_MAX, "{taken} bytes were read");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_response_is_measured_as_it_is_when_unpacked() {
    const PACK: &str = "import gzip, sys; sys.stdout.buffer.write(gzip.compress(b' ' * (64 << 20), 1))";
    let packed = Command::new("python3")
        .args(["-c", PACK])
        .output()
        .unwrap()
        .stdout;
    assert!((1..1 << 20).contains(&packed.len()), "{} bytes", packed.len());
    let (url, _server) = serve_modern(move |_| {
        let mut response = with(StatusCode::OK, "application/json", packed.clone());
        response
            .headers_mut()
            .insert("content-encoding", "gzip".parse().unwrap());
        response
    })
    .await;
    let error = list_error(&url).await;
    assert!(error.contains(TOO_LARGE), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_of_too_many_values_is_not_taken_apart() {
    let zeros = format!("[\n{}0]", "0,\n".repeat(1_000_000));
    let (url, _server) = serve_modern(move |_| with(StatusCode::OK, "application/json", zeros.clone())).await;
    let error = list_error(&url).await;
    assert!(error.contains("more than 250000 JSON values"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_without_end_is_cut() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = taken.clone();
    let (url, _server) =
        serve_modern(move |_| with(StatusCode::OK, "text/event-stream", endless("data: {", &counted))).await;
    list_error(&url).await;
    let taken = taken.load(Ordering::SeqCst);
    assert!(taken < READ_BYTES_MAX, "{taken} bytes were read");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_too_many_values_is_left_out_and_the_next_is_read() {
    let (url, _server) = serve_modern(move |request| {
        let result = |tools: Value| {
            let result =
                json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"});
            json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
        };
        let many = json!([{"name": "many", "inputSchema": {"type": "object", "enum": vec![0; 1_000_000]}}]);
        let body = format!(
            "data: {}\n\n: alive\n\ndata: {}\n\n",
            result(many),
            result(json!([]))
        );
        with(StatusCode::OK, "text/event-stream", body)
    })
    .await;
    let connection = connect(&url).await;
    let tools = soon("list", connection.list_raw()).await.unwrap();
    assert_eq!(tools, [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_server_behind_a_long_error_page_is_found() {
    let (url, _server) = serve(|request| match request["method"].as_str() {
        Some("server/discover") => with(StatusCode::NOT_FOUND, "text/html", "x".repeat(1 << 20)),
        Some("initialize") => {
            let server = json!({"name": "old", "version": "1"});
            let result =
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server});
            json_response(&request, &result)
        }
        Some("tools/list") => json_response(&request, &json!({"tools": []})),
        _ => with(StatusCode::ACCEPTED, "text/plain", ""),
    })
    .await;
    let connection = connect(&url).await;
    assert_eq!(connection.about().protocol, "2025-11-25");
    assert_eq!(
        soon("list", connection.list_raw()).await.unwrap(),
        [] as [Value; 0]
    );
}
