//! Calls and their results.

use serde_json::json;
use toolgate_engine::tools::ToolSource as _;
use toolgate_engine::workspace::Place;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::json::Json;

use crate::world::{Fixture, World, tool};

const ERAS: [(&str, &str); 2] = [("legacy", "2025-11-25"), ("modern", "2026-07-28")];

#[tokio::test]
async fn servers_of_both_eras_are_called_and_their_era_is_remembered() {
    for (era, protocol) in ERAS {
        let fixture = Fixture::new(era, &[tool("echo"), tool("fail"), tool("refuse")]);
        let world = World::with(&fixture).await;
        assert_eq!(
            world.names().await,
            ["mcp_fix_echo", "mcp_fix_fail", "mcp_fix_refuse"]
        );
        let view = world.servers.get(world.project, "fix").await.unwrap();
        let catalog = view.catalog.expect("it was listed");
        assert_eq!(catalog.protocol, protocol);
        assert_eq!(catalog.server_name.as_deref(), Some("fixture"));
        assert_eq!(
            world.output("mcp_fix_echo", json!({"text": "hi"})).await,
            json!("hi")
        );
        let failed = world.call("mcp_fix_fail", json!({})).await.unwrap_err();
        assert_eq!(
            (failed.code, failed.message.as_str()),
            (ErrorCode::ExecutionFailed, "it broke")
        );
        let refused = world.call("mcp_fix_refuse", json!({})).await.unwrap_err();
        assert_eq!(refused.message, "refused by the server");
    }
}

#[tokio::test]
async fn pictures_and_blobs_become_files_of_the_space() {
    let fixture = Fixture::new("legacy", &[tool("image")]);
    let world = World::with(&fixture).await;
    let output = world.output("mcp_fix_image", json!({})).await;
    assert_eq!(output[0], "look");
    assert_eq!(
        (&output[1]["type"], &output[1]["mediaType"]),
        (&json!("file"), &json!("image/png"))
    );
    assert_eq!(
        (&output[2]["uri"], &output[2]["bytes"]),
        (&json!("file:///a.bin"), &json!(3))
    );
    assert_eq!(output[3]["uri"], "https://a.test/x", "a link stays a link");
    let place = Place {
        project: world.project,
        space: world.space(),
    };
    let path = output[1]["path"]
        .as_str()
        .expect("a path")
        .parse()
        .expect("a name");
    let file = world
        .workspace
        .read(place, &path, None)
        .await
        .expect("it is kept");
    assert_eq!(
        (file.data, file.info.mime_type.as_str()),
        (b"hello".to_vec(), "image/png")
    );
}

#[tokio::test]
async fn structured_content_is_the_output_and_its_schema_is_listed() {
    let mut numbers = tool("numbers");
    numbers["outputSchema"] =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let mut odd = tool("odd");
    odd["outputSchema"] = json!({"type": "object", "properties": {"n": {"type": "colour"}}});
    let fixture = Fixture::new("modern", &[numbers.clone(), odd]);
    let world = World::with(&fixture).await;
    assert_eq!(
        world.output("mcp_fix_numbers", json!({"n": 7})).await,
        json!({"n": 7})
    );
    let list = world.list().await;
    assert_eq!(
        list["mcp_fix_numbers"].members()["outputSchema"],
        numbers["outputSchema"]
    );
    assert_eq!(
        list["mcp_fix_odd"].members().get("outputSchema"),
        None,
        "one that cannot be used is as good as none"
    );
}

#[tokio::test]
async fn progress_reaches_the_space() {
    for (era, _) in ERAS {
        let fixture = Fixture::new(era, &[tool("progress")]);
        let world = World::with(&fixture).await;
        assert_eq!(world.output("mcp_fix_progress", json!({})).await, json!("done"));
        let told = world.told.lock().unwrap().clone();
        assert_eq!(
            told.last(),
            Some(&json!({"progress": 3.0, "total": 3.0, "status": "step 3"})),
            "{told:?}"
        );
    }
}

#[tokio::test]
async fn a_flood_of_progress_is_told_a_few_times() {
    for (era, _) in ERAS {
        let fixture = Fixture::new(era, &[tool("progress_flood")]);
        let world = World::with(&fixture).await;
        let began = std::time::Instant::now();
        assert_eq!(
            world.output("mcp_fix_progress_flood", json!({})).await,
            json!("done")
        );
        let told = world.told.lock().unwrap().clone();
        let most = 11 * (began.elapsed().as_secs() as usize + 1);
        assert!(!told.is_empty() && told.len() <= most, "{} times", told.len());
        let steps = told.iter().map(|told| told["progress"].as_f64());
        assert!(steps.is_sorted(), "{told:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_on_the_server() {
    for (era, _) in ERAS {
        let fixture = Fixture::new(era, &[tool("slow"), tool("echo")]);
        let world = World::with(&fixture).await;
        let slow = world.pinned("mcp_fix_slow").await;
        let context = world.context();
        let input = Json::from(json!({}));
        tokio::select! {
            ended = world.source.call(&slow, &input, &context) => panic!("{ended:?}"),
            _ = fixture.wrote("called-slow") => {}
        }
        let told = fixture.wrote("cancelled").await;
        assert!(told.contains("requestId"), "{told}");
        assert_eq!(
            world.output("mcp_fix_echo", json!({"text": "still there"})).await,
            json!("still there")
        );
    }
}

#[tokio::test]
async fn a_secret_reaches_the_server_and_nobody_else() {
    let fixture = Fixture::new("legacy", &[tool("secret")]);
    let world = World::new(crate::world::settings());
    let mut config = fixture.config();
    config["env"] = json!({"FIXTURE_SECRET": "Bearer ${secret.TOKEN}"});
    let shown = world.put("fix", &config).await.config;
    assert_eq!(shown["env"], json!({"FIXTURE_SECRET": "***"}));
    world.ready("fix").await;
    let output = world.output("mcp_fix_secret", json!({})).await;
    assert_eq!(
        output,
        json!("Bearer [secret TOKEN]"),
        "it has it, and cannot tell it"
    );

    config["env"] = json!({"FIXTURE_SECRET": "${secret.NONE}"});
    world.put("fix", &config).await;
    let view = world.servers.test(world.project, "fix").await.unwrap();
    assert!(
        format!("{:?}", view.status).contains("the secret \\\"NONE\\\" is not set"),
        "{view:?}"
    );
}
