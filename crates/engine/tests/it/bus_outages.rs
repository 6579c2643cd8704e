//! Two nodes whose bus goes away: slower, never wrong.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use toolgate_engine::clock::Clock as _;
use toolgate_engine::feed::{Scope, Subscription};
use toolgate_engine::intake::Submission;
use toolgate_engine::model::Ask;
use toolgate_engine::store::Store;
use toolgate_kernel::event::{Event, Seq, Status};
use toolgate_kernel::id::{NodeId, SessionId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use toolgate_testkit::broken_bus::BrokenBus;
use toolgate_testkit::faulty_store::FaultyStore;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, text};
use uuid::Uuid;

use crate::world::{Setup, World, by_words, calls_in};

/// Longest time that a node may take to find out what it was not told.
const SOON: Duration = Duration::from_secs(20);

/// Two nodes and their bus.
async fn pair(
    script: impl Fn(&Ask) -> Vec<Say> + Clone + Send + Sync + 'static,
) -> (World, World, Arc<BrokenBus>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let bus = Arc::new(BrokenBus::default());
    let clock = Setup::default().clock;
    let connect = |node: u128| Setup {
        store: Arc::new(FaultyStore::connection(store.clone(), 0, 0)),
        clock: clock.clone(),
        bus: bus.clone(),
        node: NodeId::new(Uuid::from_u128(node)),
        model: ScriptedModel::new(script.clone()),
        ..Setup::default()
    };
    (World::with(connect(1)).await, World::with(connect(2)).await, bus)
}

/// A model that says each word when it gets a permit.
fn halting(words: &'static [&'static str]) -> (Arc<Semaphore>, impl Fn(&Ask) -> Vec<Say> + Clone) {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let script = move |_: &Ask| {
        let parts = words
            .iter()
            .flat_map(|word| [Say::Gate(held.clone()), text(*word)]);
        parts.collect()
    };
    (gate, script)
}

