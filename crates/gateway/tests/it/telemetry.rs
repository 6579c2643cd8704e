//! What the process tells about itself: figures, logs, spans.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use rustix::process::Signal;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Gateway, put_worker};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_are_sent_before_the_process_ends_and_logs_are_json() {
    let received = Arc::new(Mutex::new(Vec::<u8>::new()));
    let sink = received.clone();
    let app = Router::new().route(
        "/v1/traces",
        post(move |body: Bytes| async move {
            sink.lock()
                .expect("no panic while locked")
                .extend_from_slice(&body)
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let _collector =
        AbortOnDropHandle::new(tokio::spawn(
            async move { axum::serve(listener, app).await.unwrap() },
        ));

    let models = ModelServer::start().await;
    let settings = [
        ("TOOLGATE_TELEMETRY_OTLP_ENDPOINT", endpoint.as_str()),
        ("TOOLGATE_TELEMETRY_SERVICE_NAME", "probe"),
    ];
    let mut gateway = Gateway::start(&settings).await;
    let api = gateway.api();
    put_worker(&api, &models).await;
    let run = api.start("call:clock text:1").await;
    api.finished(run["runId"].as_str().unwrap()).await;
    gateway.signal(Signal::TERM);
    assert!(gateway.ended().await.success());

    let received = received.lock().expect("no panic while locked");
    let has = |text: &str| {
        received
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    assert!(has("probe"), "the service has its name");
    assert!(has("/v1/runs"), "a request is a span");

    // Everything on standard error is JSON when nobody sits at a terminal; what is printed for people is not.
    let log = gateway.log();
    let lines = log.lines().filter(|line| line.starts_with('{'));
    let stopped = lines
        .map(|line| serde_json::from_str::<Value>(line).expect(line))
        .any(|line| line["message"] == "stopped");
    assert!(stopped, "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_tell_the_version_and_the_requests() {
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    api.get("/v1/runs").await;
    let figures = api.get("/metrics").await;
    let text = figures.body.as_str().expect("text");
    assert!(
        text.contains(&format!(
            "toolgate_build_info{{version=\"{}\"}} 1",
            env!("CARGO_PKG_VERSION")
        )),
        "{text}"
    );
    assert!(text.contains("toolgate_http_requests_total"), "{text}");
    assert!(text.contains("toolgate_http_request_seconds_bucket"), "{text}");
}
