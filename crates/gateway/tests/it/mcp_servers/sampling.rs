//! A real server that has the agent's own model asked, and one that may not write where it likes.

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use super::real::{RealServers, path};
use super::{add_all, agent, outcome, run};
use crate::harness::{Gateway, put_agent, soon};

const SAMPLES: &str = "mcp_everything_trigger-sampling-request";

/// Asks for two words by way of the server, and then answers itself.
fn script() -> String {
    let input = json!({"prompt": "text:2", "maxTokens": 7});
    format!("call:{SAMPLES} input:{input} text:1")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_has_the_model_of_the_run_asked() {
    let (models, real) = (ModelServer::start().await, RealServers::new());
    let (variable, value) = path();
    let gateway = Gateway::start(&[(variable, &value)]).await;
    let api = gateway.api();
    let mut servers = real.all();
    servers.retain(|name, _| name == "everything");
    servers["everything"]["sampling"] = true.into();
    add_all(&api, &servers).await;
    put_agent(&api, "sampled", &agent(&models, &script(), &["everything"])).await;
    let ada = gateway.api().as_user("ada");
    let started = ada
        .post("/v1/runs", &json!({"agent": "sampled", "message": "go"}))
        .await;
    let run = started.text("runId");
    let events = soon("the run", api.finished(&run)).await;
    let output = outcome(&events, SAMPLES).unwrap_or_else(|code| panic!("{code} {events:#?}"));
    assert!(output.to_string().contains("assistant"), "{output}");
    let asked = models.conversations().into_iter().find(|messages| {
        Value::from(messages.to_vec())
            .to_string()
            .contains("helpful test server")
    });
    let asked = Value::from(asked.expect("the model was asked for the server").to_vec()).to_string();
    assert!(
        !asked.contains("\"go\""),
        "nothing of the conversation is passed on: {asked}"
    );

    let sampling = events.iter().find(|event| event.kind == "tool-sampling");
    let sampling = sampling.expect("what it cost is stored");
    let tokens = |usage: &Value| {
        usage["inputTokens"].as_u64().expect("a number") + usage["outputTokens"].as_u64().expect("a number")
    };
    let steps = events.iter().filter(|event| event.kind == "step-finish");
    let steps: u64 = steps.map(|event| tokens(&event.data["usage"])).sum();
    let all = events
        .iter()
        .find(|event| event.kind == "run-finish")
        .expect("an end");
    assert!(tokens(&sampling.data["usage"]) > 0, "{sampling:?}");
    assert_eq!(
        tokens(&all.data["usage"]),
        steps + tokens(&sampling.data["usage"]),
        "{events:#?}"
    );

    let seen = soon("what the user sees", ada.finished(&run)).await;
    assert!(
        !seen
            .iter()
            .any(|event| event.kind == "tool-sampling" || event.data.to_string().contains("assistant")),
        "{seen:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_not_has_no_model_asked() {
    let (models, real) = (ModelServer::start().await, RealServers::new());
    let (variable, value) = path();
    let gateway = Gateway::start(&[(variable, &value)]).await;
    let api = gateway.api();
    let mut servers = real.all();
    servers.retain(|name, _| name == "everything");
    add_all(&api, &servers).await;
    let listed = api.get("/v1/mcp/servers/everything").await;
    assert!(
        !listed.body.to_string().contains(SAMPLES),
        "it is not told that it may: {listed:?}"
    );
    put_agent(&api, "plain", &agent(&models, "text:1", &["everything"])).await;
    soon("the run", run(&api, "plain")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_in_a_sandbox_writes_only_where_it_may() {
    let (models, real) = (ModelServer::start().await, RealServers::new());
    let (variable, value) = path();
    let gateway = Gateway::start(&[(variable, &value)]).await;
    let api = gateway.api();
    let (open, shut) = (real.files(), real.repository());
    let mut servers = real.all();
    servers.retain(|name, _| name == "filesystem");
    servers["filesystem"]["args"] = json!([open, shut]);
    servers["filesystem"]["sandbox"] = json!({ "write": [open] });
    add_all(&api, &servers).await;
    let write = |folder: &std::path::Path| {
        let input = json!({"path": folder.join("new.txt"), "content": "x"});
        format!("call:mcp_filesystem_write_file input:{input} text:1")
    };
    put_agent(&api, "open", &agent(&models, &write(&open), &["filesystem"])).await;
    put_agent(&api, "shut", &agent(&models, &write(&shut), &["filesystem"])).await;
    let events = soon("the run", run(&api, "open")).await;
    assert!(
        outcome(&events, "mcp_filesystem_write_file").is_ok(),
        "{events:#?}"
    );
    assert!(open.join("new.txt").exists());
    let events = soon("the run", run(&api, "shut")).await;
    let refused = outcome(&events, "mcp_filesystem_write_file");
    assert_eq!(refused, Err("EXECUTION_FAILED".into()), "{events:#?}");
    assert!(!shut.join("new.txt").exists());
}
