//! Messages: new runs, runs under way, repeats, history.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;
use toolgate_engine::ScheduledMessage;
use toolgate_engine::intake::{Charged, IntakeError, PostError, Submission, UnderWay};
use toolgate_engine::quota::QuotaLimits;
use toolgate_fair::Shares;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::{Event, Status};
use toolgate_kernel::id::EntityId;
use toolgate_kernel::json::Json;
use toolgate_kernel::prompt::Turn;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, last_words, text};
use uuid::Uuid;

use crate::world::{Setup, World, by_words, calls_in, message};

#[tokio::test(start_paused = true)]
async fn a_new_message_supersedes_open_calls() {
    let world = World::new().await;
    let posted = world.say("call:ask").await;
    let run = posted.run_id.unwrap();
    let call = calls_in(&world.until_status(run, Status::WaitingTool).await)[0];
    let next = world.say_in(posted.space_id, "never mind").await;
    assert_eq!(next.run_id, Some(run));
    assert_eq!(world.answer(run).await, "you said never mind");
    let late = world
        .engine
        .submit(call, Submission::Output(Json::from(json!({}))), None)
        .await;
    assert!(
        matches!(
            late,
            Err(IntakeError::Gone {
                code: ErrorCode::Superseded,
                ..
            })
        ),
        "{late:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_while_the_model_speaks_is_answered_next() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let model = ScriptedModel::new(move |ask| match last_words(ask).as_str() {
        "first" => vec![text("one"), Say::Gate(held.clone()), text(" done")],
        other => vec![text(format!("then {other}"))],
    });
    let world = World::with(Setup {
        model,
        ..Setup::default()
    })
    .await;
    let posted = world.say("first").await;
    let run = posted.run_id.unwrap();
    world
        .until(run, |event| matches!(event, Event::TextDelta(_)))
        .await;
    assert_eq!(world.say_in(posted.space_id, "second").await.run_id, Some(run));
    gate.add_permits(1);
    assert_eq!(world.answer(run).await, "then second");
    let turns = world.model.asked().last().unwrap().turns.clone();
    let kinds: Vec<&str> = turns
        .iter()
        .map(|turn| match turn.as_ref() {
            Turn::User(_) => "user",
            Turn::Assistant(_) => "assistant",
            Turn::Results(_) => "results",
        })
        .collect();
    assert_eq!(kinds, ["user", "assistant", "user"]);
}

