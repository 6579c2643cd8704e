//! Questions that MCP servers ask in the middle of a call, over kills of the gateway.

use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_testkit::model_server::ModelServer;
use toolgate_testkit_mcp::{Eras, Fixture, serve_http};

use crate::harness::{Gateway, put_agent, soon};

const TOOL: &str = "test_input_required_result_elicitation";

/// The fixture at an address: it outlives the gateway.
async fn fixture(eras: Eras) -> (String, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let serving = async move { drop(serve_http(listener, Fixture::new(eras)).await) };
    (url, AbortOnDropHandle::new(tokio::spawn(serving)))
}

/// Asks, is killed while the question is open, is answered, and tells how the call was settled: its output, or the code of
/// its error.
async fn killed_over_a_question(eras: Eras) -> Result<String, String> {
    let models = ModelServer::start().await;
    let (url, _server) = fixture(eras).await;
    let settings = tempfile::NamedTempFile::with_suffix(".toml").expect("a file");
    std::fs::write(settings.path(), format!("[mcp.servers.fix]\nurl = {url:?}\n")).expect("a file");
    let config = settings.path().display().to_string();
    let mut gateway = Gateway::start(&[("TOOLGATE_CONFIG", &config)]).await;
    let api = gateway.api();
    let ready = soon("the server", api.post("/v1/mcp/servers/fix/test", &json!({}))).await;
    assert_eq!(ready.body["status"], "ready", "{ready:?}");
    let agent = json!({
        "access": "public",
        "instructions": format!("script: call:mcp_fix_{TOOL} text:1"),
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "mcp": ["fix"],
    });
    put_agent(&api, "asks", &agent).await;
    let ada = gateway.api().as_user("ada");
    let started = ada
        .post("/v1/runs", &json!({"agent": "asks", "message": "go"}))
        .await;
    assert!(started.is_success(), "{started:?}");
    let run = started.text("runId");
    let mut events = ada.follow(&run, 0).await;
    let asked = events
        .until("the question", |event| event.kind == "tool-question")
        .await;
    let question = format!("/v1/questions/{}", asked.text("questionId"));

    gateway.crash().await;

    // It stands as it stood, and is answered once.
    let open = ada.get("/v1/questions?status=open").await;
    assert!(
        open.body.to_string().contains(asked.text("questionId")),
        "{open:?}"
    );
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let answered = ada.insist(&question, &answer, None).await;
    assert!(answered.is_success(), "{answered:?}");
    let again = ada.insist(&question, &answer, None).await;
    assert_eq!(again.body, answered.body, "the same answer has the same receipt");
    let events = soon("the run", gateway.api().finished(&run)).await;
    let count = |kind: &str| events.iter().filter(|event| event.kind == kind).count();
    assert_eq!((count("tool-question"), count("tool-question-response")), (1, 1));
    let settled = events.iter().find_map(|event| match event.kind.as_str() {
        "tool-output-available" => Some(Ok(event.text("output").to_owned())),
        "tool-output-error" => Some(Err(event.text("code").to_owned())),
        _ => None,
    });
    settled.unwrap_or_else(|| panic!("the call is open: {events:#?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_question_of_a_server_of_the_newer_protocol_outlives_every_kill() {
    let settled = killed_over_a_question(Eras::Modern).await;
    assert_eq!(settled, Ok("Hello, Ada!".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_an_older_server_whose_connection_is_gone_is_interrupted() {
    let settled = killed_over_a_question(Eras::Legacy).await;
    assert_eq!(settled, Err("INTERRUPTED".into()));
}
