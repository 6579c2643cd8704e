//! Tools that the gateway has renamed, because the agent has one of the same name (`conflict = "prefix"`).

use std::sync::atomic::Ordering;

use serde_json::json;
use toolgate_client::events::Status;
use toolgate_client::{Chunk, Definition, Tool};
use toolgate_testkit::model_server::ModelServer;

use super::{World, all, client, double};
use crate::harness::{Gateway, put_worker};

async fn world() -> World {
    let models = ModelServer::start().await;
    let directory = tempfile::tempdir().unwrap();
    let settings = directory.path().join("toolgate.toml");
    std::fs::write(&settings, "[client_tools]\nconflict = \"prefix\"\n").unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    let gateway = Gateway::start_in(directory, &[("TOOLGATE_CONFIG", &settings)]).await;
    put_worker(&gateway.api(), &models).await;
    let client = client(&gateway);
    World {
        models,
        gateway,
        client,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_is_found_under_the_name_that_the_gateway_gave_its_tool() {
    let world = world().await;
    // The agent has a tool `clock` of its own.
    let clock = Tool::new(
        Definition::new("clock", "Tells the time here."),
        |call| async move { Ok(json!(format!("called as {}", call.name))) },
    );
    world.client.register_tool(clock).await.unwrap();
    let (tool, ran) = double();
    world.client.register_tool(tool).await.unwrap();
    let script = "call:client_clock call:clock call:double input:{\"n\":1} text:1";
    for request in [world.say(script), world.say(script).only(["clock", "double"])] {
        let chunks = all(world.client.chat_stream(request)).await;
        let Some(Chunk::Finished(reply)) = chunks.last() else {
            panic!("{chunks:?}");
        };
        assert_eq!(reply.status, Status::Completed);
        assert_eq!(
            world.results(),
            ["called as client_clock", r#"{"time":"noon"}"#, "2"]
        );
    }
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}
