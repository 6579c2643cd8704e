//! Servers that somebody has restarted.

use serde_json::json;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::ProjectId;
use toolgate_sources::{ServerError, Status};
use uuid::Uuid;

use crate::world::{Fixture, World, is_alive, settings, soon, tool};

#[tokio::test]
async fn a_restart_ends_the_program_with_its_calls_and_starts_a_new_one() {
    for era in ["legacy", "modern"] {
        let fixture = Fixture::new(era, &[tool("slow"), tool("echo")]);
        let world = World::with(&fixture).await;
        let first = fixture.wrote("started").await;
        let restart = async {
            fixture.wrote("called-slow").await;
            world.servers.restart(world.project, "fix").await.unwrap()
        };
        let (slow, view) = tokio::join!(world.call("mcp_fix_slow", json!({})), restart);
        assert_eq!(slow.unwrap_err().code, ErrorCode::Interrupted);
        assert_eq!(view.status, Status::Connecting);
        // It waits for the new program, not for a pause.
        let echoed = world.output("mcp_fix_echo", json!({"text": "back"})).await;
        assert_eq!(echoed, json!("back"));
        assert!(!is_alive(&first), "the first one ends before the second starts");
        let second = fixture.wrote("started").await;
        assert_ne!(first, second);
        let lines = world.until_logged(&format!("fixture {second} ")).await;
        assert!(lines[0].starts_with(&format!("fixture {first} ")), "{lines:?}");
    }
}

#[tokio::test]
async fn a_restart_does_not_wait_for_the_pause_after_failures() {
    // More failures than are tried again by themselves.
    const FAILURES: usize = 8;
    let fixture = Fixture::new("legacy", &[tool("echo")]);
    fixture.write("broken", "");
    let world = World::new(settings());
    world.put("fix", &fixture.config()).await;
    for _ in 0..FAILURES {
        let view = world.servers.test(world.project, "fix").await.unwrap();
        assert!(matches!(view.status, Status::Failed { .. }), "{view:?}");
    }
    std::fs::remove_file(fixture.directory.path().join("broken")).unwrap();
    let view = world.servers.restart(world.project, "fix").await.unwrap();
    assert_eq!(view.status, Status::Connecting);
    world.until_listed(&["mcp_fix_echo"]).await;
}

#[tokio::test]
async fn a_restart_ends_programs_of_clients_that_reach_the_server_as_it_is() {
    let fixture = Fixture::new("legacy", &[tool("echo")]);
    let world = World::new(settings());
    let mut config = fixture.config();
    config["expose"] = json!("through");
    world.put("fix", &config).await;
    world.ready("fix").await;
    let agents = fixture.wrote("started").await;
    let exposed = world.servers.exposed(world.project, "fix").await.unwrap();
    let server = exposed.expect("it is exposed").server;
    let link = server.link().expect("it starts");
    let other = |not: [&String; 2]| {
        let pid = std::fs::read_to_string(fixture.directory.path().join("started")).ok()?;
        (!not.contains(&&pid)).then_some(pid)
    };
    let clients = soon("a program of the client's own", || other([&agents, &agents])).await;
    world.servers.restart(world.project, "fix").await.unwrap();
    soon("the end of both", || {
        (!is_alive(&agents) && !is_alive(&clients)).then_some(())
    })
    .await;
    drop(link);
    world.ready("fix").await;
    let again = fixture.wrote("started").await;
    let _link = server.link().expect("it starts again");
    soon("a new program of the client's own", || other([&agents, &again])).await;
}

#[tokio::test]
async fn a_server_that_is_removed_or_changed_ends_programs_of_clients_that_reach_it_as_it_is() {
    for is_removed in [true, false] {
        let fixture = Fixture::new("legacy", &[tool("echo")]);
        fixture.write("stubborn", "");
        let world = World::new(settings());
        let mut config = fixture.config();
        config["expose"] = json!("through");
        world.put("fix", &config).await;
        world.ready("fix").await;
        let agents = fixture.wrote("started").await;
        let exposed = world.servers.exposed(world.project, "fix").await.unwrap();
        let _link = exposed.expect("it is exposed").server.link().expect("it starts");
        let clients = soon("a program of the client's own", || {
            let pid = std::fs::read_to_string(fixture.directory.path().join("started")).ok()?;
            (pid != agents).then_some(pid)
        })
        .await;
        match is_removed {
            true => assert!(world.servers.remove(world.project, "fix").await.unwrap()),
            false => {
                config["env"] = json!({"FIXTURE_SECRET": "another one"});
                world.put("fix", &config).await;
            }
        }
        soon("the end of both", || {
            (!is_alive(&agents) && !is_alive(&clients)).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_of_another_project_cannot_be_restarted() {
    let fixture = Fixture::new("legacy", &[tool("echo")]);
    let world = World::with(&fixture).await;
    let server = fixture.wrote("started").await;
    let elsewhere = ProjectId::new(Uuid::from_u128(9));
    let refused = world.servers.restart(elsewhere, "fix").await.unwrap_err();
    assert!(matches!(refused, ServerError::Missing(_)), "{refused:?}");
    assert!(is_alive(&server));
}
