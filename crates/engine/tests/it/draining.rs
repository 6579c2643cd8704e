//! Going down: what is under way may end, what only waits is left to the next start.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_engine::model::ModelErrorKind;
use toolgate_kernel::event::{Event, Status};
use toolgate_testkit::scripted_model::{Say, ScriptedModel, last_words};

use crate::world::{Setup, World, by_words};

/// Below every wait of these tests: a drain takes no time when nothing is under way.
const AT_ONCE: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn what_only_waits_does_not_hold_the_drain() {
    let model = ScriptedModel::new(|ask| match last_words(ask).as_str() {
        "fail" => vec![Say::Break(ModelErrorKind::Retryable)],
        _ => by_words(ask),
    });
    let setup = Setup {
        model,
        ..Setup::default()
    };
    let store = setup.store.clone();
    let world = World::with(setup).await;
    for (words, waits) in [
        ("call:ask", Status::WaitingTool),
        ("call:guarded", Status::WaitingApproval),
        ("call:wait", Status::WaitingTime),
    ] {
        let run = world.say(words).await.run_id.unwrap();
        world.until_status(run, waits).await;
    }
    let parent = world.say(r#"call:helper={"prompt":"call:wait"}"#).await;
    let events = world
        .until(parent.run_id.unwrap(), |event| {
            matches!(event, Event::ToolExecuting(_))
        })
        .await;
    let Some(Event::ToolExecuting(started)) = events.last() else {
        unreachable!()
    };
    world
        .until_status(started.child.unwrap(), Status::WaitingTime)
        .await;
    world.rest().await;
    let retrying = world.say("fail").await.run_id.unwrap();
    world
        .until(retrying, |event| matches!(event, Event::StepRetry(_)))
        .await;
    let began = Instant::now();
    world.stop().await;
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    // Its lease was given back, so that the next start, or another node, goes on at once.
    let left = store.run(retrying).await.unwrap().unwrap();
    assert_eq!((left.node, left.status), (None, Status::Running));
}
