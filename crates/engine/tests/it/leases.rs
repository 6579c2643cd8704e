//! Runs that change hands: after a stop, a crash, or a worker that was thought dead.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_engine::intake::{PostError, Posted, Submission};
use toolgate_engine::store::{Append, LeaseWrite, RunFilter, RunWrite, Runs, StoreError};
use toolgate_kernel::event::{Event, Status, StepStart};
use toolgate_kernel::id::{NodeId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;
use uuid::Uuid;

use crate::world::{Setup, World, calls_in};

/// A second engine on the first one's store and clock.
async fn beside(world: &World, node: u128) -> World {
    let setup = Setup {
        store: world.store.clone(),
        clock: world.clock.clone(),
        node: NodeId::new(Uuid::from_u128(node)),
        ..Setup::default()
    };
    World::with(setup).await
}

/// Posts until nobody else is at the run.
async fn post(world: &World, space: SpaceId, words: &str) -> Posted {
    const TRIES: usize = 1_000;
    let post = world.post_to(Some(space), words);
    for _ in 0..TRIES {
        match world.engine.post(post.clone()).await {
            Err(PostError::Busy(_)) => tokio::task::yield_now().await,
            other => return other.unwrap(),
        }
    }
    panic!("busy {TRIES} times")
}

#[tokio::test(start_paused = true)]
async fn messages_on_two_nodes_at_once_start_one_run() {
    // Never fails, but lets others come between any two calls.
    let store = FaultyStore::new(Arc::new(MemoryStore::new()), 1, 0);
    let first = World::with(Setup {
        store: Arc::new(store),
        ..Setup::default()
    })
    .await;
    let second = beside(&first, 2).await;
    let said = first.say("hello").await;
    first.finish(said.run_id.unwrap()).await;
    let space = said.space_id;
    let (one, other) = tokio::join!(post(&first, space, "call:ask"), post(&second, space, "call:ask"));
    assert_eq!(one.run_id, other.run_id);
    let filter = RunFilter {
        space: Some(space),
        limit: 9,
        ..RunFilter::default()
    };
    let runs = first.store.runs(first.project, filter).await.unwrap().runs;
    assert_eq!(
        runs.len(),
        2,
        "the one that said hello, and the one for both messages"
    );
    let log = first.log(one.run_id.unwrap()).await;
    let said = log.iter().filter(|(_, event)| matches!(event, Event::Said(_)));
    assert_eq!(said.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_left_at_a_stop_goes_on_at_the_next_start() {
    let world = World::new().await;
    let waiting = world.say("call:ask").await.run_id.unwrap();
    let call = calls_in(&world.until_status(waiting, Status::WaitingTool).await)[0];
    let slow = world.say("call:slow_safe").await.run_id.unwrap();
    world
        .until(slow, |event| matches!(event, Event::ToolInputAvailable(_)))
        .await;
    let (store, clock) = (world.store.clone(), world.clock.clone());
    world.stop().await;

    let world = World::with(Setup {
        store,
        clock,
        ..Setup::default()
    })
    .await;
    world.tools.gate.add_permits(1);
    assert_eq!(world.answer(slow).await, "got {}");
    world
        .engine
        .submit(call, Submission::Output(Json::from(json!({"late": 1}))), None)
        .await
        .unwrap();
    assert_eq!(world.answer(waiting).await, r#"got {"late":1}"#);
}

#[tokio::test(start_paused = true)]
async fn the_runs_of_a_dead_node_are_taken_over() {
    // Never driven by its own timekeeper: no heartbeat, as of a process that died.
    let dead = World::idle(Setup::default()).await;
    let unsafe_run = dead.say("call:slow").await.run_id.unwrap();
    let safe_run = dead.say("call:slow_safe").await.run_id.unwrap();
    dead.until(unsafe_run, |event| matches!(event, Event::ToolExecuting(_)))
        .await;
    dead.until(safe_run, |event| matches!(event, Event::ToolInputAvailable(_)))
        .await;
    let world = beside(&dead, 2).await;
    world.tools.gate.add_permits(10);
    let told = world.answer(unsafe_run).await;
    assert!(told.contains("outcome unknown"), "{told}");
    assert_eq!(world.answer(safe_run).await, "got {}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_lost_its_lease_cannot_write() {
    let zombie = World::idle(Setup::default()).await;
    let run = zombie.say("call:slow").await.run_id.unwrap();
    zombie
        .until(run, |event| matches!(event, Event::ToolExecuting(_)))
        .await;
    let before = zombie.store.run(run).await.unwrap().unwrap();
    let world = beside(&zombie, 2).await;
    let told = world.answer(run).await;
    assert!(told.contains("outcome unknown"), "{told}");
    let ended = world.log(run).await;

    // The zombie's tool ends now; what it brings is refused and changes nothing.
    zombie.tools.gate.add_permits(1);
    let refused = zombie
        .store
        .append(Append {
            space: before.space,
            run: RunWrite::Extend {
                id: run,
                version: world.store.run(run).await.unwrap().unwrap().version,
                epoch: before.epoch,
                status: Status::Running,
                wake_at: None,
                lease: LeaseWrite::Keep,
            },
            events: vec![StepStart { step: 9 }.into()],
            usage: Vec::new(),
            consumption: Vec::new(),
            above: None,
            wakes: Vec::new(),
            time: before.created,
            idempotency: Vec::new(),
        })
        .await;
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.log(run).await, ended);
    let finishes = ended
        .iter()
        .filter(|(_, event)| matches!(event, Event::RunFinish(_)))
        .count();
    assert_eq!(finishes, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_could_not_be_given_back_is_given_back_later() {
    /// Longer than the time limit of the call that the run waits for.
    const SOON: Duration = Duration::from_secs(120);
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()), 1, 0));
    let world = World::with(Setup {
        store: store.clone(),
        ..Setup::default()
    })
    .await;
    let run = world.say("call:ask").await.run_id.unwrap();
    world.until_status(run, Status::WaitingTool).await;
    world.rest().await;
    // A node that died with the lease of a run that only waits: this one claims it, and has nothing to write.
    let dead = NodeId::new(Uuid::from_u128(9));
    store.claim(run, dead, world.now()).await.unwrap().unwrap();
    store.refuse(Some("release"));
    let own = NodeId::new(Uuid::from_u128(1));
    let held = async {
        while store.run(run).await.unwrap().unwrap().node != Some(own) || world.engine.active_runs() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, held)
        .await
        .expect("it is claimed, and left");
    store.refuse(None);
    let end = tokio::time::timeout(SOON, world.finish(run)).await;
    assert_eq!(end.expect("its deadline is kept").status, Status::Completed);
}
