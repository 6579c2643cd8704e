//! Budgets and usage of the real process: counted once over kills, and enforced.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;
use toolgate_testkit::postgres_server::PostgresServer;

use crate::harness::{Api, Gateway, LOOK, Random, SOON, put_agent, put_worker, soon, worker};

const OPERATOR_KEY: &str = "operator-key-0123456789";
/// Kills under load.
const KILLS: u64 = 5;
/// Runs that are started under load.
const RUNS: u64 = 24;
/// Longest time between two kills.
const LOAD_MS: u64 = 150;

/// A gateway with prices for the scripted model and these budgets.
async fn priced(models: &ModelServer, budgets: &str) -> Gateway {
    node(models, budgets, "").await
}

/// The same, on this store.
async fn node(models: &ModelServer, budgets: &str, store: &str) -> Gateway {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("toolgate.toml");
    let prices =
        "[prices]\ncurrency = \"EUR\"\n[prices.models.\"openai:script\"]\ninput = 1000.0\noutput = 2000.0\n";
    std::fs::write(&file, format!("{prices}{budgets}")).expect("written");
    let settings = [
        ("TOOLGATE_CONFIG", file.to_str().expect("a path of text")),
        ("TOOLGATE_OPERATOR_KEY", OPERATOR_KEY),
        ("TOOLGATE_STORE", store),
    ];
    let gateway = Gateway::start_in(directory, &settings).await;
    put_worker(&gateway.api(), models).await;
    gateway
}

/// The run once it has ended, or why it was not started.
async fn run_as(api: &Api, agent: &str) -> Value {
    let body = json!({ "agent": agent, "message": "text:1" });
    let answer = api.post("/v1/runs", &body).await;
    if !answer.is_success() {
        return answer.body;
    }
    let run = answer.text("runId");
    api.finished(&run).await;
    api.get(&format!("/v1/runs/{run}")).await.body
}

/// The sums over the logs of all runs: runs, requests, tokens read and written.
async fn told_by_logs(api: &Api) -> [u64; 4] {
    let mut sums = [0; 4];
    for run in api.runs().await {
        sums[0] += 1;
        for event in api.list(&format!("/v1/runs/{run}/events")).await {
            if event.data["type"] == "step-finish" {
                let tokens = |member: &str| event.data["usage"][member].as_u64().unwrap_or_default();
                sums[1] += 1;
                sums[2] += tokens("inputTokens");
                sums[3] += tokens("outputTokens");
            }
        }
    }
    sums
}

