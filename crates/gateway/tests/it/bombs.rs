//! An agent that starts itself for ever: cancelling the first run ends all of it, in the middle of the explosion and
//! after a kill.

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, LOOK, put_agent, soon};

/// Runs in the middle of the explosion.
const MANY: usize = 12;

/// Starts three of itself in each of its steps, by two ways; its words come slowly.
fn bomb(models: &ModelServer) -> Value {
    let spawn = r#"call:spawn_agent input:{"agent":"bomb","prompt":"again"}"#;
    let recurse = r#"call:recurse input:{"prompt":"again"}"#;
    json!({
        "instructions": format!("script: {spawn} {recurse} {spawn} tools:5 delay:4"),
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "limits": {"depth": 16, "descendants": 400},
        "tools": [
            {"name": "spawn_agent", "description": "Starts an agent.", "executionType": "spawn-agent"},
            {"name": "recurse", "description": "Asks itself.", "executionType": "ai-agent", "execution": {"agent": "bomb"}},
        ],
    })
}

/// How many runs there are, and how many of them have not ended.
async fn count(api: &Api) -> (usize, usize) {
    let listed = api.get("/v1/runs?limit=500").await;
    let runs = listed.body["runs"].as_array().expect("runs").clone();
    let ended = |run: &&Value| {
        ["completed", "failed", "cancelled"].contains(&run["status"].as_str().expect("a status"))
    };
    (runs.len(), runs.len() - runs.iter().filter(ended).count())
}

async fn until(api: &Api, what: &str, wanted: impl Fn((usize, usize)) -> bool) {
    soon(what, async {
        while !wanted(count(api).await) {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
}

async fn explode(killed: bool) {
    let models = ModelServer::start().await;
    let mut gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    put_agent(&api, "bomb", &bomb(&models)).await;
    let root = api
        .post("/v1/runs", &json!({"agent": "bomb", "message": "go"}))
        .await
        .text("runId");
    until(&api, "an explosion", |(runs, _)| runs >= MANY).await;
    if killed {
        gateway.crash().await;
    }
    let cancelled = api.post(&format!("/v1/runs/{root}/cancel"), &json!({})).await;
    assert!(cancelled.is_success(), "{cancelled:?}");
    until(&api, "the end of all runs", |(_, left)| left == 0).await;
    assert!(count(&api).await.0 < 400, "it was stopped, not over");
    // Nobody is left who could ask.
    let asked = models.requests();
    gateway.crash().await;
    assert_eq!((count(&api).await.1, models.requests()), (0, asked));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_the_first_run_ends_an_explosion() {
    explode(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_the_first_run_after_a_kill_ends_an_explosion() {
    explode(true).await;
}