/// The durable events until the run's end.
async fn durable(mut following: Subscription) -> Vec<(Seq, Event)> {
    let mut seen = Vec::new();
    loop {
        let batch = tokio::time::timeout(SOON, following.next()).await;
        let batch = batch.expect("the store is looked at").expect("it is not cut");
        let events = batch.placed().filter(|(_, event)| event.is_durable());
        seen.extend(events.map(|(seq, event)| (seq, event.clone())));
        if let Some((_, Event::RunFinish(_))) = seen.last() {
            return seen;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_elsewhere_reads_the_store_while_the_bus_is_away() {
    let (gate, script) = halting(&["a", "b"]);
    let (a, b, bus) = pair(script).await;
    let posted = a.say("go").await;
    let run = posted.run_id.unwrap();
    let of_run = b.engine.subscribe(Scope::Run(run), Seq(0)).await.unwrap();
    let of_space = b
        .engine
        .subscribe(Scope::Space(posted.space_id), Seq(0))
        .await
        .unwrap();
    bus.leave();
    gate.add_permits(2);
    let expected = a.log(run).await.len();
    let (of_run, of_space) = (durable(of_run).await, durable(of_space).await);
    let log = a.log(run).await;
    assert!(log.len() > expected, "something happened while the bus was away");
    assert_eq!(of_run, log);
    assert_eq!(of_space, log);
}

#[tokio::test(start_paused = true)]
async fn words_of_the_step_under_way_are_asked_for_again_when_the_bus_is_back() {
    let (gate, script) = halting(&["a", "b", "c"]);
    let (a, b, bus) = pair(script).await;
    let run = a.say("go").await.run_id.unwrap();
    let mut following = b.engine.subscribe(Scope::Run(run), Seq(0)).await.unwrap();
    gate.add_permits(1);
    b.until(
        run,
        |event| matches!(event, Event::TextDelta(e) if e.delta == "a"),
    )
    .await;
    bus.leave();
    gate.add_permits(1);
    a.until(
        run,
        |event| matches!(event, Event::TextDelta(e) if e.delta == "b"),
    )
    .await;
    bus.return_to_all();
    let mut words = String::new();
    while words != "ab" {
        let batch = tokio::time::timeout(SOON, following.next()).await;
        for (_, event) in batch.expect("it is sent again").expect("it is not cut").placed() {
            if let Event::TextDelta(delta) = event {
                words += &delta.delta;
            }
        }
        assert!("ab".starts_with(&words), "{words}");
    }
    gate.add_permits(1);
    let rest = durable(following).await;
    assert!(
        rest.iter()
            .any(|(_, event)| matches!(event, Event::TextEnd(e) if e.text == "abc")),
        "{rest:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancel_given_elsewhere_stops_the_model_while_the_bus_is_away() {
    let (_gate, script) = halting(&["never"]);
    let (a, b, bus) = pair(script).await;
    let run = a.say("go").await.run_id.unwrap();
    a.until(run, |event| matches!(event, Event::StepStart(_))).await;
    bus.leave();
    assert_eq!(b.engine.cancel(run).await.unwrap(), Status::Cancelled);
    let stopped = async {
        while a.engine.active_runs() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(SOON, stopped)
        .await
        .expect("the driver looks");
}

#[tokio::test(start_paused = true)]
async fn a_result_given_elsewhere_reaches_a_run_at_work_while_the_bus_is_away() {
    let (a, b, bus) = pair(by_words).await;
    let run = a.say("call:ask call:hang").await.run_id.unwrap();
    let events = a.until(run, |event| matches!(event, Event::StepFinish(_))).await;
    let asked = calls_in(&events)[0];
    bus.leave();
    let output = Submission::Output(Json::from(serde_json::json!({"from": "elsewhere"})));
    b.engine.submit(asked, output, None).await.unwrap();
    let log = durable(a.engine.subscribe(Scope::Run(run), Seq(0)).await.unwrap()).await;
    let settled = log
        .iter()
        .filter(|(_, event)| event.settles() == Some(asked))
        .count();
    assert_eq!(settled, 1, "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn access_is_looked_at_again_after_the_bus_was_away() {
    let (_a, b, bus) = pair(by_words).await;
    let mut watch = b.engine.revocations().watch();
    assert!(!watch.concerns(|_| true));
    bus.leave();
    bus.return_to_all();
    let doubted = watch.next(|_| false);
    tokio::time::timeout(SOON, doubted)
        .await
        .expect("whoever watches looks in the store");
}

#[tokio::test(start_paused = true)]
async fn access_is_looked_at_again_while_another_node_is_silent() {
    let (a, b, bus) = pair(by_words).await;
    bus.cut_off(NodeId::new(Uuid::from_u128(1)));
    let mut watch = b.engine.revocations().watch();
    a.engine.session_ended(SessionId::new(Uuid::from_u128(7)));
    // Not once, but for as long as it lasts.
    for _ in 0..3 {
        tokio::time::timeout(SOON, watch.next(|_| false))
            .await
            .expect("whoever watches looks in the store");
    }
}

#[tokio::test(start_paused = true)]
async fn access_is_looked_at_again_when_notices_were_lost() {
    let (_a, b, bus) = pair(by_words).await;
    let mut watch = b.engine.revocations().watch();
    bus.lose();
    tokio::time::timeout(SOON, watch.next(|_| false))
        .await
        .expect("whoever watches looks in the store");
}

#[tokio::test(start_paused = true)]
async fn nodes_are_counted_in_the_store_while_the_bus_is_away() {
    let (a, b, bus) = pair(|_: &Ask| Vec::new()).await;
    assert_eq!(a.engine.nodes().await.unwrap(), 2);
    bus.leave();
    // Both say that they live soon after their start.
    while a.store.live_nodes(a.clock.now()).await.unwrap() < 2 {
        tokio::task::yield_now().await;
    }
    // A third that this bus has never heard of.
    let third = NodeId::new(Uuid::from_u128(3));
    let later = a.clock.now().after(Duration::from_secs(60));
    a.store.heartbeat(third, later).await.unwrap();
    assert_eq!(a.engine.nodes().await.unwrap(), 3);
    assert_eq!(b.engine.nodes().await.unwrap(), 3);
    a.store.heartbeat(third, Time(0)).await.unwrap();
    assert_eq!(a.engine.nodes().await.unwrap(), 2);
    bus.return_to_all();
    assert_eq!(a.engine.nodes().await.unwrap(), 2);
}
