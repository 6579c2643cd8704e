//! What one node changes, others see.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_engine::tools::ToolSource;
use toolgate_kernel::tool::{Placement, SourceTool, ToolList};
use toolgate_plugins::{PinnedTool, PluginSource, Revoke, SOURCE, Trust};
use toolgate_sandbox::{Sandbox, SandboxOptions};

use crate::world::{World, document, world};

/// How long a node may go by what it has read.
const KNOWN_FOR: Duration = Duration::from_millis(500);

/// The tools as another node offers them; it runs none of them.
fn another_node(world: &World) -> PluginSource {
    PluginSource::new(
        world.another_node(),
        Sandbox::new("/nowhere".into(), SandboxOptions::default()),
    )
}

fn pinned(list: &ToolList, name: &str) -> SourceTool {
    SourceTool {
        source: SOURCE.into(),
        tool: name.into(),
        placement: Placement::Plugin,
        config: list[name].config().cloned(),
        listed: Some(list[name].hash().into()),
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_by_another_node_is_seen_within_half_a_second_and_the_list_stays_the_same_meanwhile() {
    let world = world().await;
    let node = another_node(&world);
    let list = async || node.list(world.project).await.unwrap();
    assert!(list().await.is_empty());
    let mut visible = document("time", "1.0.0", &["get_time"]);
    visible["tools"][0]["visibility"] = json!("public");
    let first = world.installed(visible).await;
    assert!(list().await.is_empty(), "it goes by what it has read");
    tokio::time::advance(KNOWN_FOR).await;
    let before = list().await;
    let tool = pinned(&before, "get_time");
    let expected = PinnedTool {
        plugin: "time".into(),
        version: "1.0.0".into(),
        package: first.clone(),
        data: Some("data:1".into()),
        trust: Trust::Verified,
    };
    assert_eq!(PinnedTool::of(&tool), Some(expected));
    tokio::time::advance(KNOWN_FOR).await;
    assert!(Arc::ptr_eq(&before, &list().await), "nothing has changed");

    world.installed(document("time", "1.1.0", &["get_time"])).await;
    tokio::time::advance(KNOWN_FOR).await;
    assert_ne!(list().await["get_time"].config(), before["get_time"].config());
    assert_eq!(
        node.still_offers(&tool, world.project).await,
        Ok(()),
        "a run keeps its version"
    );
    let revoke = Revoke::Package(first);
    world.plugins.revoke(world.project, &revoke, None).await.unwrap();
    tokio::time::advance(KNOWN_FOR).await;
    let refused = node.still_offers(&tool, world.project).await.unwrap_err();
    assert!(refused.message.contains("was revoked"), "{refused}");
    assert!(list().await.contains_key("get_time"), "the newer version goes on");
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_package_is_not_stored_is_not_offered() {
    let world = world().await;
    let node = another_node(&world);
    let first = world.installed(document("time", "1.0.0", &["get_time"])).await;
    let tool = pinned(&node.list(world.project).await.unwrap(), "get_time");
    world.installed(document("time", "1.1.0", &["get_time"])).await;
    world.plugins.purge(world.project, &first).await.unwrap();
    tokio::time::advance(KNOWN_FOR).await;
    let refused = node.still_offers(&tool, world.project).await.unwrap_err();
    assert!(refused.message.contains("was removed"), "{refused}");
    let not_ours = SourceTool { config: None, ..tool };
    assert!(node.still_offers(&not_ours, world.project).await.is_err());
}
