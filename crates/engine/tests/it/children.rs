//! Runs that start runs.

use toolgate_engine::store::RunFilter;
use toolgate_kernel::event::{Event, Status};
use toolgate_kernel::id::RunId;

use crate::world::{Setup, World};

async fn child_of(world: &World, run: RunId) -> RunId {
    let events = world
        .until(run, |event| matches!(event, Event::ToolExecuting(_)))
        .await;
    let Some(Event::ToolExecuting(started)) = events.last() else {
        unreachable!()
    };
    started.child.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_last_words_of_a_child_are_the_output() {
    let world = World::new().await;
    let run = world.say(r#"call:helper={"prompt":"hi"}"#).await.run_id.unwrap();
    assert_eq!(world.answer(run).await, r#"got "you said hi""#);
    let children = world
        .store
        .runs(
            world.project,
            RunFilter {
                parent: Some(run),
                limit: 10,
                ..RunFilter::default()
            },
        )
        .await
        .unwrap();
    assert_eq!(children.len(), 1);
    assert_eq!(children[0].root, run);
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_run_reaches_the_last_child() {
    let world = World::new().await;
    let nested = r#"call:helper={"prompt":"call:helper={\"prompt\":\"call:wait\"}"}"#;
    let root = world.say(nested).await.run_id.unwrap();
    let child = child_of(&world, root).await;
    let grandchild = child_of(&world, child).await;
    world.until_status(grandchild, Status::WaitingTime).await;
    world.engine.cancel(root).await.unwrap();
    for run in [root, child, grandchild] {
        assert_eq!(world.finish(run).await.status, Status::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn agents_that_call_agents_reach_a_floor() {
    let world = World::new().await;
    // The scripted model passes any prompt on to the next helper.
    let mut words = "hello".to_owned();
    for _ in 0..6 {
        words = format!(r#"call:helper={}"#, serde_json::json!({ "prompt": words }));
    }
    let run = world.say(&words).await.run_id.unwrap();
    let answer = world.answer(run).await;
    assert!(answer.contains("agents may call agents"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_needs_a_person_or_a_client_is_told_that_there_is_none() {
    for (tool, why) in [
        ("ask", "runs on a client"),
        ("guarded", "needs a person's approval"),
        ("guarded_ask", "runs on a client"),
    ] {
        let world = World::new().await;
        let words = format!(r#"call:helper={{"prompt":"call:{tool}"}}"#);
        let run = world.say(&words).await.run_id.unwrap();
        let answer = world.answer(run).await;
        assert!(
            answer.contains(why) && answer.contains("another agent started"),
            "{answer}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_tools_of_a_child_work_in_the_space_of_the_first_run() {
    for always_evict in [false, true] {
        let world = World::with(Setup {
            always_evict,
            ..Setup::default()
        })
        .await;
        let nested = r#"call:helper={"prompt":"call:helper={\"prompt\":\"call:echo\"}"}"#;
        let posted = world.say(nested).await;
        world.finish(posted.run_id.unwrap()).await;
        assert_eq!(world.tools.spaces(), [posted.space_id]);
    }
}
