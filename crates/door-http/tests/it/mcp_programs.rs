//! Restarts and logs of MCP servers over REST.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{SHELL, World};

/// Generous, because it only matters when a test fails.
const SOON: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);
const LOG: &str = "/v1/mcp/servers/noisy/log";
const RESTART: &str = "/v1/mcp/servers/noisy/restart";

/// A world with a program that says its process id and its key, and ends.
async fn noisy() -> World {
    let world = World::new().await;
    let script = "echo \"$$ has the key $KEY\" >&2; exit 3";
    let config = json!({"command": SHELL, "args": ["-c", script], "env": {"KEY": "literal-key-4711"}});
    let put = world.backend().put("/v1/mcp/servers/noisy", config).await;
    put.expect(200);
    world
}

/// The log once it has so many lines.
async fn logged(world: &World, lines: usize) -> Vec<Value> {
    let wait = async {
        loop {
            let log = world.backend().get(LOG).await.expect(200);
            let found = log["lines"].as_array().expect("lines").clone();
            if found.len() >= lines {
                return found;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let found = tokio::time::timeout(SOON, wait).await;
    found.unwrap_or_else(|_| panic!("no {lines} lines within {SOON:?}"))
}

#[tokio::test]
async fn the_log_of_a_program_is_shown_without_the_values_that_it_was_given() {
    let world = noisy().await;
    let line = &logged(&world, 1).await[0];
    let text = line["text"].as_str().expect("text");
    assert!(text.ends_with(" has the key [env KEY]"), "{text}");
    assert!(line["at"].is_string(), "{line}");
}

#[tokio::test]
async fn a_restart_is_accepted_and_starts_the_program_again() {
    let world = noisy().await;
    let first = logged(&world, 1).await;
    let restarted = world.backend().post(RESTART, json!({})).await.expect(202);
    assert_eq!(
        (&restarted["name"], &restarted["status"]),
        (&json!("noisy"), &json!("connecting"))
    );
    let both = logged(&world, 2).await;
    assert_eq!(both[0], first[0], "what was there stays");
    assert_ne!(both[1]["text"], both[0]["text"]);
}

#[tokio::test]
async fn only_backends_of_the_project_restart_its_servers_and_read_their_logs() {
    let world = noisy().await;
    let backend = world.backend();
    for (client, status) in [(world.stranger(), 404), (world.user("ada"), 403)] {
        client.get(LOG).await.expect(status);
        client.post(RESTART, json!({})).await.expect(status);
    }
    backend.get("/v1/mcp/servers/none/log").await.expect(404);
    let unknown = backend.post("/v1/mcp/servers/none/restart", json!({})).await;
    unknown.expect(404);
}

#[tokio::test]
async fn a_server_at_an_address_has_an_empty_log() {
    let world = noisy().await;
    logged(&world, 1).await;
    // It was a program before.
    let config = json!({"url": "https://mcp.example.invalid/mcp"});
    let put = world.backend().put("/v1/mcp/servers/noisy", config).await;
    put.expect(200);
    let log = world.backend().get(LOG).await.expect(200);
    assert_eq!(log, json!({"lines": []}));
}
