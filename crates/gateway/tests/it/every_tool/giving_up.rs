//! A server outside that never answers: a cancel and a deadline end the call, and nobody holds the connection.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::rows::{Row, agent, outside};
use super::{World, settled};
use crate::harness::put_agent;

/// Starts a run of each tool that asks somebody outside.
async fn asking(world: &World, change: impl Fn(&mut Value)) -> Vec<(Row, String)> {
    let rows = outside(&world.server).into_iter().enumerate();
    let begun = rows.map(async |(number, row)| {
        let name = format!("row-{number}");
        let script = format!("call:{} input:{} text:1", row.tool, row.input);
        let mut config = agent(&world.models, &world.server, &script);
        change(&mut config);
        put_agent(&world.api(), &name, &config).await;
        let body = json!({"agent": name, "message": "go"});
        let started = world.api().post("/v1/runs", &body).await;
        (row, started.text("runId"))
    });
    join_all(begun).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_lets_go_of_whoever_was_asked() {
    let world = World::start().await;
    let asking = asking(&world, |_| ()).await;
    world.server.held(asking.len()).await;
    for (row, run) in &asking {
        let cancelled = world
            .api()
            .post(&format!("/v1/runs/{run}/cancel"), &json!({}))
            .await;
        assert!(cancelled.is_success(), "{}: {cancelled:?}", row.tool);
    }
    world.server.let_go().await;
    for (row, run) in &asking {
        let events = world.api().finished(run).await;
        assert_eq!(
            settled(&events, row.tool).data["code"],
            "CANCELLED",
            "{}",
            row.tool
        );
        assert_eq!(events.last().expect("an end").data["status"], "cancelled");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_lets_go_of_whoever_was_asked_and_the_run_goes_on() {
    let world = World::start().await;
    let hasty = |config: &mut Value| {
        for tool in config["tools"].as_array_mut().expect("tools") {
            // A wait for a moment or a signal has its own.
            if tool["executionType"] != "waiting" {
                tool["timeout"] = "1s".into();
            }
        }
    };
    let asking = asking(&world, hasty).await;
    for (row, run) in &asking {
        let events = world.api().finished(run).await;
        assert_eq!(settled(&events, row.tool).data["code"], "TIMEOUT", "{}", row.tool);
        assert_eq!(events.last().expect("an end").data["status"], "completed");
    }
    world.server.let_go().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_takes_long_says_so_to_the_backend_and_not_to_a_user() {
    let world = World::start().await;
    for (tool, input) in [
        ("web_fetch", json!({"url": world.server.url("/page")})),
        ("web_search", json!({"query": "tea"})),
        ("draw", json!({"prompt": "tea"})),
    ] {
        let (run, _) = world
            .ask("slow", &format!("call:{tool} input:{input} text:1"), None)
            .await;
        let mut all = world.api().follow(&run, 0).await;
        let told = all.until("progress", |event| event.kind == "tool-progress").await;
        assert!(told.data["progress"]["status"].is_string(), "{told:?}");
        let mut seen = world.user().follow(&run, 0).await;
        let cancelled = world
            .api()
            .post(&format!("/v1/runs/{run}/cancel"), &json!({}))
            .await;
        assert!(cancelled.is_success(), "{cancelled:?}");
        let seen = seen.rest().await;
        assert!(seen.iter().all(|event| event.kind != "tool-progress"), "{seen:?}");
    }
}
