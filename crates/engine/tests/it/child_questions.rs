//! What child runs ask people and clients: it is asked and answered in the run at the top, which waits meanwhile in
//! nobody's memory.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolgate_engine::feed::Scope;
use toolgate_engine::intake::{Decision, IntakeError, Submission};
use toolgate_engine::store::{Store, StoreError};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::{ChildCall, Event, Seq, Status};
use toolgate_kernel::id::{CallId, EntityId, RunId};
use toolgate_kernel::run::RunState;
use toolgate_kernel::tool::Decider;
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;

use crate::families::{children, runs};
use crate::world::{Setup, World};

/// Words by which `helper` is asked to call a tool, itself below so many helpers.
fn below(depth: u32, tool: &str) -> String {
    (0..depth).fold(format!("call:{tool}"), |words, _| ask_helper(&words))
}

/// The same for any words; none of them may stand as a space in what is asked.
fn ask_helper(words: &str) -> String {
    let input = json!({ "prompt": words }).to_string();
    format!("call:helper={}", input.replace(' ', "\\u0020"))
}

/// Any member of the space.
fn member() -> Decider {
    Decider::Member {
        entity: EntityId::from_bytes([9; 16]),
        roles: Vec::new(),
        token_roles: Arc::default(),
        groups: Arc::new([]),
    }
}

async fn state_of(world: &World, run: RunId, reader: &Decider) -> RunState {
    let uncounted = |_| Ok::<_, StoreError>(());
    world.engine.run_state(run, reader, uncounted).await.unwrap()
}

/// What the runs below have told in the log of a run.
async fn told(world: &World, run: RunId) -> Vec<ChildCall> {
    let log = world.log(run).await.into_iter();
    log.filter_map(|(_, event)| match event {
        Event::ChildCall(told) => Some(told),
        _ => None,
    })
    .collect()
}

fn kinds(told: &[ChildCall]) -> Vec<&str> {
    told.iter().map(|told| told.event.kind()).collect()
}

/// The call that a run below asks about, once the run at the top waits for it.
async fn question(world: &World, root: RunId, status: Status) -> CallId {
    world.until_status(root, status).await;
    let told = told(world, root).await;
    assert!(
        told.iter().all(|told| told.agent.as_str() == "helper"),
        "{told:?}"
    );
    told.last().and_then(|told| told.event.tool_call()).unwrap()
}

async fn submit(world: &World, call: CallId) {
    let output = Submission::Output(json!({"answer": 42}).into());
    world.engine.submit(call, output, None).await.unwrap();
}

