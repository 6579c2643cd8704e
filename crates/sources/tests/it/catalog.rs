//! What servers list: stored, served before they are up, changed while they run.

use serde_json::{Value, json};
use toolgate_engine::tools::ToolSource as _;
use toolgate_sources::{Commands, McpLimits, McpSettings, ServerError, Status};

use crate::world::{Fixture, World, settings, tool};

#[tokio::test]
async fn the_catalog_is_served_before_the_server_is_up() {
    let fixture = Fixture::new("modern", &[tool("echo")]);
    let world = World::with(&fixture).await;
    let restarted = world.again();
    drop(world);
    std::fs::remove_file(fixture.directory.path().join("started")).unwrap();
    assert_eq!(restarted.names().await, ["mcp_fix_echo"]);
    assert!(!fixture.has("started"), "nobody needed it yet");
    assert_eq!(
        restarted.output("mcp_fix_echo", json!({"text": "up"})).await,
        json!("up")
    );
}

#[tokio::test]
async fn the_list_is_the_same_while_nothing_has_changed() {
    let fixture = Fixture::new("legacy", &[tool("echo")]);
    let world = World::with(&fixture).await;
    let first = world.list().await;
    world.ready("fix").await;
    assert!(std::sync::Arc::ptr_eq(&first, &world.list().await));
}

#[tokio::test]
async fn a_malformed_tool_is_left_out_and_named_and_the_rest_live() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "colour"}}});
    let broken = json!({"name": "broken", "inputSchema": schema, "outputSchema": true});
    for era in ["legacy", "modern"] {
        let fixture = Fixture::new(era, &[tool("echo"), broken.clone(), json!("what")]);
        let world = World::new(settings());
        world.put("fix", &fixture.config()).await;
        let view = world.ready("fix").await;
        assert_eq!(world.names().await, ["mcp_fix_echo"]);
        let warnings = view.catalog.unwrap().warnings.clone();
        assert!(
            warnings
                .iter()
                .any(|warning| warning.starts_with("broken was left out")),
            "{warnings:?}"
        );
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }
}

#[tokio::test]
async fn a_server_tells_of_new_tools_and_they_are_listed() {
    for era in ["legacy", "modern"] {
        let fixture = Fixture::new(era, &[tool("echo")]);
        let world = World::with(&fixture).await;
        if era == "modern" {
            fixture.wrote("listens").await;
        }
        fixture.lists(&[tool("echo"), tool("fail")]);
        fixture.changed();
        world.until_listed(&["mcp_fix_echo", "mcp_fix_fail"]).await;
        fixture.lists(&[tool("fail")]);
        world.ready("fix").await;
        assert_eq!(
            world.names().await,
            ["mcp_fix_fail"],
            "what the server lists no longer vanishes"
        );
    }
}

#[tokio::test]
async fn names_that_would_be_the_same_are_told_apart_and_stay() {
    let (one, other) = (
        Fixture::new("legacy", &[tool("b_echo")]),
        Fixture::new("legacy", &[tool("echo")]),
    );
    let world = World::new(settings());
    world.put("a_b", &other.config()).await;
    world.ready("a_b").await;
    world.put("a", &one.config()).await;
    world.ready("a").await;
    let names = world.names().await;
    assert_eq!(names[0], "mcp_a_b_echo", "{names:?}");
    assert!(names[1].starts_with("mcp_a_b_echo_"), "{names:?}");
    let pinned = world.pinned("mcp_a_b_echo").await.config.unwrap().to_value();
    assert_eq!(
        (&pinned["server"], &pinned["tool"]),
        (&json!("a_b"), &json!("echo"))
    );
}

#[tokio::test]
async fn limits_on_what_a_server_lists_are_told_with_their_settings() {
    let fixture = Fixture::new("legacy", &[tool("one"), tool("two")]);
    let check = async |limits: McpLimits, setting: &str| {
        let world = World::new(McpSettings { limits, ..settings() });
        world.put("fix", &fixture.config()).await;
        let view = world.servers.test(world.project, "fix").await.unwrap();
        assert!(format!("{:?}", view.status).contains(setting), "{view:?}");
    };
    let limits = McpLimits::default();
    check(McpLimits { tools: 1, ..limits }, "mcp.tools_max").await;
    check(
        McpLimits {
            catalog_bytes: 50,
            ..limits
        },
        "mcp.catalog_bytes_max",
    )
    .await;
    let world = World::new(McpSettings {
        limits: McpLimits { servers: 1, ..limits },
        ..settings()
    });
    world.put("one", &fixture.config()).await;
    let second = world.servers.put(world.project, "two", &fixture.config()).await;
    assert!(matches!(second, Err(ServerError::TooMany(1))), "{second:?}");
}

#[tokio::test]
async fn programs_are_started_only_where_the_settings_permit_it() {
    let fixture = Fixture::new("legacy", &[tool("echo")]);
    let program = fixture.config()["command"].as_str().unwrap().to_owned();
    for (commands, permitted) in [
        (Commands::None, false),
        (Commands::Only(vec!["uvx".into()]), false),
        (Commands::Only(vec![program]), true),
        (Commands::Any, true),
    ] {
        let world = World::new(McpSettings {
            commands,
            ..settings()
        });
        let put = world.servers.put(world.project, "fix", &fixture.config()).await;
        assert_eq!(put.is_ok(), permitted, "{put:?}");
        if let Err(error) = put {
            assert!(error.to_string().contains("mcp.commands"), "{error}");
        }
    }
    // The operator's own may.
    let world = World::new(McpSettings {
        commands: Commands::None,
        servers: [("fix".to_owned(), fixture.config())].into(),
        ..settings()
    });
    assert_eq!(
        world.names().await,
        ["mcp_fix_echo"],
        "the first listing is waited for"
    );
    let changed = world.servers.put(world.project, "fix", &fixture.config()).await;
    assert!(matches!(changed, Err(ServerError::Settings(_))), "{changed:?}");
}

