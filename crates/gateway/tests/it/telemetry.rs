//! What the process tells about itself: figures, logs, spans.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::post;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Gateway, LOOK, put_worker, soon};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_name_agents_vendors_and_tools_of_the_reader_and_all_are_explained() {
    const OPERATOR: &str = "operator-of-this-test";
    let gateway = Gateway::start(&[("TOOLGATE_OPERATOR_KEY", OPERATOR)]).await;
    let api = gateway.api();
    let started = api
        .post(
            "/v1/runs",
            &json!({"message": "Use lookup_order for my order A-1042."}),
        )
        .await;
    api.finished(&started.text("runId")).await;
    let operator = api.with_key(OPERATOR);
    let made = operator.post("/v1/projects", &json!({"name": "shop"})).await;
    let other = api.with_key(&made.text("secretKey"));

    let figures = api.get("/metrics").await;
    let text = figures.body.as_str().expect("text");
    let line = |name: &str, labels: &[&str]| {
        let of_name = |line: &&str| line.starts_with(&format!("{name}{{"));
        let has_all = |line: &str| labels.iter().all(|label| line.contains(label));
        text.lines().filter(of_name).any(has_all)
    };
    for (name, labels) in [
        ("toolgate_runs_started_total", &["agent=\"default\""][..]),
        (
            "toolgate_runs_finished_total",
            &["agent=\"default\"", "status=\"completed\""],
        ),
        ("toolgate_steps_total", &["vendor=\"demo\""]),
        ("toolgate_tokens_total", &["vendor=\"demo\"", "kind=\"input\""]),
        (
            "toolgate_calls_total",
            &["tool=\"lookup_order\"", "outcome=\"output\""],
        ),
        (
            "toolgate_model_seconds_count",
            &["vendor=\"demo\"", "outcome=\"reply\""],
        ),
        ("toolgate_model_first_token_seconds_count", &["vendor=\"demo\""]),
    ] {
        assert!(line(name, labels), "{name} {labels:?} in {text}");
    }
    for name in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = name.split(' ').next().unwrap();
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has no words");
    }
    let others = other.get("/metrics").await;
    assert!(
        !others.body.to_string().contains("lookup_order"),
        "another project's tools"
    );
    let all = operator.get("/metrics").await;
    assert!(all.body.to_string().contains("lookup_order"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_fails_leaves_a_line_that_says_where_and_why() {
    // Somebody's web server, not a model's.
    let page = (
        StatusCode::NOT_FOUND,
        Html("<html>\n  <h1>No such page</h1>\n</html>"),
    );
    let app = Router::new().fallback(move || async move { page });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let _page = AbortOnDropHandle::new(tokio::spawn(
        async move { axum::serve(listener, app).await.unwrap() },
    ));
    let url = format!("http://{address}/v1");
    let gateway = Gateway::start(&[("TOOLGATE_MODEL_BASE_URL", &url)]).await;
    let api = gateway.api();
    let started = api.post("/v1/runs", &json!({"message": "hello"})).await;
    let run = started.text("runId");
    api.finished(&run).await;
    let line = soon("the line of the run", async {
        loop {
            let log = gateway.log();
            let mut lines = log
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            match lines.find(|line| line["message"] == "a run failed") {
                Some(line) => break line,
                None => tokio::time::sleep(LOOK).await,
            }
        }
    })
    .await;
    assert_eq!(line["run"], run.as_str());
    assert_eq!(line["agent"], "default");
    assert_eq!(line["vendor"], "openai");
    assert_eq!(line["status"], 404, "the vendor's");
    assert_eq!(line["reason"], "model-error", "the word of the API");
    let error = line["error"].as_str().expect("words");
    assert!(error.contains(&address), "{error}");
    assert!(
        error.contains("404") && error.contains("<h1>No such page</h1>"),
        "{error}"
    );
}
