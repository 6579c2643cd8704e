//! The bare relay: axum in front, reqwest behind, bytes passed through untouched. What any gateway pays at
//! least for accepting a request, asking the model and streaming the answer back.

use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};

#[derive(Clone)]
struct Upstream {
    client: reqwest::Client,
    url: String,
}

pub async fn serve(listen: SocketAddr, model: String) -> anyhow::Result<()> {
    let client = reqwest::Client::builder().tcp_nodelay(true).build()?;
    let upstream = Upstream {
        client,
        url: format!("{model}/chat/completions"),
    };
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/v1/chat/completions", post(pass))
        .with_state(upstream);
    crate::serve(listen, router).await
}

async fn pass(State(upstream): State<Upstream>, body: Bytes) -> Response<Body> {
    let asked = upstream
        .client
        .post(&upstream.url)
        .header(CONTENT_TYPE, "application/json")
        .body(body)
        .send()
        .await;
    let (status, kind, body) = match asked {
        Ok(answer) => (
            answer.status(),
            "text/event-stream",
            Body::from_stream(answer.bytes_stream()),
        ),
        Err(fault) => (
            StatusCode::BAD_GATEWAY,
            "text/plain",
            Body::from(fault.to_string()),
        ),
    };
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .body(body)
        .expect("the head is valid")
}
