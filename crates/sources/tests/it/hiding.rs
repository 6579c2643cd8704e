//! What a server was given is hidden in what it says: secrets by name, and values that its configuration holds.

use serde_json::{Value, json};
use toolgate_engine::tools::Called;

use crate::world::{Fixture, World, settings, tool};

/// How a server is given its key, what stands for the key, and the key.
const GIVEN: [(&str, &str, &str); 2] = [
    ("${secret.TOKEN}", "[secret TOKEN]", "hush-hush-hush"),
    ("literal-key-4711", "[env FIXTURE_SECRET]", "literal-key-4711"),
];

async fn world(fixture: &Fixture, value: &str) -> World {
    let world = World::new(settings());
    let mut config = fixture.config();
    config["env"] = json!({ "FIXTURE_SECRET": value });
    world.put("fix", &config).await;
    world.ready("fix").await;
    world
}

#[tokio::test]
async fn results_and_errors_and_progress_do_not_show_what_the_server_was_given() {
    for (value, mark, key) in GIVEN {
        let tools = ["secret", "secret_error", "secret_fail", "progress"].map(tool);
        let fixture = Fixture::new("legacy", &tools);
        let world = world(&fixture, value).await;
        assert_eq!(world.output("mcp_fix_secret", json!({})).await, json!(mark));
        for name in ["mcp_fix_secret_error", "mcp_fix_secret_fail"] {
            let failed = world.call(name, json!({})).await.unwrap_err();
            assert!(
                failed.message.contains(mark) && !failed.message.contains(key),
                "{failed:?}"
            );
        }
        world.output("mcp_fix_progress", json!({})).await;
        let told = Value::from(world.told.lock().unwrap().clone()).to_string();
        assert!(told.contains(mark) && !told.contains(key), "{told}");
    }
}

#[tokio::test]
async fn questions_do_not_show_what_the_server_was_given() {
    for (value, mark, key) in GIVEN {
        for era in ["legacy", "modern"] {
            let fixture = Fixture::new(era, &[tool("ask")]);
            let world = world(&fixture, value).await;
            let Called::Delegated(asks) = world.call("mcp_fix_ask", json!({})).await.unwrap() else {
                panic!("it asks");
            };
            let message = &asks.questions[0].message;
            assert!(message.contains(mark) && !message.contains(key), "{message}");
        }
    }
}

#[tokio::test]
async fn what_an_exposed_server_says_is_passed_on_without_what_it_was_given() {
    for (value, mark, key) in GIVEN {
        let fixture = Fixture::new("legacy", &[tool("secret")]);
        let world = World::new(settings());
        let mut config = fixture.config();
        config["env"] = json!({ "FIXTURE_SECRET": value });
        config["expose"] = json!("through");
        world.put("fix", &config).await;
        let exposed = world.servers.exposed(world.project, "fix").await;
        let hide = exposed.unwrap().expect("it is exposed").hide;
        let said = |words: &str| json!({"content": [{"type": "text", "text": words}]}).to_string();
        assert_eq!(hide(&said(key)), Some(said(mark)));
        assert_eq!(hide(&said("nothing")), None);
    }
}
