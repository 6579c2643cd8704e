//! Agents that start agents, killed at random moments: everybody is born once, and what they do is done once.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, Random, put_agent};

/// How often the gateway is killed.
const KILLS: u64 = 12;
/// Longest time from a message to the kill: about what a run tree needs.
const LOAD_MS: u64 = 150;

/// An agent that follows a script and has the tools of both ranks.
async fn put(api: &Api, models: &ModelServer, name: &str, script: &str) {
    let prebuilt =
        |name: &str| json!({"name": name, "executionType": "prebuilt", "execution": {"action": name}});
    let config = json!({
        "instructions": format!("script: {script}"),
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [
            prebuilt("setGoals"),
            prebuilt("getGoals"),
            prebuilt("spawn_agent"),
            {"name": "ask_clerk", "description": "Asks.", "executionType": "ai-agent", "execution": {"agent": "clerk"}},
            {"name": "words", "description": "Asks.", "executionType": "prompt", "execution": {"prompt": "text:2 delay:2"}},
        ],
    });
    put_agent(api, name, &config).await;
}

async fn run(api: &Api, agent: &str) -> String {
    let started = api
        .post("/v1/runs", &json!({"agent": agent, "message": "go"}))
        .await;
    started.text("runId")
}

/// The status of each run that a run has started.
async fn children(api: &Api, run: &str) -> Vec<Value> {
    let listed = api.get(&format!("/v1/runs?parent={run}")).await;
    let runs = listed.body["runs"].as_array().expect("runs").iter();
    runs.map(|run| run["status"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_family_is_born_once_and_does_its_work_once_wherever_the_kill_falls() {
    let mut random = Random::seeded("run trees");
    let models = ModelServer::start().await;
    let mut gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let chief = r#"call:spawn_agent input:{"agent":"clerk","prompt":"x"} call:ask_clerk input:{"prompt":"x"} call:words text:1"#;
    put(&api, &models, "chief", chief).await;
    let clerk = r#"call:setGoals input:{"goals":[{"description":"x"}]} text:1 delay:2"#;
    put(&api, &models, "clerk", clerk).await;
    for _ in 0..KILLS {
        let root = run(&api, "chief").await;
        // Not a wait for anything: the moment of the kill is what is being varied.
        tokio::time::sleep(Duration::from_millis(random.below(LOAD_MS))).await;
        gateway.crash().await;
        let events = api.finished(&root).await;
        assert_eq!(
            events.last().expect("an end").data["status"],
            "completed",
            "{events:#?}"
        );
        let answered = events
            .iter()
            .filter(|event| event.kind == "tool-output-available");
        assert_eq!(answered.count(), 3, "{events:#?}");
        assert_eq!(children(&api, &root).await, ["completed"; 3]);
    }
    put(&api, &models, "clerk", "call:getGoals text:1").await;
    let events = api.finished(&run(&api, "clerk").await).await;
    let told = events
        .iter()
        .find(|event| event.kind == "tool-output-available")
        .expect("goals");
    assert_eq!(told.data["output"]["totalGoals"], 2 * KILLS);
}