async fn approve(world: &World, call: CallId) {
    let yes = Decision::Approve(None);
    world
        .engine
        .decide(call.approval(), yes, Decider::Backend)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_child_asks_is_asked_and_answered_in_the_run_at_the_top() {
    for (depth, always_evict) in [(1, false), (1, true), (2, false), (2, true)] {
        for tool in ["ask", "guarded", "guarded_ask"] {
            let world = World::with(Setup {
                always_evict,
                ..Setup::default()
            })
            .await;
            let posted = world.say(&below(depth, tool)).await;
            let root = posted.run_id.unwrap();
            let waits = match tool {
                "ask" => Status::WaitingTool,
                _ => Status::WaitingApproval,
            };
            let call = question(&world, root, waits).await;
            assert_ne!(call.run, root);
            world.rest().await;
            let row = world.store.run(root).await.unwrap().unwrap();
            assert_eq!((row.status, row.node, row.wakes), (waits, None, 0));
            assert_eq!(row.wake_at, None, "waiting for people uses up no timeout");
            let state = state_of(&world, root, &Decider::Backend).await;
            let asked: Vec<_> = state
                .pending_below()
                .map(|(agent, call)| (agent.as_str(), call.tool.call))
                .collect();
            assert_eq!(asked, [("helper", call)]);
            if tool != "ask" {
                approve(&world, call).await;
            }
            if tool == "guarded_ask" {
                world.until(root, |event| matches!(event, Event::ChildCall(e) if e.event.kind() == "tool-approval-response")).await;
                world.until_status(root, Status::WaitingTool).await;
            }
            if tool != "guarded" {
                submit(&world, call).await;
            }
            assert_eq!(world.finish(root).await.status, Status::Completed);
            let state = state_of(&world, root, &Decider::Backend).await;
            assert_eq!(state.pending_below().count(), 0);
            let answer = world.answer(root).await;
            assert!(
                answer.contains(if tool == "guarded" { "{}" } else { "42" }),
                "{answer}"
            );
            let told = told(&world, root).await;
            let expected: &[&str] = match tool {
                "ask" => &["tool-input-available", "tool-output-available"],
                _ => &[
                    "tool-input-available",
                    "tool-approval-request",
                    "tool-approval-response",
                    "tool-output-available",
                ],
            };
            assert_eq!(kinds(&told), expected, "and nothing else of the child");
            world.rest().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_only_when_everything_below_it_does() {
    let world = World::new().await;
    let words = format!("{} {}", below(1, "ask"), below(1, "slow"));
    let root = world.say(&words).await.run_id.unwrap();
    let runs = children(&world, root, 2).await;
    world
        .until(root, |event| matches!(event, Event::ChildCall(_)))
        .await;
    let asks = |event: &Event| matches!(event, Event::ToolExecuting(e) if e.child_status.is_some());
    let seen = world.until(root, asks).await;
    assert!(
        seen.iter()
            .all(|event| !matches!(event, Event::RunStatus(e) if e.status.asks())),
        "{seen:?}"
    );
    world.tools.gate.add_permits(1);
    let call = question(&world, root, Status::WaitingTool).await;
    assert!(runs.contains(&call.run));
    submit(&world, call).await;
    assert_eq!(world.finish(root).await.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn every_answer_is_followed_by_a_status_of_the_run_at_the_top() {
    let world = World::new().await;
    let root = world.say(&ask_helper("call:ask call:ask")).await.run_id.unwrap();
    world.until_status(root, Status::WaitingTool).await;
    let asked: Vec<CallId> = told(&world, root)
        .await
        .iter()
        .filter_map(|told| told.event.tool_call())
        .collect();
    assert_eq!(asked.len(), 2);
    for (call, status) in asked.into_iter().zip([Status::WaitingTool, Status::Running]) {
        world.rest().await;
        let before = world.store.run(root).await.unwrap().unwrap().version;
        submit(&world, call).await;
        let mut following = world.engine.subscribe(Scope::Run(root), before).await.unwrap();
        let moved = loop {
            let batch = following.next().await.unwrap();
            let mut statuses = batch.placed().filter_map(|(_, event)| match event {
                Event::RunStatus(e) => Some(e.status),
                _ => None,
            });
            if let Some(status) = statuses.next() {
                break status;
            }
        };
        assert_eq!(moved, status);
    }
    assert_eq!(world.finish(root).await.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn with_the_run_at_the_top_ends_what_its_children_ask() {
    for supersede in [false, true] {
        let world = World::new().await;
        let posted = world.say(&below(2, "guarded")).await;
        let root = posted.run_id.unwrap();
        let call = question(&world, root, Status::WaitingApproval).await;
        match supersede {
            true => {
                world.say_in(posted.space_id, "something else").await;
            }
            false => drop(world.engine.cancel(root).await.unwrap()),
        }
        let end = world.finish(root).await;
        assert_eq!(end.status == Status::Completed, supersede);
        // The question ends in the stream of the space, also when the run at the top is over.
        let mut following = world
            .engine
            .subscribe(Scope::Space(posted.space_id), Seq(0))
            .await
            .unwrap();
        let settles = |event: &Event| matches!(event, Event::ChildCall(e) if e.event.settles() == Some(call));
        while !following
            .next()
            .await
            .unwrap()
            .placed()
            .any(|(_, event)| settles(event))
        {}
        let yes = Decision::Approve(None);
        let late = world.engine.decide(call.approval(), yes, Decider::Backend).await;
        assert!(
            matches!(
                late,
                Err(IntakeError::Gone {
                    code: ErrorCode::Cancelled,
                    ..
                })
            ),
            "{late:?}"
        );
        let state = state_of(&world, root, &member()).await;
        assert_eq!(state.pending_below().count(), 0);
        // Whoever follows the run alone is told that it has ended.
        assert_eq!(world.finish(root).await, end);
    }
}

#[tokio::test(start_paused = true)]
async fn people_learn_of_a_child_what_it_asks_and_no_more() {
    let world = World::new().await;
    let words = r#"call:echo={"secret":1} call:guarded={"to":"ada"} call:ask"#;
    let root = world.say(&ask_helper(words)).await.run_id.unwrap();
    world.until_status(root, Status::WaitingApproval).await;
    let told = told(&world, root).await;
    assert_eq!(
        kinds(&told),
        [
            "tool-input-available",
            "tool-approval-request",
            "tool-input-available"
        ]
    );
    assert!(!format!("{told:?}").contains("secret"));
    let child = told[0].child_run_id;
    // A call that nobody is asked about does not exist for whoever guesses its id.
    let other = CallId {
        run: child,
        number: 0,
    };
    let refused = world
        .engine
        .submit(other, Submission::Output(json!({}).into()), None)
        .await;
    assert!(
        matches!(refused, Err(IntakeError::Unknown("call"))),
        "{refused:?}"
    );
    let told = world.engine.progress(other, json!(1).into(), None).await;
    assert!(matches!(told, Err(IntakeError::Unknown("call"))), "{told:?}");
    let mut state = RunState::default();
    for (seq, event) in world.log(root).await {
        if let Some(seen) = toolgate_kernel::view::view(&event, &member()) {
            state.apply(&seen, seq, world.now());
        }
    }
    let seen: Vec<_> = state
        .pending_below()
        .map(|(_, call)| call.shown_input().map(|input| input.as_str().to_owned()))
        .collect();
    assert_eq!(seen, [Some(r#"{"to":"ada"}"#.to_owned()), Some("{}".to_owned())]);
}

/// Answers whatever is asked in a run, until it has ended. What was answered before is answered again: nobody minds.
async fn answer_until_end(world: &World, root: RunId) -> Status {
    'again: loop {
        let Ok(mut following) = world.engine.subscribe(Scope::Run(root), Seq(0)).await else {
            continue;
        };
        loop {
            let Ok(batch) = following.next().await else {
                continue 'again;
            };
            for (_, event) in batch.placed() {
                match event {
                    Event::RunFinish(end) => return end.status,
                    Event::ChildCall(e) => answer(world, &e.event).await,
                    _ => {}
                }
            }
        }
    }
}

async fn answer(world: &World, event: &Event) {
    let Some(call) = event.tool_call() else { return };
    // A store that is killed refuses; whatever else may be wrong shows in what becomes of the run.
    match event {
        Event::ToolApprovalRequest(_) => {
            let yes = Decision::Approve(None);
            let _ = world.engine.decide(call.approval(), yes, Decider::Backend).await;
        }
        Event::ToolInputAvailable(e) if e.deadline.is_some() => {
            let output = Submission::Output(json!({"answer": 42}).into());
            let _ = world.engine.submit(call, output, None).await;
        }
        _ => {}
    }
}

/// Kills the store after so many writes of a run tree that asks, and goes on with what is left; whether it was killed.
async fn killed_after(writes: usize, always_evict: bool) -> bool {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let store = Arc::new(FaultyStore::killed_after(memory.clone(), writes));
    let setup = Setup {
        store: store.clone(),
        always_evict,
        ..Setup::default()
    };
    let clock = setup.clock.clone();
    let first = World::with(setup).await;
    let words = format!(
        "{} {}",
        ask_helper("call:guarded"),
        ask_helper(&ask_helper("call:ask"))
    );
    let root = first.say(&words).await.run_id.unwrap();
    let killed = tokio::select! {
        biased;
        () = store.killed() => true,
        end = answer_until_end(&first, root) => {
            assert_eq!(end, Status::Completed);
            false
        }
    };
    first.stop().await;
    let world = World::with(Setup {
        store: memory,
        clock,
        always_evict,
        ..Setup::default()
    })
    .await;
    let before = Instant::now();
    assert_eq!(
        answer_until_end(&world, root).await,
        Status::Completed,
        "after {writes} writes"
    );
    assert!(before.elapsed() < Duration::from_secs(1), "after {writes} writes");
    let answer = world.answer(root).await;
    assert!(
        answer.contains("{}") && answer.contains("42"),
        "after {writes} writes: {answer}"
    );
    let told = told(&world, root).await;
    assert_eq!(
        told.len(),
        6,
        "each is told once, after {writes} writes: {told:?}"
    );
    world.rest().await;
    for run in runs(&world).await {
        assert_eq!(
            (run.status, run.node),
            (Status::Completed, None),
            "after {writes} writes"
        );
    }
    killed
}

#[tokio::test(start_paused = true)]
async fn a_kill_between_any_two_writes_loses_no_question_and_no_answer() {
    for always_evict in [false, true] {
        let mut writes = 1;
        while killed_after(writes, always_evict).await {
            writes += 1;
        }
        assert!(writes > 15, "{writes} writes are too few");
    }
}
