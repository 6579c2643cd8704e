//! The user says something new while a call is long in coming: it is superseded, what it started ends, and the run goes on
//! with what was said; also after a kill.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::rows::agent;
use super::{World, settled};
use crate::harness::{Event, LOOK, put_agent, soon};

/// Calls that would not end by themselves.
const CALLS: [(&str, &str); 5] = [
    ("spawn_agent", r#"{"agent":"held","prompt":"x"}"#),
    ("ask_held", r#"{"prompt":"x"}"#),
    ("form", r#"{"mark":"x"}"#),
    ("signal", "{}"),
    ("wait", r#"{"seconds":86400}"#),
];

async fn check(killed: bool) {
    let mut world = World::start().await;
    let mut config = agent(&world.models, &world.server, "");
    config["instructions"] = "Follow the script of the user.".into();
    put_agent(&world.api(), "worker", &config).await;
    let begun = CALLS.map(async |(tool, input)| {
        let script = format!("call:{tool} input:{input} text:1");
        let body = json!({"agent": "worker", "message": script});
        let started = world.user().post("/v1/runs", &body).await;
        (tool, started.text("runId"), started.text("spaceId"))
    });
    let begun = join_all(begun).await;
    for (_, run, _) in &begun {
        let mut stream = world.api().follow(run, 0).await;
        stream
            .until("the call", |event| event.kind == "tool-executing")
            .await;
    }
    soon("the models below", world.models.held(3)).await;
    if killed {
        world.gateway.crash().await;
    }
    for (tool, run, space) in &begun {
        let body = json!({"agent": "worker", "content": "say:changed"});
        let said = world
            .user()
            .post(&format!("/v1/spaces/{space}/messages"), &body)
            .await;
        assert_eq!(said.text("runId"), *run, "{tool}: {said:?}");
        let events = world.api().finished(run).await;
        assert_eq!(
            settled(&events, tool).data["code"],
            "SUPERSEDED",
            "{tool}: {events:?}"
        );
        let words = |event: &&Event| event.kind == "text-end";
        assert_eq!(
            events.iter().rfind(words).expect("an answer").text("text"),
            "changed"
        );
    }
    soon("the end of the runs below", async {
        while !all_ended(&world).await {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
}

async fn all_ended(world: &World) -> bool {
    let listed = world.api().get("/v1/runs?limit=100").await;
    let runs = listed.body["runs"].as_array().expect("runs").clone();
    assert_eq!(runs.len(), CALLS.len() + 3, "{runs:?}");
    let ended = |run: &Value| ["completed", "cancelled"].contains(&run["status"].as_str().expect("a status"));
    runs.iter().all(ended)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_message_ends_what_is_long_in_coming() {
    check(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_message_after_a_kill_ends_what_is_long_in_coming() {
    check(true).await;
}
