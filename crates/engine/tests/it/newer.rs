//! A run that a newer version has written to: read, passed on, and left alone.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_engine::clock::Clock;
use toolgate_engine::feed::Scope;
use toolgate_engine::intake::{IntakeError, Submission};
use toolgate_engine::store::{LogRange, StoreError};
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::id::{CallId, EntityId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::view;
use uuid::Uuid;

use crate::world::{Setup, World, calls_in};

/// A run that waits for a client, and what a newer node then writes to its log.
async fn written_to(world: &World, future: Value) -> (RunId, CallId) {
    let run = world.say("call:ask").await.run_id.unwrap();
    let call = calls_in(&world.until_status(run, Status::WaitingTool).await)[0];
    world.write(run, future).await;
    (run, call)
}

fn answer() -> Submission {
    Submission::Output(Json::from(json!({"yes": 1})))
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_past_an_event_that_changes_nothing() {
    let world = World::new().await;
    let (run, call) = written_to(&world, json!({"type": "dream", "ignorable": true})).await;
    world.engine.submit(call, answer(), None).await.unwrap();
    assert_eq!(world.answer(run).await, r#"got {"yes":1}"#);
}

#[tokio::test(start_paused = true)]
async fn a_run_beyond_this_version_is_read_and_passed_on_but_not_driven() {
    let world = World::new().await;
    let (run, call) = written_to(&world, json!({"type": "run-forked", "into": 2})).await;
    let before = world.store.run(run).await.unwrap();
    let refused = world.engine.submit(call, answer(), None).await.unwrap_err();
    assert!(
        matches!(&refused, IntakeError::Store(StoreError::Newer { run: of, kind }) if *of == run && kind == "run-forked"),
        "{refused}"
    );
    let refused = world.engine.cancel(run).await.unwrap_err();
    assert!(
        matches!(refused, IntakeError::Store(StoreError::Newer { .. })),
        "{refused}"
    );
    assert_eq!(
        world.store.run(run).await.unwrap(),
        before,
        "nothing was written, nobody holds it"
    );

    let mut events = world.engine.subscribe(Scope::Run(run), Seq(0)).await.unwrap();
    let forked = loop {
        let batch = events.next().await.unwrap();
        let found = batch.placed().find(|(_, event)| event.kind() == "run-forked");
        if let Some((_, event)) = found {
            break event.clone();
        }
    };
    let member = Decider::Member {
        entity: EntityId::new(Uuid::nil()),
        roles: Vec::new(),
        token_roles: Arc::default(),
        groups: Arc::default(),
    };
    assert_eq!(view(&forked, &member), None);
    assert!(view(&forked, &Decider::Backend).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_run_beyond_this_version_is_not_taken_up() {
    let world = World::new().await;
    let (run, _) = written_to(&world, json!({"type": "run-forked"})).await;
    let (store, clock) = (world.store.clone(), world.clock.clone());
    world.stop().await;
    let before = store.run(run).await.unwrap();
    // Past its deadline, so that every start and every scan finds it.
    let wake_at = before.as_ref().and_then(|record| record.wake_at).unwrap();
    clock.jump(wake_at.since(clock.now()).as_millis() as i64 + 1);
    let world = World::with(Setup {
        store: store.clone(),
        clock,
        ..Setup::default()
    })
    .await;
    let other = world.say("hello").await.run_id.unwrap();
    assert_eq!(world.answer(other).await, "you said hello");
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(store.run(run).await.unwrap(), before);
    let log = store.run_log(run, LogRange::newest()).await.unwrap();
    assert_eq!(
        log.entries[0].beyond().map(|event| event.kind()),
        Some("run-forked")
    );
}
