//! Calls that others carry on: whoever waits for them is in nobody's memory, and no crash loses their end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolgate_engine::feed::Scope;
use toolgate_engine::model::Ask;
use toolgate_engine::store::{Append, LeaseWrite, RunFilter, RunRecord, RunWrite, Store, Wake};
use toolgate_kernel::event::{Event, Notification, Status, ToolExecuting};
use toolgate_kernel::id::{CallId, RunId};
use toolgate_kernel::json::Json;
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;
use toolgate_testkit::scripted_model::{call, last_results, last_words};

use crate::families::{SPAWN_WAITING, ask_boss, children, outcomes, runs, world, world_of};
use crate::world::{Setup, World, by_words, calls_in};

/// Less than it takes until somebody looks for runs that nobody drives.
const AT_ONCE: Duration = Duration::from_secs(1);

async fn row(world: &World, run: RunId) -> RunRecord {
    world.store.run(run).await.unwrap().unwrap()
}

/// Rings the bell that a run waits for.
async fn ring(world: &World, run: RunId) {
    let waiting = calls_in(&world.until_status(run, Status::WaitingTime).await)[0];
    let rung = world.engine.signal_call(waiting, Json::from(json!("go")));
    rung.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_child_waits_is_in_nobodys_memory_and_goes_on_at_once() {
    for always_evict in [false, true] {
        let setup = Setup {
            always_evict,
            ..Setup::default()
        };
        let world = world_of(setup, json!({})).await;
        let nested = json!({"agent": "boss", "prompt": SPAWN_WAITING.trim()});
        let root = ask_boss(&world, &format!("call:spawn_agent={nested}")).await;
        let child = children(&world, root, 1).await[0];
        let grandchild = children(&world, child, 1).await[0];
        world.until_status(grandchild, Status::WaitingTime).await;
        world.rest().await;
        for run in [root, child] {
            let row = row(&world, run).await;
            assert_eq!((row.node, row.wakes), (None, 0));
            assert_eq!(row.status, Status::Running, "as users see it");
            assert!(row.wake_at.is_some(), "its time is limited");
        }
        let before = Instant::now();
        ring(&world, grandchild).await;
        world.finish(root).await;
        assert!(before.elapsed() < AT_ONCE);
        let answer = r#""got \"got {\\\"signal\\\":\\\"go\\\"}\"""#;
        assert_eq!(outcomes(&world, root).await, [answer]);
        world.rest().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_runs_whose_children_wait_cost_no_task() {
    const RUNS: usize = 1_000;
    let world = world(by_words, json!({})).await;
    let mut waiting = Vec::new();
    for _ in 0..RUNS {
        let run = ask_boss(&world, SPAWN_WAITING).await;
        waiting.push(children(&world, run, 1).await[0]);
    }
    for child in waiting {
        world.until_status(child, Status::WaitingTime).await;
    }
    world.rest().await;
    let all = RunFilter {
        limit: usize::MAX,
        ..RunFilter::default()
    };
    let all = world.store.runs(world.project, all).await.unwrap().runs;
    assert_eq!(all.len(), 2 * RUNS);
    assert!(all.iter().all(|run| run.node.is_none()));
    assert_eq!(world.store.claimable(world.now(), usize::MAX).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn children_take_no_slots_from_the_tools_that_the_gateway_runs() {
    // More than `parallel_calls`.
    const CHILDREN: usize = 12;
    let world = world(by_words, json!({ "fanout": CHILDREN })).await;
    let words = format!("{}call:slow={{}}", SPAWN_WAITING.repeat(CHILDREN));
    let run = ask_boss(&world, &words).await;
    let children = children(&world, run, CHILDREN).await;
    for child in &children {
        world.until_status(*child, Status::WaitingTime).await;
    }
    world
        .until(run, |event| matches!(event, Event::ToolProgress(_)))
        .await;
    world.tools.gate.add_permits(1);
    for child in children {
        ring(&world, child).await;
    }
    assert_eq!(world.finish(run).await.status, Status::Completed);
    let told = outcomes(&world, run).await;
    assert_eq!(told.len(), CHILDREN + 1);
    assert!(told.iter().all(|told| !told.contains("Some(")), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_woken_for_nothing_goes_back_to_waiting() {
    let world = world(by_words, json!({})).await;
    let run = ask_boss(&world, SPAWN_WAITING).await;
    let child = children(&world, run, 1).await[0];
    world.until_status(child, Status::WaitingTime).await;
    world.rest().await;
    let before = row(&world, run).await;
    let notification = Notification {
        title: "for nothing".into(),
        body: None,
        message_id: None,
    };
    let append = Append {
        space: before.space,
        run: RunWrite::None,
        events: vec![notification.into()],
        usage: Vec::new(),
        consumption: Vec::new(),
        above: None,
        wakes: vec![Wake::up(run), Wake::up(run)],
        time: world.now(),
        idempotency: Vec::new(),
    };
    world.store.append(append).await.unwrap();
    while row(&world, run).await.wakes > 0 {
        tokio::time::advance(AT_ONCE).await;
        tokio::task::yield_now().await;
    }
    world.rest().await;
    let after = row(&world, run).await;
    assert_eq!((after.node, after.wake_at), (None, before.wake_at));
    assert_eq!(after.version, before.version, "nothing happened to it");
    ring(&world, child).await;
    assert_eq!(world.finish(run).await.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_signal_reaches_the_space_of_a_parent_that_is_in_nobodys_memory() {
    // Waits, then tells its parent of it, then answers.
    let script = |ask: &Ask| match (last_words(ask).as_str(), last_results(ask)) {
        ("tell", None) => vec![call("wait", "{}")],
        ("tell", Some([rung])) if rung.output.as_str().contains("signal") => {
            vec![call("signal_parent", r#"{"message":"half"}"#)]
        }
        _ => by_words(ask),
    };
    let world = world(script, json!({})).await;
    let input = json!({ "agent": "boss", "prompt": "tell" });
    let root = ask_boss(&world, &format!("call:spawn_agent={input}")).await;
    let child = children(&world, root, 1).await[0];
    world.until_status(child, Status::WaitingTime).await;
    world.rest().await;
    let parent = row(&world, root).await;
    let mut following = world
        .engine
        .subscribe(Scope::Space(parent.space), parent.version)
        .await
        .unwrap();
    ring(&world, child).await;
    let shown = loop {
        let batch = following.next().await.unwrap();
        let progress = batch.placed().find_map(|(_, event)| match event {
            Event::ToolProgress(e) => Some(e.clone()),
            _ => None,
        });
        if let Some(progress) = progress {
            assert_eq!(batch.run(), Some(root));
            break progress;
        }
    };
    let call = CallId { run: root, number: 0 };
    assert_eq!(
        (shown.tool_call_id, shown.tool_name.as_ref()),
        (call, "spawn_agent")
    );
    assert_eq!(shown.progress.unwrap().to_value(), json!({"message": "half"}));
    world.finish(root).await;
    assert!(outcomes(&world, root).await[0].ends_with(r#""signals":[{"message":"half"}]}"#));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_no_source_here_knows_is_told_to_the_model() {
    let world = world(by_words, json!({})).await;
    let run = ask_boss(
        &world,
        "call:spawn_agent={\"agent\":\"boss\",\"prompt\":\"call:wait\"} call:pause",
    )
    .await;
    let child = children(&world, run, 1).await[0];
    world.until_status(child, Status::WaitingTime).await;
    world.rest().await;
    let record = row(&world, run).await;
    let log = world.log(run).await;
    let tool = log.iter().find_map(|(_, event)| match event {
        Event::ToolInputAvailable(e) => Some(e.tool()),
        _ => None,
    });
    let task =
        serde_json::from_value(json!({"source": "gone", "task": "1", "checkAt": world.now()})).unwrap();
    let executing = ToolExecuting::of(&tool.unwrap(), None, None, None, Some(task), None);
    let append = Append {
        space: record.space,
        run: RunWrite::Extend {
            id: run,
            version: record.version,
            epoch: record.epoch,
            status: Status::Running,
            wake_at: Some(world.now()),
            lease: LeaseWrite::Keep,
        },
        events: vec![executing.into()],
        usage: Vec::new(),
        consumption: Vec::new(),
        above: None,
        wakes: Vec::new(),
        time: world.now(),
        idempotency: Vec::new(),
    };
    world.store.append(append).await.unwrap();
    let answer = world.answer(run).await;
    assert!(answer.contains("Error: ") && answer.contains("gone"), "{answer}");
}

/// Two children at once, one of which has a child of its own, and a tool of the gateway's.
fn run_tree() -> String {
    let nested = json!({"agent": "boss", "prompt": r#"call:summarize={"text":"deep"}"#});
    format!(r#"call:summarize={{"text":"flat"}} call:spawn_agent={nested} call:slow={{"n":1}}"#)
}

/// What the calls of a run tree's first run come to, in the order in which they were made.
const FAMILY: [&str; 3] = [
    r#""you said Summarize flat for {{who}}""#,
    r#""got \"you said Summarize deep for {{who}}\"""#,
    r#"{"n":1}"#,
];

/// A run tree on a store that is killed after so many writes, and then on a new engine. Whether it was killed.
async fn killed_after(writes: usize, always_evict: bool) -> bool {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let store = Arc::new(FaultyStore::killed_after(memory.clone(), writes));
    let setup = Setup {
        store: store.clone(),
        always_evict,
        ..Setup::default()
    };
    let clock = setup.clock.clone();
    let first = world_of(setup, json!({})).await;
    first.tools.gate.add_permits(1);
    let run = ask_boss(&first, &run_tree()).await;
    let killed = tokio::select! {
        biased;
        () = store.killed() => true,
        end = first.finish(run) => {
            assert_eq!(end.status, Status::Completed);
            false
        }
    };
    let second = Setup {
        store: memory,
        clock,
        always_evict,
        ..Setup::default()
    };
    first.stop().await;
    let before = Instant::now();
    let world = World::with(second).await;
    world.tools.gate.add_permits(1);
    assert_eq!(
        world.finish(run).await.status,
        Status::Completed,
        "after {writes} writes"
    );
    assert!(before.elapsed() < AT_ONCE, "after {writes} writes");
    let mut told = outcomes(&world, run).await;
    if let Some(slow) = told.iter_mut().find(|told| told.starts_with("Some(Interrupted)")) {
        // Nobody knows whether it was done: that is what the model is told of a tool that must not run twice.
        *slow = FAMILY[2].to_owned();
    }
    told.sort_unstable();
    let mut expected = FAMILY;
    expected.sort_unstable();
    assert_eq!(told, expected, "after {writes} writes");
    let all = runs(&world).await;
    assert_eq!(all.len(), 4, "everybody is born once, after {writes} writes");
    world.rest().await;
    for run in all {
        let row = row(&world, run.id).await;
        assert_eq!(
            (row.status, row.node),
            (Status::Completed, None),
            "after {writes} writes"
        );
    }
    killed
}

#[tokio::test(start_paused = true)]
async fn a_kill_between_any_two_writes_loses_no_child_and_no_end_of_one() {
    for always_evict in [false, true] {
        let mut writes = 1;
        while killed_after(writes, always_evict).await {
            writes += 1;
        }
        assert!(writes > 10, "{writes} writes are too few for a run tree");
    }
}

fn is_open_below(run: &RunRecord, root: RunId) -> bool {
    run.id != root && !run.status.is_final()
}

#[tokio::test(start_paused = true)]
async fn no_cancel_is_lost_between_any_two_writes() {
    let mut writes = 1;
    loop {
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let store = Arc::new(FaultyStore::killed_after(memory.clone(), writes));
        let setup = Setup {
            store: store.clone(),
            ..Setup::default()
        };
        let clock = setup.clock.clone();
        let first = world_of(setup, json!({})).await;
        let hurry = json!({"prompt": SPAWN_WAITING.trim()});
        let root = ask_boss(&first, &format!("call:hurry={hurry} call:wait")).await;
        let given_up = async {
            let error = |event: &Event| matches!(event, Event::ToolOutputError(_));
            first.until(root, error).await;
            first.rest().await;
        };
        let killed = tokio::select! {
            biased;
            () = store.killed() => true,
            () = given_up => false,
        };
        first.stop().await;
        let world = World::with(Setup {
            store: memory,
            clock,
            ..Setup::default()
        })
        .await;
        world
            .until(root, |event| matches!(event, Event::ToolOutputError(_)))
            .await;
        // The root waits on; the child whose time is up is gone, and its own with it.
        while let Some(run) = runs(&world)
            .await
            .into_iter()
            .find(|run| is_open_below(run, root))
        {
            assert_eq!(
                world.finish(run.id).await.status,
                Status::Cancelled,
                "after {writes} writes"
            );
        }
        assert!(!row(&world, root).await.status.is_final());
        if !killed {
            return assert!(writes > 8, "{writes} writes are too few");
        }
        writes += 1;
    }
}
