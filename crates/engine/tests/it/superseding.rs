//! What nobody waits for any more ends: by a new message, by a deadline, by a cancel that a crash cut short.

use serde_json::json;
use toolgate_engine::intake::Answer;
use toolgate_engine::store::{Append, LeaseWrite, RunWrite, Wake};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::{EndReason, Event, RunFinish, Status, StepStart, ToolOutputError, Usage};
use toolgate_kernel::id::RunId;

use crate::families::{SPAWN_WAITING, ask_boss, children, outcomes, restarted, runs, world};
use crate::world::{Setup, World, by_words};

/// Says something new to a run that is under way.
async fn interrupt(world: &World, run: RunId) {
    let space = world.store.run(run).await.unwrap().unwrap().space;
    let mut post = world.post_to(Some(space), "never mind");
    post.answer = Answer::Agent("boss".parse().unwrap());
    assert_eq!(world.engine.post(post).await.unwrap().run_id, Some(run));
}

async fn none_is_left(world: &World) {
    for run in runs(world).await {
        assert!(run.status.is_final(), "{run:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_message_supersedes_a_wait_and_all_that_was_started_below() {
    let nested = json!({"agent": "boss", "prompt": SPAWN_WAITING.trim()});
    for (words, depth) in [
        ("call:pause".to_owned(), 0),
        ("call:wait".to_owned(), 0),
        (SPAWN_WAITING.to_owned(), 1),
        (format!("call:spawn_agent={nested}"), 2),
    ] {
        let world = world(by_words, json!({})).await;
        let run = ask_boss(&world, &words).await;
        let mut deepest = run;
        for _ in 0..depth {
            deepest = children(&world, deepest, 1).await[0];
        }
        world.until_status(deepest, Status::WaitingTime).await;
        interrupt(&world, run).await;
        assert_eq!(world.answer(run).await, "you said never mind");
        assert_eq!(
            outcomes(&world, run).await,
            ["Some(Superseded): the user said something new instead"]
        );
        none_is_left(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_gateway_does_itself_is_told_before_the_new_message_is_answered() {
    let world = world(by_words, json!({})).await;
    let run = ask_boss(&world, r#"call:slow={"n":1} call:wait"#).await;
    world
        .until(run, |event| matches!(event, Event::ToolProgress(_)))
        .await;
    interrupt(&world, run).await;
    world.tools.gate.add_permits(1);
    assert_eq!(world.finish(run).await.status, Status::Completed);
    assert_eq!(
        outcomes(&world, run).await,
        [
            "Some(Superseded): the user said something new instead",
            r#"{"n":1}"#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_below_is_ended_and_the_one_above_goes_on() {
    let world = world(by_words, json!({})).await;
    let run = ask_boss(&world, r#"call:hasty={"prompt":"call:wait"}"#).await;
    let child = children(&world, run, 1).await[0];
    world.until_status(child, Status::WaitingTime).await;
    let world = restarted(world).await;
    let answer = world.answer(run).await;
    assert!(answer.contains("gave no answer within 5s"), "{answer}");
    assert_eq!(world.finish(child).await.status, Status::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn cancelling_again_ends_what_a_crash_left_below() {
    let world = world(by_words, json!({})).await;
    let root = ask_boss(&world, SPAWN_WAITING).await;
    let child = children(&world, root, 1).await[0];
    world.until_status(child, Status::WaitingTime).await;
    let end = RunFinish {
        status: Status::Cancelled,
        reason: EndReason::Cancelled,
        usage: Usage::default(),
        error: None,
    };
    leave_behind(&world, root, Status::Cancelled, vec![end.into()], Vec::new()).await;
    let world = restarted(world).await;
    assert_eq!(world.engine.cancel(root).await.unwrap(), Status::Cancelled);
    none_is_left(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_ends_what_was_superseded_just_before_a_crash() {
    let world = world(by_words, json!({})).await;
    let root = ask_boss(&world, SPAWN_WAITING).await;
    let child = children(&world, root, 1).await[0];
    world.until_status(child, Status::WaitingTime).await;
    let log = world.log(root).await;
    let call = log.iter().find_map(|(_, event)| match event {
        Event::ToolInputAvailable(e) => Some(e.tool()),
        _ => None,
    });
    let superseded = ToolOutputError::of(&call.unwrap(), Some(ErrorCode::Superseded), None, None);
    let events = vec![superseded.into(), StepStart { step: 2 }.into()];
    // The write that gives a child up says that it is to be looked at.
    let wakes = vec![Wake::up(child)];
    leave_behind(&world, root, Status::Running, events, wakes).await;
    let world = restarted(world).await;
    assert_eq!(world.finish(child).await.status, Status::Cancelled);
    assert_eq!(world.finish(root).await.status, Status::Completed);
}

/// The store as a crash leaves it that came before the runs below were told.
async fn leave_behind(world: &World, run: RunId, status: Status, events: Vec<Event>, wakes: Vec<Wake>) {
    let record = world.store.run(run).await.unwrap().unwrap();
    let write = RunWrite::Extend {
        id: run,
        version: record.version,
        epoch: record.epoch,
        status,
        wake_at: None,
        // Of the first engine, which is the second one too.
        lease: LeaseWrite::Take(Setup::default().node),
    };
    let append = Append {
        space: record.space,
        run: write,
        events,
        usage: Vec::new(),
        consumption: Vec::new(),
        above: None,
        wakes,
        time: record.updated,
        idempotency: Vec::new(),
    };
    world.store.append(append).await.unwrap();
}
