//! Prerequisites that are met by an earlier message of the space.

use std::time::Duration;

use serde_json::json;
use toolgate_engine::intake::Submission;
use toolgate_engine::workspace::Only;
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{EntityId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::ClientTool;
use uuid::Uuid;

use crate::world::{Setup, World, agent, calls_in};

/// A world whose agent may transfer once a person was verified in the last ten minutes.
async fn bank() -> World {
    let mut config = agent();
    let tool = |name: &str, prerequisites| {
        json!({"name": name, "description": "d", "executionType": "basic", "execution": {"mode": "pass-through"},
               "prerequisites": prerequisites})
    };
    let tools = config["tools"].as_array_mut().unwrap();
    tools.push(tool("verify", json!([])));
    tools.push(tool(
        "transfer",
        json!([{"tool": "verify", "scope": "space", "within": "10m"}]),
    ));
    tools.push(tool("peek", json!([{"tool": "verify", "scope": "space"}])));
    tools.push(tool("strict", json!(["verify"])));
    World::with(Setup {
        agent: config,
        ..Setup::default()
    })
    .await
}

/// What comes of a message of this person.
async fn say(world: &World, space: Option<SpaceId>, person: Option<u128>, words: &str) -> (SpaceId, String) {
    let mut post = world.post_to(space, words);
    post.message.from = person.map(|id| EntityId::new(Uuid::from_u128(id)));
    let posted = world.engine.post(post).await.unwrap();
    (posted.space_id, world.answer(posted.run_id.unwrap()).await)
}

const REFUSED: &str = "needs a successful call of verify";

#[tokio::test(start_paused = true)]
async fn an_earlier_message_of_the_space_meets_a_prerequisite_for_a_time() {
    let world = bank().await;
    let (space, told) = say(&world, None, Some(1), "call:transfer").await;
    assert!(told.contains("verify within the last 600s"), "{told}");
    say(&world, Some(space), Some(1), "call:verify").await;
    say(&world, Some(space), Some(1), "hello").await;
    let (_, told) = say(&world, Some(space), Some(1), r#"call:transfer={"to":"bob"}"#).await;
    assert_eq!(told, r#"got {"to":"bob"}"#);
    // A name alone counts in its run.
    let (_, told) = say(&world, Some(space), Some(1), "call:strict").await;
    assert!(told.contains(REFUSED), "{told}");

    tokio::time::advance(Duration::from_secs(601)).await;
    let (_, told) = say(&world, Some(space), Some(1), "call:transfer call:peek").await;
    assert!(
        told.contains("verify within the last 600s") && told.ends_with("and {}"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_done_for_another_person_or_elsewhere_meets_nothing() {
    let world = bank().await;
    let (space, _) = say(&world, None, Some(1), "call:verify").await;
    for (space, person) in [(Some(space), Some(2)), (Some(space), None), (None, Some(1))] {
        let (_, told) = say(&world, space, person, "call:transfer").await;
        assert!(told.contains(REFUSED), "{person:?}: {told}");
    }
    let (_, told) = say(&world, Some(space), Some(1), "call:transfer").await;
    assert_eq!(told, "got {}");
    // A call that failed meets nothing.
    let (other, told) = say(&world, None, Some(1), "call:strict").await;
    assert!(told.contains(REFUSED), "{told}");
    let (_, told) = say(&world, Some(other), Some(1), "call:peek").await;
    assert!(told.contains(REFUSED), "{told}");
}

/// A post of person 1 that brings a tool named `verify`.
async fn bring_verify(world: &World, space: Option<SpaceId>, words: &str) -> (SpaceId, RunId) {
    let tool = json!({"name": "verify", "description": "d", "parameters": {"type": "object"}});
    let tool: ClientTool = serde_json::from_value(tool).unwrap();
    let mut post = world.post_to(space, words);
    post.message.from = Some(EntityId::new(Uuid::from_u128(1)));
    post.client_tools = vec![tool];
    let posted = world.engine.post(post).await.unwrap();
    (posted.space_id, posted.run_id.unwrap())
}

/// The client answers the only call of the run.
async fn answer_call(world: &World, run: RunId) {
    let calls = calls_in(&world.until_status(run, Status::WaitingTool).await);
    let output = Submission::Output(Json::from(&json!({"verified": true})));
    world.engine.submit(calls[0], output, None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_a_request_brings_never_meets_a_prerequisite() {
    let world = World::new().await;
    let name = "verify".parse().unwrap();
    let verify = |execution| json!({"description": "d", "execution": execution});
    let put = |definition| {
        world
            .engine
            .put_shared_tool(world.project, &name, definition, Only::Always)
    };
    put(verify(json!({"static": 1}))).await.unwrap();
    let peek = json!({"name": "peek", "description": "d", "executionType": "basic", "execution": {"mode": "pass-through"},
                      "prerequisites": [{"tool": "verify", "scope": "space"}]});
    let config = json!({"model": {"provider": "demo"}, "tools": ["verify", peek]});
    let agent = "default".parse().unwrap();
    let agent = world.engine.put_agent(world.project, &agent, config.into());
    agent.await.unwrap();
    let removed = world
        .engine
        .remove_shared_tool(world.project, &name, Only::Always)
        .await;
    assert!(removed.unwrap());

    // The name is free now, so the request may bring a tool of it: it proves nothing, in its run and in the space.
    let (space, run) = bring_verify(&world, None, "call:verify").await;
    answer_call(&world, run).await;
    world.finish(run).await;
    let (_, run) = bring_verify(&world, Some(space), "call:peek").await;
    let told = world.answer(run).await;
    assert!(told.contains(REFUSED), "{told}");
    let (_, told) = say(&world, Some(space), Some(1), "call:peek").await;
    assert!(told.contains(REFUSED), "{told}");

    // Nor when the tool is there again, on the gateway's side or as a client tool of the agent.
    for execution in [json!({"static": 1}), json!({"mode": "no-execution"})] {
        put(verify(execution)).await.unwrap();
        let (_, told) = say(&world, Some(space), Some(1), "call:peek").await;
        assert!(told.contains(REFUSED), "{told}");
    }
    // The agent's own client tool counts.
    let mut post = world.post_to(Some(space), "call:verify");
    post.message.from = Some(EntityId::new(Uuid::from_u128(1)));
    let run = world.engine.post(post).await.unwrap().run_id.unwrap();
    answer_call(&world, run).await;
    world.finish(run).await;
    let (_, told) = say(&world, Some(space), Some(1), "call:peek").await;
    assert_eq!(told, "got {}");
}
