//! Going down: what is under way may end, what only waits is left to the next start.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use toolgate_engine::model::ModelErrorKind;
use toolgate_fair::Shares;
use toolgate_kernel::event::{Event, Status};
use toolgate_testkit::scripted_model::{Say, ScriptedModel, last_words, text};

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

#[tokio::test(start_paused = true)]
async fn a_model_that_nobody_has_asked_yet_is_not_asked_during_the_drain() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let model = ScriptedModel::new(move |ask| match last_words(ask).as_str() {
        "speak" => vec![text("one"), Say::Gate(held.clone())],
        _ => by_words(ask),
    });
    let setup = Setup {
        model: model.clone(),
        model_calls: Shares::same(1),
        ..Setup::default()
    };
    let store = setup.store.clone();
    let world = World::with(setup).await;
    let speaking = world.say("speak").await.run_id.unwrap();
    world
        .until(speaking, |event| matches!(event, Event::TextDelta(_)))
        .await;
    let waiting = world.say("hello").await.run_id.unwrap();
    while world.engine.waiting_model_calls() == 0 {
        tokio::task::yield_now().await;
    }
    let stopped = tokio::spawn(world.stop());
    while store.run(waiting).await.unwrap().unwrap().node.is_some() {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    stopped.await.unwrap();
    assert_eq!(model.asked().len(), 1, "the turn that became free was given up");
    let ended = store.run(speaking).await.unwrap().unwrap();
    assert_eq!(ended.status, Status::Completed);
}
