//! The agents in `examples/agents`, from their files to their answers.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, binary};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents")
}

async fn gateway(models: &ModelServer) -> Gateway {
    let folder = folder();
    Gateway::start(&[
        ("TOOLGATE_AGENTS", folder.to_str().expect("text")),
        ("TOOLGATE_MODEL_BASE_URL", models.base_url()),
        ("TOOLGATE_MODEL_NAME", "script"),
    ])
    .await
}

/// Lets an agent do what the script says; gives the last result that its model was shown.
async fn ask(api: &Api, models: &ModelServer, agent: &str, script: &str) -> Value {
    let started = api
        .post("/v1/runs", &json!({"agent": agent, "message": script}))
        .await;
    assert!(started.is_success(), "{started:?}");
    api.finished(&started.text("runId")).await;
    let conversations = models.conversations();
    let last = conversations.last().expect("asked");
    let result = last
        .iter()
        .rfind(|message| message["role"] == "tool")
        .expect("a result");
    let text = result["content"].as_str().expect("a text");
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

#[test]
fn the_examples_are_sound() {
    let files = ["goal-aware-assistant.json", "research-agent.md"].map(|name| folder().join(name));
    let checked = binary()
        .args(["agent", "check"])
        .args(files)
        .output()
        .expect("the binary starts");
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stdout)
    );
}

#[tokio::test]
async fn the_goal_aware_assistant_remembers_its_goals_in_another_space_after_a_crash() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    let goals = json!({"goals": [{"description": "rest"}, {"description": "ship", "priority": 2}]});
    let set = ask(
        &api,
        &models,
        "goal-aware-assistant",
        &format!("call:setGoals input:{goals}"),
    )
    .await;
    assert_eq!(set["goalsModified"].as_array().map(Vec::len), Some(2), "{set}");
    gateway.crash().await;
    let read = ask(&api, &models, "goal-aware-assistant", "call:getGoals").await;
    assert_eq!(read["totalGoals"], json!(2), "{read}");
    assert_eq!(read["currentGoals"][0]["description"], json!("ship"), "{read}");
}

#[tokio::test]
async fn the_research_agent_sums_up_with_a_tool_made_of_words() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    let input = json!({"text": "say:{\"bullets\":[\"short\"]}"});
    let told = ask(
        &api,
        &models,
        "research-agent",
        &format!("call:summarize input:{input}"),
    )
    .await;
    assert_eq!(told, json!({"bullets": ["short"]}));
    let input = json!({"text": "say:nonsense"});
    let told = ask(
        &api,
        &models,
        "research-agent",
        &format!("call:summarize input:{input}"),
    )
    .await;
    assert!(told.to_string().contains("INVALID_OUTPUT"), "{told}");
}

#[tokio::test]
async fn the_research_agent_hands_work_to_another_and_hears_of_it() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    let signal = json!({"message": "found"});
    let input =
        json!({"agent": "research-agent", "prompt": format!("call:signal_parent input:{signal} text:1")});
    let script = format!(
        "call:spawn_agent input:{}",
        input.to_string().replace(' ', "\\u0020")
    );
    let told = ask(&api, &models, "research-agent", &script).await;
    assert_eq!(told["signals"], json!([{"message": "found"}]), "{told}");
    assert_eq!(told["answer"], json!("w0 "), "{told}");
}