#[tokio::test(start_paused = true)]
async fn the_next_run_remembers_what_was_said_in_the_space() {
    let world = World::new().await;
    let posted = world.say(r#"call:mirror={"a":1}"#).await;
    world.finish(posted.run_id.unwrap()).await;
    let next = world.say_in(posted.space_id, "again").await;
    assert_ne!(next.run_id, posted.run_id);
    world.finish(next.run_id.unwrap()).await;
    let ask = world.model.asked().pop().unwrap();
    assert_eq!(ask.turns.len(), 5, "{:#?}", ask.turns);
    assert_eq!(last_words(&ask), "again");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_is_answered_as_before_and_another_one_refused() {
    let world = World::new().await;
    let mut post = world.post_to(None, "once");
    post.idempotency = Some(("key".into(), [1; 32]));
    let first = world.engine.post(post.clone()).await.unwrap();
    world.finish(first.run_id.unwrap()).await;
    let again = world.engine.post(post.clone()).await.unwrap();
    assert!(again.repeated);
    assert_eq!((again.run_id, again.message_id), (first.run_id, first.message_id));
    assert_eq!(again.seq, first.seq);
    post.idempotency = Some(("key".into(), [2; 32]));
    assert!(matches!(world.engine.post(post).await, Err(PostError::KeyReused)));
}

#[tokio::test(start_paused = true)]
async fn a_run_beyond_the_limit_waits_its_turn() {
    let world = World::with(Setup {
        runs_active: Shares::same(1),
        ..Setup::default()
    })
    .await;
    let slow = world.say("call:slow").await.run_id.unwrap();
    world
        .until(slow, |event| matches!(event, Event::ToolExecuting(_)))
        .await;
    let second = world.say("hello").await.run_id.unwrap();
    assert_eq!(
        world.store.run(second).await.unwrap().unwrap().status,
        Status::Queued
    );
    world.tools.gate.add_permits(1);
    assert_eq!(world.answer(second).await, "you said hello");
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_takes_messages_and_a_cancel_while_there_is_no_room() {
    let world = World::with(Setup {
        runs_active: Shares::same(1),
        ..Setup::default()
    })
    .await;
    let slow = world.say("call:slow").await.run_id.unwrap();
    world
        .until(slow, |event| matches!(event, Event::ToolExecuting(_)))
        .await;
    let (told, cancelled) = (world.say("hello").await, world.say("hello").await);
    let (told_run, cancelled) = (told.run_id.unwrap(), cancelled.run_id.unwrap());
    let joined = world.say_in(told.space_id, "and good bye").await;
    assert_eq!(joined.run_id, told.run_id);
    assert_eq!(world.engine.cancel(cancelled).await.unwrap(), Status::Cancelled);
    assert_eq!(
        world.store.run(told_run).await.unwrap().unwrap().status,
        Status::Queued
    );
    world.tools.gate.add_permits(1);
    assert_eq!(world.answer(told_run).await, "you said and good bye");
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_cancelled_at_every_point() {
    let gate = Arc::new(Semaphore::new(0));
    let model = ScriptedModel::new(move |ask| match last_words(ask).as_str() {
        "speak" => vec![text("one"), Say::Gate(gate.clone())],
        _ => by_words(ask),
    });
    let world = World::with(Setup {
        model,
        ..Setup::default()
    })
    .await;
    for (words, point) in [
        ("speak", "text-delta"),
        ("call:slow", "tool-executing"),
        ("call:ask", "run-status"),
        ("call:guarded", "run-status"),
    ] {
        let run = world.say(words).await.run_id.unwrap();
        world.until(run, |event| event.kind() == point).await;
        assert_eq!(
            world.engine.cancel(run).await.unwrap(),
            Status::Cancelled,
            "{words}"
        );
        assert_eq!(world.finish(run).await.status, Status::Cancelled);
        assert_eq!(world.engine.cancel(run).await.unwrap(), Status::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_takes_one_message_under_one_id_however_often_it_is_asked() {
    let world = World::new().await;
    let asked = world.say("call:ask").await;
    world
        .until_status(asked.run_id.unwrap(), Status::WaitingTool)
        .await;
    // No key: nothing is remembered beside the log. The run waits again after it, so it stays open.
    let post = world.post_to(Some(asked.space_id), "call:show");
    let first = world.engine.post(post.clone()).await.unwrap();
    assert_eq!((first.run_id, first.repeated), (asked.run_id, false));
    let again = world.engine.post(post.clone()).await.unwrap();
    assert_eq!((again.run_id, again.seq), (first.run_id, first.seq));
    assert!(again.repeated);
    let mut other = post.clone();
    other.message.parts = message("something else").parts;
    assert!(matches!(
        world.engine.post(other).await,
        Err(PostError::MessageIdReused)
    ));
    let mut other = post;
    other.message.from = Some(EntityId::new(Uuid::from_u128(5)));
    assert!(matches!(
        world.engine.post(other).await,
        Err(PostError::MessageIdReused)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_due_plan_counts_against_the_quotas_of_whoever_made_the_space() {
    let quotas = QuotaLimits {
        open_runs: 1,
        ..QuotaLimits::UNLIMITED
    };
    let setup = Setup::default();
    let world = World::with(Setup { quotas, ..setup }).await;
    let ada = EntityId::new(Uuid::from_u128(7));
    let mut post = world.post_to(None, "call:ask");
    post.message.from = Some(ada);
    post.starter = toolgate_kernel::agent::Starter::User {
        groups: Arc::default(),
    };
    post.charged = Charged::User(ada);
    let own = world.engine.post(post).await.unwrap();
    let others = world.say("call:ask").await;
    let due = |space, agent: &str| {
        let scheduled = ScheduledMessage {
            project: world.project,
            space,
            agent: agent.parse().unwrap(),
            cause: format!("plan of {agent}"),
            due: world.now(),
            text: "call:ask".into(),
            plan_id: "plan_1".into(),
            asked_by: None,
            under_way: UnderWay::Join,
        };
        world.engine.post_scheduled(scheduled)
    };
    let refused = due(own.space_id, "helper").await;
    assert!(matches!(refused, Err(PostError::Quota(_))), "{refused:?}");
    let joined = due(own.space_id, "default").await.unwrap();
    assert_eq!(Some(joined), own.run_id, "which adds no run");
    due(others.space_id, "helper").await.unwrap();
}
