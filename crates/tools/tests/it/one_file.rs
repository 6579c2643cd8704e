//! A server tool is one file and the line that registers it. The rest is the engine's: deadline, cancel, progress,
//! limits, redaction.

use serde_json::{Value, json};
use toolgate_engine::feed::Scope;
use toolgate_kernel::event::{Event, Seq, Status};
use toolgate_kernel::id::RunId;

use crate::countdown::Countdown;
use crate::world::World;

async fn world() -> World {
    World::in_memory_with(|toolkit| toolkit.register(Countdown)).await
}

/// Every progress that a run tells until it ends; `each` sees them as they come.
async fn progress(world: &World, run: RunId, each: impl AsyncFn(&Value)) -> Vec<Value> {
    let mut following = world.engine.subscribe(Scope::Run(run), Seq(0)).await.unwrap();
    let mut told = Vec::new();
    while let Ok(batch) = following.next().await {
        for (_, event) in batch.placed() {
            match event {
                Event::ToolProgress(e) => {
                    let value = e.progress.as_ref().expect("backends see it").to_value();
                    each(&value).await;
                    told.push(value);
                }
                Event::RunFinish(_) => return told,
                _ => {}
            }
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn it_runs_and_tells_how_far_it_is() {
    let world = world().await;
    let run = world.start("ada", &[("countdown", json!({"from": 3}))]).await;
    let told = progress(&world, run, async |_| ()).await;
    assert_eq!(told, [json!({"left": 3}), json!({"left": 2}), json!({"left": 1})]);
    assert_eq!(world.outcomes(run).await, [Ok(json!({"said": "Hurrah! "}))]);
}

#[tokio::test(start_paused = true)]
async fn its_input_is_checked_before_it_is_called() {
    let world = world().await;
    let told = world.call("ada", "countdown", json!({"from": "ten"})).await;
    assert!(told.unwrap_err().contains("ValidationFailed"));
}

#[tokio::test(start_paused = true)]
async fn it_is_stopped_at_its_deadline() {
    let world = world().await;
    let run = world.start("ada", &[("countdown", json!({"from": 60}))]).await;
    let told = progress(&world, run, async |_| ()).await;
    assert!(told.len() < 10, "{told:?}");
    let outcome = world.outcomes(run).await.remove(0).unwrap_err();
    assert!(
        outcome.contains("countdown gave no answer within 5s"),
        "{outcome}"
    );
}

#[tokio::test(start_paused = true)]
async fn it_is_stopped_when_the_run_is_cancelled() {
    let world = world().await;
    let run = world.start("ada", &[("countdown", json!({"from": 60}))]).await;
    let told = progress(&world, run, async |value| {
        if *value == json!({"left": 60}) {
            assert_eq!(world.engine.cancel(run).await.unwrap(), Status::Cancelled);
        }
    })
    .await;
    assert_eq!(told, [json!({"left": 60})]);
    assert!(
        world
            .outcomes(run)
            .await
            .remove(0)
            .unwrap_err()
            .contains("Cancelled")
    );
}

#[tokio::test(start_paused = true)]
async fn an_output_too_large_for_a_conversation_becomes_a_file() {
    let world = world().await;
    let told = world
        .call("ada", "countdown", json!({"from": 0, "cheers": 100_000}))
        .await
        .unwrap();
    assert_eq!(told["truncated"], true);
    let file = told["file"]["path"].as_str().unwrap();
    assert!(
        file.starts_with("outputs/call_") && file.ends_with(".json"),
        "{told}"
    );
}

#[test]
fn the_architecture_shows_the_whole_of_it() {
    let page = include_str!("../../../../ARCHITECTURE.md");
    assert!(
        page.contains(include_str!("countdown.rs")),
        "ARCHITECTURE.md shows another countdown.rs"
    );
}
