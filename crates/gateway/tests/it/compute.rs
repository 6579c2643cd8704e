//! `compute` tools in the real binary: the code runs in a worker of its own, and the run goes on whatever it does.

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Gateway, gateway, put_agent, tool, worker};

fn computing(models: &ModelServer, instructions: &str, code: &str) -> Value {
    let mut agent = worker(models);
    agent["instructions"] = instructions.into();
    agent["tools"] = json!([tool(
        "compute_it",
        json!({"code": code}),
        json!({"executionType": "compute"})
    )]);
    agent
}

/// What became of the one call of a run.
async fn outcome(gateway: &Gateway, models: &ModelServer, input: &str, code: &str) -> Value {
    let script = format!("script: call:compute_it input:{input} text:2");
    put_agent(&gateway.api(), "computes", &computing(models, &script, code)).await;
    let run = json!({"agent": "computes", "message": "go"});
    let started = gateway.api().post("/v1/runs", &run).await;
    let events = gateway.api().finished(&started.text("runId")).await;
    let ended = events.iter().find(|event| event.kind.starts_with("tool-output"));
    ended.expect("the call ends").data.clone()
}

#[tokio::test]
async fn a_function_body_runs_in_the_sandbox_and_a_failure_is_told_with_its_line() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let done = outcome(
        &gateway,
        &models,
        r#"{"a":2}"#,
        "return {double: args.a * 2, zone: new Date(0).toLocaleString('en-US', {timeZone: 'Asia/Tokyo'})}",
    )
    .await;
    assert_eq!(
        done["output"],
        json!({"double": 4, "zone": "1/1/1970, 9:00:00 AM"}),
        "{done}"
    );
    let threw = outcome(
        &gateway,
        &models,
        "{}",
        "const a = 1;\nthrow new Error('no such order')",
    )
    .await;
    assert_eq!(threw["code"], "EXECUTION_FAILED", "{threw}");
    assert_eq!(threw["errorText"], "Error: no such order (line 2, column 11)");
    let endless = outcome(&gateway, &models, "{}", "while (true) {}").await;
    assert_eq!(endless["code"], "TIMEOUT", "{endless}");
    let alone = outcome(&gateway, &models, "{}", "await fetch('https://example.com')").await;
    assert_eq!(alone["code"], "EXECUTION_FAILED", "{alone}");
}

#[tokio::test]
async fn code_that_is_no_javascript_is_rejected_with_its_place() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let agent = computing(&models, "none", "const a = 1;\nreturn a +;");
    let answer = gateway.api().put("/v1/agents/computes", &agent).await;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert_eq!(answer.body["errors"][0]["pointer"], "/tools/0/execution/code");
    let words = answer.body["errors"][0]["message"].as_str().expect("words");
    assert!(
        words.starts_with("the code is not JavaScript: SyntaxError")
            && words.ends_with("(line 2, column 11)"),
        "{words}"
    );
}

#[tokio::test]
async fn readyz_names_the_protections_that_the_machine_lacks() {
    let gateway = Gateway::start(&[]).await;
    let ready = gateway.api().get("/readyz").await;
    let missing = ready.body["details"]["sandbox"]["missing"]
        .as_array()
        .expect("a list");
    // Which there are depends on the kernel, but each of them is in the log with its reason.
    for name in missing {
        assert!(gateway.log().contains(name.as_str().expect("a name")), "{name}");
    }
}
