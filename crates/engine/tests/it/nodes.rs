//! Two nodes on one store and one bus: any of them takes what comes, one of them drives.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolgate_engine::feed::{Scope, Subscription};
use toolgate_engine::intake::{Answer, Decision, IntakeError, Receipt, Submission};
use toolgate_engine::model::Ask;
use toolgate_engine::revocation::Revoked;
use toolgate_engine::store::Store;
use toolgate_fair::Shares;
use toolgate_kernel::event::{Event, Seq, Status};
use toolgate_kernel::id::{ApprovalId, CallId, EntityId, NodeId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::Decider;
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, call, last_results, text};
use uuid::Uuid;

use crate::world::{Setup, World, by_words, calls_in};

/// Two nodes. Each has a connection of its own to the store: it hears of its own commits alone.
async fn pair(script: impl Fn(&Ask) -> Vec<Say> + Clone + Send + Sync + 'static) -> (World, World) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let first = Setup::default();
    let connect = |node: u128, (clock, bus): (_, _)| Setup {
        store: Arc::new(FaultyStore::connection(store.clone(), 0, 0)),
        clock,
        bus,
        node: NodeId::new(Uuid::from_u128(node)),
        model: ScriptedModel::new(script.clone()),
        ..Setup::default()
    };
    let shared = || (first.clock.clone(), first.bus.clone());
    let (a, b) = (connect(1, shared()), connect(2, shared()));
    (World::with(a).await, World::with(b).await)
}

/// A run on the first node with a call at work there, and its other calls.
async fn at_work(a: &World, words: &str) -> (RunId, SpaceId, Vec<CallId>) {
    let posted = a.say(words).await;
    let run = posted.run_id.unwrap();
    let events = a.until(run, |event| matches!(event, Event::StepFinish(_))).await;
    (run, posted.space_id, calls_in(&events))
}

async fn driver(world: &World, run: RunId) -> Option<NodeId> {
    world.store.run(run).await.unwrap().unwrap().node
}

async fn submit(world: &World, call: CallId, output: Value) -> Result<Receipt, IntakeError> {
    let output = Submission::Output(Json::from(output));
    world.engine.submit(call, output, None).await
}

/// Everything a subscription gives until the run's end, each place after the one before.
async fn all_of(mut following: Subscription) -> Vec<(Seq, Event)> {
    let mut seen: Vec<(Seq, Event)> = Vec::new();
    loop {
        let after = following.cursor();
        let Ok(batch) = following.next().await else {
            return seen;
        };
        for (seq, event) in batch.placed().filter(|(seq, _)| *seq > after) {
            assert!(
                seen.last().is_none_or(|(last, _)| *last < seq),
                "places only grow"
            );
            seen.push((seq, event.clone()));
            if matches!(event, Event::RunFinish(_)) {
                return seen;
            }
        }
    }
}

/// A model that stops before each of these words until it gets a permit.
fn haltingly(words: &'static [&'static str]) -> (Arc<Semaphore>, impl Fn(&Ask) -> Vec<Say> + Clone) {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let script = move |_: &Ask| {
        let parts = words
            .iter()
            .flat_map(|word| [text(*word), Say::Gate(held.clone())]);
        parts.collect()
    };
    (gate, script)
}

fn delta(wanted: &'static str) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::TextDelta(e) if e.delta == wanted)
}