fn counted(sums: &Value) -> [u64; 4] {
    ["runs", "requests", "inputTokens", "outputTokens"].map(|member| sums[member].as_u64().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_no_usage_and_count_none_twice() {
    let models = ModelServer::start().await;
    let mut gateway = priced(&models, "").await;
    let api = gateway.api();
    let mut random = Random::seeded("usage kills");
    let starting = {
        let api = api.clone();
        tokio::spawn(async move {
            let mut runs = Vec::new();
            for number in 0..RUNS {
                let body =
                    json!({ "agent": "worker", "message": format!("call:clock text:2 delay:2 #{number}.") });
                let key = format!("usage-{number}");
                let started = api.insist("/v1/runs", &body, Some(&key)).await;
                runs.push(started.text("runId"));
            }
            runs
        })
    };
    for _ in 0..KILLS {
        // Not a wait for anything: the moment of the kill is what is being varied.
        tokio::time::sleep(std::time::Duration::from_millis(random.below(LOAD_MS))).await;
        gateway.kill();
        gateway.spawn();
        gateway.ready().await;
    }
    let runs = soon("every start", starting).await.expect("no start panics");
    for run in &runs {
        api.finished(run).await;
    }
    let told = told_by_logs(&api).await;
    assert_eq!(told[0], RUNS, "each was started once");
    let report = api.get("/v1/usage?by=model").await.body;
    assert_eq!(counted(&report["total"]), told, "{report}");
    let cost = told[2] as f64 * 0.001 + told[3] as f64 * 0.002;
    let seen = report["total"]["cost"].as_f64().expect("a number");
    assert!((seen - cost).abs() < 1e-6, "{seen} is not {cost}");
    assert_eq!(report["rows"][0]["key"], "openai:script");
    for by in ["day", "agent", "user"] {
        let grouped = api.get(&format!("/v1/usage?by={by}")).await.body;
        let rows = grouped["rows"].as_array().expect("rows").iter().map(counted);
        let sums = rows.fold([0; 4], |sums, row| std::array::from_fn(|n| sums[n] + row[n]));
        assert_eq!(sums, told, "{by}: {grouped}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budgets_of_users_agents_and_projects_are_enforced_and_outlive_a_kill() {
    let models = ModelServer::start().await;
    let budgets =
        "[budgets.user.day]\nruns = 2\n[budgets.agent.day]\nruns = 5\n[budgets.project.month]\nruns = 7\n";
    let mut gateway = priced(&models, budgets).await;
    let api = gateway.api();
    let open = |models: &ModelServer| {
        let mut agent = worker(models);
        agent["access"] = json!("public");
        agent
    };
    put_agent(&api, "worker", &open(&models)).await;
    put_agent(&api, "other", &open(&models)).await;
    let (ada, bob) = (api.as_user("ada"), api.as_user("bob"));
    for _ in 0..2 {
        assert_eq!(run_as(&ada, "worker").await["status"], "completed");
    }
    gateway.crash().await;
    let refused = run_as(&ada, "worker").await;
    assert_eq!(refused["code"], "BUDGET_EXCEEDED", "{refused}");
    assert_eq!(refused["budget"]["setting"], "budgets.user.day.runs");
    assert_eq!(run_as(&bob, "worker").await["status"], "completed");
    for _ in 0..2 {
        assert_eq!(run_as(&api, "worker").await["status"], "completed");
    }
    let refused = run_as(&api, "worker").await;
    assert_eq!(refused["budget"]["setting"], "budgets.agent.day.runs");
    for _ in 0..2 {
        assert_eq!(run_as(&api, "other").await["status"], "completed");
    }
    let refused = run_as(&bob, "other").await;
    assert_eq!(refused["budget"]["setting"], "budgets.project.month.runs");
    assert_eq!(refused["budget"]["used"], Value::Null, "{refused}");
    raise_by_operator(&api, &bob).await;
    let metrics = api.get("/metrics").await.body.to_string();
    for name in ["toolgate_budget_refusals_total", "toolgate_cost_micros_total"] {
        assert!(metrics.contains(name), "{name}");
    }
}

/// The operator gives the project a larger budget, which holds within a second, and the project cannot.
async fn raise_by_operator(api: &Api, bob: &Api) {
    let larger = json!({ "budgets": { "project": { "day": { "runs": 100 } } } });
    let refused = api.put("/v1/settings", &larger).await;
    assert_eq!(refused.body["errors"][0]["pointer"], "/budgets", "{refused:?}");
    let operator = api.with_key(OPERATOR_KEY);
    let stored = operator.put("/v1/projects/default/settings", &larger).await;
    assert!(stored.is_success(), "{stored:?}");
    let admitted = async {
        while run_as(bob, "other").await["status"] != "completed" {
            tokio::time::sleep(LOOK).await;
        }
    };
    soon("the larger budget", admitted).await;
    let wrong = json!({ "budgets": { "project": { "day": { "runs": -1 } } } });
    let refused = operator.put("/v1/projects/default/settings", &wrong).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let report = operator.get("/v1/projects/default/usage?by=agent").await.body;
    let rows = report["rows"].as_array().expect("rows").iter();
    let agents: BTreeMap<&str, u64> = rows
        .map(|row| {
            (
                row["key"].as_str().expect("a name"),
                row["runs"].as_u64().expect("a number"),
            )
        })
        .collect();
    assert_eq!(agents["worker"], 5, "{report}");
    assert!(agents["other"] >= 3, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_of_cost_and_a_model_without_a_price_are_warned_of_at_the_start_and_refused() {
    let models = ModelServer::start().await;
    let gateway = priced(&models, "[budgets.user.day]\ncost = 1.5\n").await;
    let log = tokio::time::timeout(SOON, async {
        loop {
            let log = gateway.log();
            if log.contains("demo:demo has no price") {
                break log;
            }
            tokio::time::sleep(LOOK).await;
        }
    });
    log.await.expect("the start warns of the default model");
    let refused = run_as(&gateway.api(), "default").await;
    assert_eq!(refused["code"], "MODEL_UNPRICED", "{refused}");
    assert_eq!(run_as(&gateway.api(), "worker").await["status"], "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_holds_across_nodes_that_share_a_database() {
    const RUNS_MAX: u64 = 6;
    let models = ModelServer::start().await;
    let store = PostgresServer::shared().database();
    let budgets = format!("[budgets.user.day]\nruns = {RUNS_MAX}\n");
    let first = node(&models, &budgets, &store).await;
    let mut agent = worker(&models);
    agent["access"] = json!("public");
    put_agent(&first.api(), "open", &agent).await;
    let mut second = node(&models, &budgets, &store).await;
    let users = [first.api(), second.api()].map(|api| api.as_user("ada"));
    let mut started = 0;
    let mut refused = [false; 2];
    while refused != [true; 2] {
        for (user, refused) in users.iter().zip(&mut refused) {
            let run = run_as(user, "open").await;
            *refused = run["code"] == "BUDGET_EXCEEDED";
            assert!(*refused || run["status"] == "completed", "{run}");
            started += u64::from(!*refused);
        }
    }
    // A node hears of the other's runs within a second, and knows its own at once.
    assert!((RUNS_MAX..=2 * RUNS_MAX).contains(&started), "{started}");
    second.crash().await;
    let again = run_as(&second.api().as_user("ada"), "open").await;
    assert_eq!(again["code"], "BUDGET_EXCEEDED", "{again}");
    for api in [first.api(), second.api()] {
        let report = api.get("/v1/usage?by=user").await.body;
        assert_eq!(report["total"]["runs"], started, "{report}");
        assert_eq!(counted(&report["total"]), told_by_logs(&api).await, "{report}");
        assert_eq!(report["rows"][0]["subject"], "ada");
    }
}
