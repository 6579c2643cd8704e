//! What programs write to their standard error.

use serde_json::json;
use toolgate_kernel::id::ProjectId;
use toolgate_sources::{ServerError, Status};
use uuid::Uuid;

use crate::world::{Fixture, World, settings, tool};

#[tokio::test]
async fn the_log_of_a_server_does_not_show_what_it_was_given() {
    for (value, mark) in [
        ("${secret.TOKEN}", "starts with [secret TOKEN]"),
        ("literal-key-4711", "starts with [env FIXTURE_SECRET]"),
    ] {
        let fixture = Fixture::new("legacy", &[tool("echo")]);
        let world = World::new(settings());
        let mut config = fixture.config();
        config["env"] = json!({ "FIXTURE_SECRET": value });
        world.put("fix", &config).await;
        world.ready("fix").await;
        let lines = world.until_logged(mark).await.join("\n");
        assert!(
            !lines.contains("hush-hush-hush") && !lines.contains("literal-key-4711"),
            "{lines}"
        );
    }
}

#[tokio::test]
async fn a_log_outlives_the_programs_and_ends_with_the_server() {
    let fixture = Fixture::new("modern", &[tool("die")]);
    let world = World::with(&fixture).await;
    let first = fixture.wrote("started").await;
    fixture.write("broken", "");
    world.call("mcp_fix_die", json!({})).await.unwrap_err();
    let view = world.servers.test(world.project, "fix").await.unwrap();
    assert!(matches!(view.status, Status::Failed { .. }), "{view:?}");
    let lines = world.until_logged("fixture is broken").await;
    assert!(lines[0].starts_with(&format!("fixture {first} ")), "{lines:?}");

    let elsewhere = ProjectId::new(Uuid::from_u128(9));
    let hidden = world.servers.log(elsewhere, "fix").await.unwrap_err();
    assert!(matches!(hidden, ServerError::Missing(_)), "{hidden:?}");

    std::fs::remove_file(fixture.directory.path().join("broken")).unwrap();
    world.servers.remove(world.project, "fix").await.unwrap();
    let gone = world.servers.log(world.project, "fix").await.unwrap_err();
    assert!(matches!(gone, ServerError::Missing(_)), "{gone:?}");
    world.put("fix", &fixture.config()).await;
    let lines = world.until_logged(" starts with").await;
    assert!(
        !lines.iter().any(|line| line == "fixture is broken"),
        "the log of another server of this name: {lines:?}"
    );
}
