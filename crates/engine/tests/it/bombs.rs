//! Agents that start agents for ever, in every way there is: each limit stops them and says so, the first run ends, and
//! cancelling it ends all.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_engine::model::Ask;
use toolgate_kernel::event::{EndReason, Status};
use toolgate_kernel::id::RunId;
use toolgate_testkit::scripted_model::{Say, call, last_results};

use crate::families::{ask_boss, children, outcomes, restarted, runs, world};
use crate::world::{World, by_words};

/// Far more than any of the tests lets happen.
const RUNS_MAX: usize = 500;

/// Calls everything that is a run, whatever it is told, as long as it has tools.
fn explode(_: &Ask) -> Vec<Say> {
    let spawn = || call("spawn_agent", r#"{"agent":"boss","prompt":"again"}"#);
    let recurse = || call("hasty", r#"{"prompt":"again"}"#);
    let words = || call("summarize", r#"{"text":"again"}"#);
    vec![spawn(), recurse(), words(), spawn(), recurse()]
}

/// What the models of the run tree were told of their calls.
fn told(world: &World) -> String {
    let asked = world.model.asked();
    let results = asked.iter().filter_map(last_results).flatten();
    results
        .map(|result| format!("{}\n", result.output.as_str()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn each_limit_stops_an_explosion_and_says_so() {
    for (limits, runs_max, words) in [
        (
            json!({"depth": 1, "descendants": 400}),
            21,
            "agents may call agents 1 deep",
        ),
        (
            json!({"fanout": 2, "descendants": 30}),
            31,
            "one step may start 2 agents at once",
        ),
        (
            json!({"descendants": 7}),
            8,
            "7 agents were started below the first run",
        ),
        (
            json!({"calls": 3, "descendants": 30}),
            31,
            "this run may make 3 calls",
        ),
        (json!({"tokens": 90}), RUNS_MAX, "together they may use 90"),
    ] {
        let world = world(explode, limits.clone()).await;
        let run = ask_boss(&world, "go").await;
        let end = world.finish(run).await;
        let outcomes = outcomes(&world, run).await.join("\n");
        let said = format!("{}{outcomes}{:?}", told(&world), end.error);
        assert!(said.contains(words), "{limits}: {said}");
        let all = runs(&world).await;
        assert!(all.len() <= runs_max, "{limits}: {} runs", all.len());
        match limits["tokens"] {
            Value::Null => assert_eq!(end.status, Status::Completed, "{limits}: {end:?}"),
            _ => assert_eq!((end.status, end.reason), (Status::Failed, EndReason::Limit)),
        }
        none_is_left(&world).await;
    }
}

/// Waits until every run has ended: one that was being started just then is found a moment later.
async fn none_is_left(world: &World) {
    for _ in 0..100 {
        if runs(world).await.iter().all(|run| run.status.is_final()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{:#?}", runs(world).await);
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_root_after_a_restart_ends_all_generations() {
    let world = world(by_words, json!({})).await;
    let mut words = "call:wait".to_owned();
    for _ in 0..3 {
        let spawn = json!({"agent": "boss", "prompt": words});
        words = format!("call:spawn_agent={spawn}");
    }
    let root = ask_boss(&world, &words).await;
    let mut tree: Vec<RunId> = vec![root];
    for _ in 0..3 {
        tree.push(children(&world, tree[tree.len() - 1], 1).await[0]);
    }
    world.until_status(tree[3], Status::WaitingTime).await;
    let world = restarted(world).await;
    world.engine.cancel(root).await.unwrap();
    for run in tree {
        assert_eq!(world.finish(run).await.status, Status::Cancelled);
    }
}