#[tokio::test(start_paused = true)]
async fn a_follower_elsewhere_misses_nothing_and_sees_nothing_twice() {
    let (gate, script) = haltingly(&["a", "b", "c"]);
    let (a, b) = pair(script).await;
    let posted = a.say("go").await;
    let run = posted.run_id.unwrap();
    let here = a.engine.subscribe(Scope::Run(run), Seq(0)).await.unwrap();
    let early = b
        .engine
        .subscribe(Scope::Space(posted.space_id), Seq(0))
        .await
        .unwrap();
    a.until(run, delta("a")).await;
    gate.add_permits(1);
    a.until(run, delta("b")).await;
    drop(early);
    // Nobody has followed the space over there for a moment: what was streamed is asked for again.
    let whole = b.engine.subscribe(Scope::Run(run), Seq(0)).await.unwrap();
    let seen = b.until(run, delta("b")).await;
    assert!(seen.iter().any(delta("a")), "{seen:?}");
    let second = b
        .engine
        .subscribe(Scope::Space(posted.space_id), Seq(0))
        .await
        .unwrap();
    gate.add_permits(2);
    let expected = all_of(here).await;
    let transient = expected.iter().filter(|(_, event)| !event.is_durable()).count();
    assert_eq!(
        transient, 4,
        "the start of the text and three deltas: {expected:?}"
    );
    assert_eq!(all_of(whole).await, expected);
    assert_eq!(all_of(second).await, expected);
    assert!(b.model.asked().is_empty(), "one node drives");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_changes_nodes_goes_on_where_it_was() {
    let (gate, script) = haltingly(&["a", "b", "c"]);
    let (a, b) = pair(script).await;
    let run = a.say("go").await.run_id.unwrap();
    let mut first = a.engine.subscribe(Scope::Run(run), Seq(0)).await.unwrap();
    let mut seen = Vec::new();
    while !seen.iter().any(|(_, event)| delta("a")(event)) {
        let batch = first.next().await.unwrap();
        seen.extend(batch.placed().map(|(seq, event)| (seq, event.clone())));
    }
    gate.add_permits(1);
    a.until(run, delta("b")).await;
    let cursor = first.cursor();
    let rest = b.engine.subscribe(Scope::Run(run), cursor).await.unwrap();
    gate.add_permits(2);
    seen.extend(all_of(rest).await);
    let whole = seen.iter().filter_map(|(_, event)| match event {
        Event::TextDelta(e) => Some(e.delta.as_str()),
        _ => None,
    });
    assert_eq!(whole.collect::<String>(), "abc");
    let durable: Vec<_> = seen.into_iter().filter(|(_, event)| event.is_durable()).collect();
    assert_eq!(durable, a.log(run).await);
}

#[tokio::test(start_paused = true)]
async fn two_runs_of_one_space_streamed_by_two_nodes_never_share_a_number() {
    let (gate, script) = haltingly(&["a", "b", "c", "d"]);
    let (a, b) = pair(script).await;
    let first = a.say("go").await;
    let space = first.space_id;
    let mut post = b.post_to(Some(space), "you too");
    post.answer = Answer::Agent("helper".parse().unwrap());
    let runs = [
        first.run_id.unwrap(),
        b.engine.post(post).await.unwrap().run_id.unwrap(),
    ];
    assert_ne!(driver(&a, runs[0]).await, driver(&a, runs[1]).await);
    let mut followers = Vec::new();
    for world in [&a, &b] {
        followers.push(world.engine.subscribe(Scope::Space(space), Seq(0)).await.unwrap());
    }
    let mut seen: Vec<Vec<(Seq, RunId, String)>> = vec![Vec::new(), Vec::new()];
    for (follower, seen) in followers.iter_mut().zip(&mut seen) {
        let (mut last, mut ended) = (Seq(0), 0);
        while ended < 2 {
            gate.add_permits(1);
            let batch = follower.next().await.unwrap();
            for (seq, event) in batch.placed() {
                assert!(seq > last, "places only grow");
                last = seq;
                match event {
                    Event::TextDelta(e) => seen.push((seq, batch.run().unwrap(), e.delta.clone())),
                    Event::RunFinish(_) => ended += 1,
                    _ => {}
                }
            }
        }
        for run in runs {
            let words = seen
                .iter()
                .filter(|(_, of, _)| *of == run)
                .map(|(_, _, word)| word.as_str());
            assert_eq!(words.collect::<String>(), "abcd");
        }
    }
    assert_eq!(seen[0], seen[1], "both nodes tell the same");
}

#[tokio::test(start_paused = true)]
async fn a_result_given_elsewhere_reaches_the_run() {
    let (a, b) = pair(by_words).await;
    let (run, _, calls) = at_work(&a, "call:ask call:slow").await;
    let before = driver(&a, run).await;
    assert!(before.is_some());
    let receipt = submit(&b, calls[0], json!({"from": "b"})).await.unwrap();
    assert_eq!(submit(&a, calls[0], json!({"from": "b"})).await.unwrap(), receipt);
    let other = submit(&b, calls[0], json!({"from": "c"})).await;
    assert!(matches!(other, Err(IntakeError::Conflict { winner }) if *winner == receipt));
    assert_eq!(driver(&a, run).await, before, "the driver keeps its lease");
    a.tools.gate.add_permits(1);
    assert_eq!(b.answer(run).await, r#"got {"from":"b"} and {}"#);
    assert!(
        b.tools.calls().is_empty() && b.model.asked().is_empty(),
        "one node drives"
    );
}

#[tokio::test(start_paused = true)]
async fn a_result_given_elsewhere_before_its_call_is_whole_is_kept() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let (a, b) = pair(move |ask: &Ask| match last_results(ask) {
        Some(results) => vec![text(format!("got {}", results[0].output.as_str()))],
        None => vec![call("ask", "{}"), Say::Gate(held.clone())],
    })
    .await;
    let run = a.say("go").await.run_id.unwrap();
    let events = b
        .until(run, |event| matches!(event, Event::ToolInputStart(_)))
        .await;
    let Some(Event::ToolInputStart(announced)) = events.last() else {
        unreachable!()
    };
    let id = announced.tool_call_id;
    let engine = b.engine.clone();
    let output = Submission::Output(Json::from(json!({"early": true})));
    let early = tokio::spawn(async move { engine.submit(id, output, None).await });
    // Time goes on only when nobody has anything to do: the guest waits.
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert!(!early.is_finished());
    gate.add_permits(1);
    assert_eq!(early.await.unwrap().unwrap().tool_call_id, id);
    assert_eq!(a.answer(run).await, r#"got {"early":true}"#);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_elsewhere_stops_the_model_and_the_tools() {
    let (gate, script) = haltingly(&["a", "b"]);
    let (a, b) = pair(script).await;
    let run = a.say("go").await.run_id.unwrap();
    a.until(run, delta("a")).await;
    assert_eq!(b.engine.cancel(run).await.unwrap(), Status::Cancelled);
    assert_eq!(a.finish(run).await.status, Status::Cancelled);
    while driver(&a, run).await.is_some() {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(gate.available_permits(), 1, "nobody waits for the model any more");

    let (a, b) = pair(by_words).await;
    let (run, _, _) = at_work(&a, "call:slow").await;
    a.until(run, |event| matches!(event, Event::ToolProgress(_)))
        .await;
    assert_eq!(b.engine.cancel(run).await.unwrap(), Status::Cancelled);
    a.tools.cancels()[0].cancelled().await;
    assert_eq!(a.log(run).await.len(), b.log(run).await.len());
}

#[tokio::test(start_paused = true)]
async fn a_message_said_elsewhere_joins_the_run() {
    let (a, b) = pair(by_words).await;
    let (run, space, calls) = at_work(&a, "call:ask call:slow").await;
    assert_eq!(b.say_in(space, "never mind").await.run_id, Some(run));
    let late = submit(&b, calls[0], json!({})).await;
    assert!(matches!(late, Err(IntakeError::Gone { .. })), "{late:?}");
    a.tools.gate.add_permits(1);
    assert_eq!(a.answer(run).await, "you said never mind");
    assert!(b.model.asked().is_empty(), "one node drives");
}

#[tokio::test(start_paused = true)]
async fn a_decision_made_elsewhere_starts_the_call_where_the_run_is_driven() {
    let (a, b) = pair(by_words).await;
    let (run, _, calls) = at_work(&a, r#"call:guarded={"to":"x"} call:slow"#).await;
    let approval = ApprovalId {
        run,
        number: calls[0].number,
    };
    let approve = || Decision::Approve(Some(Json::from(json!({"to": "y"}))));
    let decided = b
        .engine
        .decide(approval, approve(), Decider::Backend)
        .await
        .unwrap();
    assert_eq!(
        a.engine
            .decide(approval, approve(), Decider::Backend)
            .await
            .unwrap(),
        decided
    );
    let outputs = |event: &Event| matches!(event, Event::ToolOutputAvailable(_));
    b.until(run, outputs).await;
    a.tools.gate.add_permits(1);
    assert_eq!(b.answer(run).await, r#"got {"to":"y"} and {}"#);
}

#[tokio::test(start_paused = true)]
async fn a_call_claimed_on_one_node_is_held_on_the_other() {
    let (a, b) = pair(by_words).await;
    let (_, _, calls) = at_work(&a, "call:ask call:slow").await;
    let lease = std::time::Duration::from_secs(10);
    let claim = async |world: &World, holder: &str| {
        world
            .engine
            .claim_call(calls[0], holder.into(), None, lease)
            .await
    };
    assert_eq!(claim(&b, "tab b").await.unwrap().holder, "tab b");
    let held = claim(&a, "tab a").await;
    assert!(matches!(held, Err(IntakeError::Held { holder, .. }) if holder == "tab b"));
    b.engine
        .release_call(calls[0], "tab b".into(), None)
        .await
        .unwrap();
    assert_eq!(claim(&a, "tab a").await.unwrap().holder, "tab a");
    assert!(matches!(claim(&b, "tab b").await, Err(IntakeError::Held { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_room_can_be_cancelled() {
    let world = World::with(Setup {
        runs_active: Shares::same(1),
        ..Setup::default()
    })
    .await;
    let (_, _, _) = at_work(&world, "call:slow").await;
    let queued = world.say("later").await.run_id.unwrap();
    assert_eq!(world.engine.cancel(queued).await.unwrap(), Status::Cancelled);
    assert_eq!(world.finish(queued).await.status, Status::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_waiting_call_does_not_read_its_log() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()), 0, 0));
    let world = World::with(Setup {
        store: store.clone(),
        ..Setup::default()
    })
    .await;
    let posted = world.say("call:ask").await;
    let run = posted.run_id.unwrap();
    let id = calls_in(&world.until_status(run, Status::WaitingTool).await)[0];
    let scope = Scope::Space(posted.space_id);
    let mut following = world.engine.subscribe(scope, Seq(u64::MAX / 2)).await.unwrap();
    drop(following);
    let cursor = world.store.run(run).await.unwrap().unwrap().version;
    following = world.engine.subscribe(scope, cursor).await.unwrap();
    let tell = async |percent: u32| {
        world
            .engine
            .progress(id, Json::from(json!({ "percent": percent })), None)
            .await
    };
    tell(0).await.unwrap();
    store.refuse(Some("run_log"));
    for percent in 1..20 {
        tell(percent).await.unwrap();
    }
    store.refuse(None);
    for percent in 0..20 {
        let batch = following.next().await.unwrap();
        let told: Vec<_> = batch.placed().map(|(_, event)| event.clone()).collect();
        let [Event::ToolProgress(progress)] = &told[..] else {
            panic!("{told:?}");
        };
        assert_eq!(progress.progress, Some(json!({ "percent": percent }).into()));
    }
    submit(&world, id, json!({})).await.unwrap();
    assert!(matches!(tell(99).await, Err(IntakeError::Gone { .. })));
    let unknown = CallId { run, number: 7 };
    let told = world.engine.progress(unknown, Json::null(), None).await;
    assert!(matches!(told, Err(IntakeError::Unknown("call"))));
}

#[tokio::test]
async fn access_that_ends_on_one_node_ends_on_the_others() {
    let (a, b) = pair(by_words).await;
    let mut watch = a.engine.revocations().watch();
    let space = a.say("hello").await.space_id;
    let member = EntityId::new(Uuid::from_u128(5));
    b.engine.remove_member(space, member).await.unwrap();
    assert!(watch.concerns(|revoked| *revoked == Revoked::Member { space, member }));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_hands_its_runs_over() {
    let (gate, script) = haltingly(&["a", "b"]);
    let (a, b) = pair(script).await;
    let run = a.say("go").await.run_id.unwrap();
    a.until(run, delta("a")).await;
    assert_eq!(driver(&b, run).await, Some(NodeId::new(Uuid::from_u128(1))));
    a.stop().await;
    let left = tokio::time::Instant::now();
    // The other node asks the model again: it has claimed the run.
    while b.model.asked().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert!(left.elapsed().as_millis() < 100, "{:?}", left.elapsed());
    gate.add_permits(10);
    assert_eq!(b.finish(run).await.status, Status::Completed);
}
