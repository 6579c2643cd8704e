//! What agents keep over HTTP, with the process killed in between.

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, put_agent, soon};

/// Tools that the gateway runs itself, by name.
const TOOLS: [&str; 6] = [
    "setGoals",
    "getGoals",
    "setMemory",
    "getMemory",
    "vfs_write",
    "vfs_read",
];

fn keeper(models: &ModelServer) -> Value {
    let tool =
        |name: &&str| json!({"name": name, "executionType": "prebuilt", "execution": {"action": name}});
    json!({
        "instructions": "Follow the script.",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": TOOLS.iter().map(tool).collect::<Vec<_>>(),
    })
}

/// Runs a script in a space and gives the output of its last call.
async fn output(api: &Api, space: &str, script: &str) -> Value {
    let body = json!({"agent": "keeper", "content": script});
    let posted = api.post(&format!("/v1/spaces/{space}/messages"), &body).await;
    assert!(posted.is_success(), "{posted:?}");
    let run = posted.body["runId"].as_str().expect("a run").to_owned();
    let mut output = Value::Null;
    for event in soon("the end of the run", api.finished(&run)).await {
        match event.kind.as_str() {
            "tool-output-available" => output = event.data["output"].clone(),
            "tool-output-error" => panic!("{:?}", event.data),
            _ => {}
        }
    }
    output
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn goals_memories_and_files_survive_a_kill() {
    let models = ModelServer::start().await;
    let mut gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    put_agent(&api, "keeper", &keeper(&models)).await;
    let space = api.post("/v1/spaces", &json!({})).await.body["id"]
        .as_str()
        .expect("a space")
        .to_owned();
    output(
        &api,
        &space,
        r#"call:setGoals input:{"goals":[{"description":"cook"}]} text:1"#,
    )
    .await;
    output(
        &api,
        &space,
        r#"call:setMemory input:{"topic":"cat","content":"Tom"} text:1"#,
    )
    .await;
    output(
        &api,
        &space,
        r#"call:vfs_write input:{"path":"a.md","content":"hello"} text:1"#,
    )
    .await;
    gateway.kill();
    gateway.spawn();
    gateway.ready().await;
    let goals = output(&api, &space, "call:getGoals text:1").await;
    assert_eq!(goals["currentGoals"][0]["description"], "cook");
    let memory = output(&api, &space, r#"call:getMemory input:{"query":"tom"} text:1"#).await;
    assert_eq!(memory["memories"][0]["topic"], "cat");
    let file = output(&api, &space, r#"call:vfs_read input:{"path":"a.md"} text:1"#).await;
    assert_eq!(file["content"], "hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_being_kept_at_a_kill_is_kept_once() {
    let models = ModelServer::start().await;
    let mut gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    put_agent(&api, "keeper", &keeper(&models)).await;
    let space = api.post("/v1/spaces", &json!({})).await.body["id"]
        .as_str()
        .expect("a space")
        .to_owned();
    for round in 1..=8_usize {
        let script = format!(
            r#"call:setGoals input:{{"goals":[{{"description":"g{round}"}}]}} call:setMemory input:{{"topic":"t","content":"m{round}"}} text:1"#
        );
        let body = json!({"agent": "keeper", "content": script});
        let posted = api.post(&format!("/v1/spaces/{space}/messages"), &body).await;
        assert!(posted.is_success(), "{posted:?}");
        // Wherever the run is now.
        gateway.kill();
        gateway.spawn();
        gateway.ready().await;
        let run = posted.body["runId"].as_str().expect("a run").to_owned();
        soon("the end of the run", api.finished(&run)).await;
        let goals = output(&api, &space, "call:getGoals text:1").await;
        assert_eq!(goals["totalGoals"], round);
        let memories = output(&api, &space, "call:getMemory text:1").await;
        assert_eq!(memories["totalMemories"], round);
    }
}
