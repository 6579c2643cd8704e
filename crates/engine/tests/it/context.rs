//! What a tool sees around its call.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_engine::store::{EntityRecord, Store};
use toolgate_kernel::event::Event;
use toolgate_kernel::id::EntityId;
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;
use uuid::Uuid;

use crate::world::{Setup, World};

/// An agent with a tool that tells what it sees, and a person.
async fn world() -> (World, EntityId) {
    world_on(Arc::new(MemoryStore::new())).await
}

async fn world_on(store: Arc<dyn Store>) -> (World, EntityId) {
    let world = World::with(Setup {
        store,
        ..Setup::default()
    })
    .await;
    let looker = json!({
        "instructions": "Do as the test says.",
        "model": {"provider": "demo"},
        "grants": ["garden"],
        "tools": [
            {"name": "look", "executionType": "prebuilt", "execution": {"action": "context"}, "timeout": "7s"},
            {"name": "hang", "executionType": "prebuilt", "execution": {"action": "hang"}},
            {"name": "again", "description": "Asks.", "executionType": "ai-agent", "execution": {"agent": "default"}},
        ],
    });
    let name = "default".parse().unwrap();
    world
        .engine
        .put_agent(world.project, &name, looker.into())
        .await
        .unwrap();
    let id = EntityId::new(Uuid::from_u128(77));
    let ada = EntityRecord {
        id,
        project: world.project,
        subject: "ada".into(),
        kind: "person".into(),
        name: Some("Ada".into()),
        metadata: Some(json!({"plan": "gold"}).into()),
        grants: Vec::new(),
        created: Time(0),
    };
    world.store.put_entity(ada).await.unwrap();
    (world, id)
}

/// What `look` saw, in this run or in the one that it started.
fn seen(answer: &str) -> Value {
    let told = answer.strip_prefix("got ").expect("a result");
    match serde_json::from_str(told).expect("JSON") {
        Value::String(inner) => seen(&inner),
        value => value,
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_sees_the_conversation_the_person_and_what_it_may_do() {
    let (world, ada) = world().await;
    let space = {
        let mut post = world.post_to(None, "hello");
        post.message.from = Some(ada);
        let posted = world.engine.post(post).await.unwrap();
        world.finish(posted.run_id.unwrap()).await;
        posted.space_id
    };
    for (words, depth) in [("call:look", 0), (r#"call:again={"prompt":"call:look"}"#, 1)] {
        let mut post = world.post_to(Some(space), words);
        post.message.from = Some(ada);
        let run = world.engine.post(post).await.unwrap().run_id.unwrap();
        let seen = seen(&world.answer(run).await);
        assert_eq!(
            seen["profile"],
            json!({"subject": "ada", "name": "Ada", "metadata": {"plan": "gold"}})
        );
        assert_eq!(seen["tools"], json!(["again", "hang", "look"]));
        assert_eq!(seen["grants"], json!(["garden"]));
        assert_eq!(
            (&seen["agent"], &seen["depth"]),
            (&json!("default"), &json!(depth))
        );
        assert_eq!((&seen["seconds"], &seen["cancelled"]), (&json!(7), &json!(false)));
        assert!(seen["entity"].is_string());
        match depth {
            0 => {
                assert_eq!(seen["space"], json!(space));
                let history = [
                    "user: hello",
                    "agent: you said hello",
                    "user: call:look",
                    "agent: ",
                ];
                assert_eq!(seen["history"], json!(history));
            }
            // A run below has a conversation of its own.
            _ => assert_eq!(seen["history"], json!(["user: call:look", "agent: "])),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_speaks_for_nobody_has_no_profile() {
    let (world, _) = world().await;
    let run = world.say("call:look").await.run_id.unwrap();
    assert_eq!(seen(&world.answer(run).await)["profile"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_told_that_nobody_wants_its_result_any_more() {
    let (world, _) = world().await;
    let run = world.say("call:hang").await.run_id.unwrap();
    world
        .until(run, |event| matches!(event, Event::ToolProgress(_)))
        .await;
    world.engine.cancel(run).await.unwrap();
    world.tools.cancels()[0].cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_is_not_run_for_nobody_because_the_store_does_not_answer() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()), 0, 0));
    let (world, ada) = world_on(store.clone()).await;
    store.refuse(Some("entity"));
    let mut post = world.post_to(None, "call:look");
    post.message.from = Some(ada);
    let run = world.engine.post(post).await.unwrap().run_id.unwrap();
    let answer = world.answer(run).await;
    assert!(answer.contains("did not say whom the call is for"), "{answer}");
    assert_eq!(world.tools.calls(), []);
}
