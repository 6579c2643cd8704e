//! Plans of agents, over crashes.

use serde_json::{Value, json};
use toolgate_kernel::time::Time;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, LOOK, put_agent, soon, worker};

fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time(since.expect("after 1970").as_millis() as i64)
}

/// Waits until the clock of this machine is past a moment.
async fn past(moment: Time) {
    while now() <= moment {
        tokio::time::sleep(LOOK).await;
    }
}

/// What the agent's plans are, as it reads them itself.
async fn plans(api: &Api, models: &ModelServer) -> Value {
    let run = api.start("call:getPlan text:1").await["runId"]
        .as_str()
        .expect("an id")
        .to_owned();
    api.finished(&run).await;
    let last = models.conversations();
    let result = last
        .last()
        .expect("asked")
        .iter()
        .rfind(|message| message["role"] == "tool")
        .cloned();
    let text = result.expect("a result")["content"]
        .as_str()
        .expect("a text")
        .to_owned();
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test]
async fn a_plan_that_was_due_while_the_gateway_was_down_runs_exactly_once() {
    let models = ModelServer::start().await;
    let mut gateway = Gateway::start(&[("TOOLGATE_PLANS_AHEAD_MIN", "1ms")]).await;
    let api = gateway.api();
    let mut config = worker(&models);
    let action =
        |name: &str| json!({"name": name, "executionType": "prebuilt", "execution": {"action": name}});
    config["tools"] = json!([action("createPlan"), action("getPlan")]);
    put_agent(&api, "worker", &config).await;
    let due = Time(now().0 + 4_000);
    let input = json!({"message": "text:3", "at": due.to_string()});
    let started = api.start(&format!("call:createPlan input:{input} text:1")).await;
    let (run, space) = (
        started["runId"].as_str().expect("an id"),
        started["spaceId"].as_str().expect("an id"),
    );
    api.finished(run).await;
    gateway.kill();
    past(due).await;
    gateway.spawn();
    gateway.ready().await;

    let of_space = format!("/v1/runs?space={space}");
    let planned = soon("the plan's run", async {
        loop {
            let runs = api.get(&of_space).await.body["runs"]
                .as_array()
                .expect("runs")
                .clone();
            let new = runs.iter().find(|listed| listed["id"] != run);
            if let Some(new) = new {
                return new["id"].as_str().expect("an id").to_owned();
            }
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    api.finished(&planned).await;
    gateway.crash().await;
    let seen = plans(&api, &models).await;
    assert_eq!(seen["plans"][0]["status"], "done", "{seen}");
    assert_eq!(seen["plans"][0]["runs"], 1, "{seen}");
    let runs = api.get(&of_space).await;
    assert_eq!(runs.body["runs"].as_array().expect("runs").len(), 2, "{runs:?}");
}
