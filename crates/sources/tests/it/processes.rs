//! Servers as processes: they die, are started again, and leave nothing behind.

use serde_json::json;
use toolgate_kernel::call::ErrorCode;
use toolgate_sources::Status;

use crate::world::{Fixture, World, is_alive, soon, tool};

#[tokio::test]
async fn a_server_that_dies_in_a_call_leaves_the_others_alone_and_is_started_again() {
    let (mortal, other) = (
        Fixture::new("modern", &[tool("die"), tool("echo")]),
        Fixture::new("legacy", &[tool("echo")]),
    );
    let world = World::with(&mortal).await;
    world.put("other", &other.config()).await;
    world.ready("other").await;
    let died = world.call("mcp_fix_die", json!({})).await.unwrap_err();
    assert_eq!(died.code, ErrorCode::Interrupted, "{died:?}");
    assert_eq!(
        world.output("mcp_other_echo", json!({"text": "fine"})).await,
        json!("fine")
    );
    let mut seen = None;
    // Until its pause is over it is not available; then it is.
    for _ in 0..600 {
        match world.call("mcp_fix_echo", json!({"text": "back"})).await {
            Ok(output) => {
                seen = output.output();
                break;
            }
            Err(failure) => assert_eq!(failure.code, ErrorCode::Unavailable, "{failure:?}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(seen.expect("it is started again").to_value(), json!("back"));
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why_and_its_tools_stay_listed() {
    let fixture = Fixture::new("legacy", &[tool("echo")]);
    let world = World::with(&fixture).await;
    let pinned = world.pinned("mcp_fix_echo").await;
    let view = world.put("none", &json!({"command": "/no/such/program"})).await;
    assert_ne!(view.status, Status::Ready);
    let view = world.servers.test(world.project, "none").await.unwrap();
    let Status::Failed { reason, .. } = view.status else {
        panic!("{view:?}")
    };
    assert!(reason.contains("/no/such/program"), "{reason}");
    assert_eq!(world.names().await, ["mcp_fix_echo"]);
    assert!(world.call_pinned(&pinned, json!({"text": "x"})).await.is_ok());
}

#[tokio::test]
async fn everything_that_a_server_has_started_ends_with_it() {
    let fixture = Fixture::new("legacy", &[tool("spawn")]);
    let world = World::with(&fixture).await;
    let grandchild = world.output("mcp_fix_spawn", json!({})).await;
    let grandchild = grandchild.as_str().expect("a process id").to_owned();
    let server = fixture.wrote("started").await;
    assert!(is_alive(&grandchild) && is_alive(&server));
    world.servers.remove(world.project, "fix").await.unwrap();
    soon("the end of the server", || (!is_alive(&server)).then_some(())).await;
    soon("the end of the grandchild", || {
        (!is_alive(&grandchild)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_gateway_that_stops_ends_its_servers_in_order() {
    let fixture = Fixture::new("modern", &[tool("spawn")]);
    let world = World::with(&fixture).await;
    let grandchild = world.output("mcp_fix_spawn", json!({})).await;
    let grandchild = grandchild.as_str().expect("a process id").to_owned();
    world.stop.cancel();
    world.servers.run(world.stop.clone()).await;
    assert!(
        fixture.has("ended"),
        "its input was closed and it ended by itself"
    );
    soon("the end of the grandchild", || {
        (!is_alive(&grandchild)).then_some(())
    })
    .await;
}