#[tokio::test]
async fn addresses_inside_are_for_the_operator_alone() {
    let world = World::new(settings());
    let inside = json!({"url": "http://127.0.0.1:9/mcp"});
    let put = world.servers.put(world.project, "web", &inside).await;
    let Err(ServerError::Invalid(problems)) = put else {
        panic!("{put:?}")
    };
    assert_eq!(problems[0].pointer, "/url");
    assert!(problems[0].message.contains("outside.allow"), "{problems:?}");
}

#[tokio::test]
async fn every_problem_of_a_configuration_is_told_at_once() {
    let world = World::new(settings());
    let check = async |config: Value, pointers: &[&str]| {
        let put = world.servers.put(world.project, "fix", &config).await;
        let Err(ServerError::Invalid(problems)) = put else {
            panic!("{put:?}")
        };
        let found: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(found, pointers, "{problems:?}");
    };
    check(json!({}), &[""]).await;
    check(
        json!({"url": "ftp://x", "cwd": "/", "review": "maybe"}),
        &["/cwd", "/url", "/review"],
    )
    .await;
    check(
        json!({"command": "x", "args": [1], "env": {"A": "***"}, "calls": 0}),
        &["/args", "/env", "/calls"],
    )
    .await;
    check(json!({"url": "https://user:pass@a.test/"}), &["/url"]).await;
}

#[tokio::test]
async fn the_servers_of_an_agent_are_its_own() {
    let fixture = Fixture::new("legacy", &[tool("echo")]);
    let world = World::new(settings());
    let servers = json!({"own": fixture.config()});
    let servers = servers.as_object().unwrap();
    world
        .servers
        .put_agents(world.project, "ada", servers)
        .await
        .unwrap();
    let list = world.list().await;
    assert_eq!(list.keys().collect::<Vec<_>>(), ["ada/mcp_own_echo"]);
    let sets = world.source.sets(&list);
    assert_eq!(sets["ada/own"][0].name, "mcp_own_echo");
    world
        .servers
        .put_agents(world.project, "ada", &serde_json::Map::new())
        .await
        .unwrap();
    assert_eq!(world.names().await, Vec::<String>::new());
    fixture.wrote("ended").await;
}

#[tokio::test]
async fn a_removed_server_is_ended_and_its_tools_are_gone() {
    let fixture = Fixture::new("modern", &[tool("echo")]);
    let world = World::with(&fixture).await;
    let pinned = world.pinned("mcp_fix_echo").await;
    assert!(world.servers.remove(world.project, "fix").await.unwrap());
    assert!(!world.servers.remove(world.project, "fix").await.unwrap());
    fixture.wrote("ended").await;
    let called = world.call_pinned(&pinned, json!({})).await.unwrap_err();
    assert!(called.message.contains("removed"), "{called:?}");
}

#[tokio::test]
async fn a_flood_of_changes_is_listed_a_few_times() {
    const NOTICES: usize = 2_000;
    let fixture = Fixture::new("legacy", &[tool("echo")]);
    let world = World::with(&fixture).await;
    fixture.lists(&[tool("echo"), tool("progress")]);
    fixture.write("changed", &NOTICES.to_string());
    fixture.wrote("told").await;
    world.until_listed(&["mcp_fix_echo", "mcp_fix_progress"]).await;
    let listings: usize = fixture.wrote("listings").await.parse().unwrap();
    assert!(
        listings < NOTICES / 10,
        "{listings} listings for {NOTICES} notices"
    );
}

#[tokio::test]
async fn a_server_that_changes_without_end_is_listed_less_and_less() {
    let fixture = Fixture::new("legacy", &[tool("echo")]);
    let world = World::with(&fixture).await;
    let listings = |fixture: &Fixture| {
        let count = std::fs::read_to_string(fixture.directory.path().join("listings"));
        count.ok().and_then(|count| count.parse::<usize>().ok())
    };
    let before = listings(&fixture).expect("it was listed");
    let began = std::time::Instant::now();
    let mut changes = 0;
    while listings(&fixture).is_some_and(|now| now < before + 3) {
        changes += 1;
        fixture.lists(&[tool(&format!("tool{changes}"))]);
        fixture.changed();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(began.elapsed().as_secs() < 60, "it is not listed again");
    }
    // 1, 2 and 4 seconds after the one before.
    assert!(began.elapsed().as_secs() >= 5, "{:?}", began.elapsed());
    drop(world);
}

#[tokio::test]
async fn a_listing_that_is_too_long_is_refused_before_it_is_taken_apart() {
    let long = |number: usize| {
        let mut long = tool(&format!("tool{number}"));
        long["description"] = "x".repeat(30_000).into();
        long
    };
    let tools: Vec<_> = (0..150).map(long).collect();
    let fixture = Fixture::new("legacy", &tools);
    let world = World::new(settings());
    world.put("fix", &fixture.config()).await;
    let view = world.servers.test(world.project, "fix").await.unwrap();
    let Status::Failed { reason, .. } = view.status else {
        panic!("{view:?}");
    };
    assert!(reason.contains("more than 4194304 bytes"), "{reason}");
}
