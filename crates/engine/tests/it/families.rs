//! Child runs: prompt tools, agents that start agents, what all of them may use up together, and
//! calls that wait.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_engine::OUTPUT_BYTES_MAX;
use toolgate_engine::intake::{Answer, IntakeError};
use toolgate_engine::model::Ask;
use toolgate_engine::store::{RunFilter, RunRecord};
use toolgate_kernel::event::{EndReason, Event, Status};
use toolgate_kernel::id::RunId;
use toolgate_kernel::json::Json;
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, call, last_results, last_words, text};

use crate::world::{Setup, World, by_words, calls_in};

/// An agent whose tools are runs of their own, or wait.
fn boss(limits: Value) -> Value {
    json!({
        "instructions": "Do as the test says.",
        "model": {"provider": "demo"},
        "loop": {"maxSteps": 4},
        "limits": limits,
        "tools": [
            {"name": "summarize", "description": "Summarizes.", "executionType": "prompt",
                "execution": {"prompt": "Summarize {{text}} for {{who}}", "model": "small"},
                "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}},
            {"name": "bullets", "description": "Makes bullets.", "executionType": "prompt",
                "execution": {"prompt": "Bullets of {{text}}", "model": "formed", "result_schema":
                    {"type": "object", "properties": {"bullets": {"type": "array"}}, "required": ["bullets"]}}},
            {"name": "spawn_agent", "description": "Starts an agent.", "executionType": "spawn-agent"},
            {"name": "signal_parent", "executionType": "prebuilt", "execution": {"action": "signal_parent"}},
            {"name": "tell", "executionType": "prebuilt", "execution": {"action": "signal_parent"}},
            {"name": "hurry", "description": "Asks an agent.", "executionType": "ai-agent",
                "execution": {"agent": "boss"}, "timeout": "1s"},
            {"name": "pause", "description": "Waits.", "executionType": "waiting", "execution": {"duration": "10m"}},
            {"name": "wait", "description": "Waits.", "executionType": "waiting", "execution": {"signal": true}},
            {"name": "hasty", "description": "Asks a boss who has little time.", "executionType": "ai-agent",
                "execution": {"agent": "boss"}, "timeout": "5s"},
            {"name": "slow", "executionType": "prebuilt", "execution": {"action": "slow"}},
        ],
    })
}

pub async fn world(script: impl Fn(&Ask) -> Vec<Say> + Send + Sync + 'static, limits: Value) -> World {
    let setup = Setup {
        model: ScriptedModel::new(script),
        ..Setup::default()
    };
    world_of(setup, limits).await
}

pub async fn world_of(setup: Setup, limits: Value) -> World {
    let world = World::with(setup).await;
    let name = "boss".parse().unwrap();
    world
        .engine
        .put_agent(world.project, &name, boss(limits).into())
        .await
        .unwrap();
    world
}

pub async fn ask_boss(world: &World, words: &str) -> RunId {
    let mut post = world.post_to(None, words);
    post.answer = Answer::Agent("boss".parse().unwrap());
    world.engine.post(post).await.unwrap().run_id.unwrap()
}

/// All runs of the project.
pub async fn runs(world: &World) -> Vec<RunRecord> {
    let filter = RunFilter {
        limit: 1_000,
        ..RunFilter::default()
    };
    world.store.runs(world.project, filter).await.unwrap().runs
}

/// What the calls of a run came to, in order.
pub async fn outcomes(world: &World, run: RunId) -> Vec<String> {
    let told = world
        .log(run)
        .await
        .into_iter()
        .filter_map(|(_, event)| match event {
            Event::ToolOutputAvailable(e) => {
                Some(e.output.map_or_else(String::new, |output| output.as_str().into()))
            }
            Event::ToolOutputError(e) => Some(format!("{:?}: {}", e.code, e.error_text.unwrap_or_default())),
            _ => None,
        });
    told.collect()
}

#[tokio::test(start_paused = true)]
async fn a_tool_made_of_words_asks_its_own_model_with_its_words_filled_in() {
    let world = world(by_words, json!({})).await;
    let run = ask_boss(&world, r#"call:summarize={"text":"{{who}}-and-more"}"#).await;
    // What is filled in is not filled again, and what nobody gave stays as it is written.
    let filled = "Summarize {{who}}-and-more for {{who}}";
    assert_eq!(world.answer(run).await, format!(r#"got "you said {filled}""#));
    let asked = world.model.asked();
    let child = asked.iter().find(|ask| last_words(ask) == filled).expect("asked");
    assert_eq!(child.model.name.name, "small");
    assert!(child.tools.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_its_schema_is_asked_for_once_more() {
    let script = |ask: &Ask| match ask.model.name.name.as_str() {
        "formed" if last_words(ask).contains("does not fit") => {
            vec![text("```json\n{\"bullets\":[\"a\"]}\n```")]
        }
        "formed" => vec![text("well, bullets")],
        _ => by_words(ask),
    };
    let world = world(script, json!({})).await;
    let run = ask_boss(&world, r#"call:bullets={"text":"x"}"#).await;
    assert_eq!(world.answer(run).await, r#"got {"bullets":["a"]}"#);
    let children = world
        .model
        .asked()
        .into_iter()
        .filter(|ask| ask.model.name.name == "formed");
    assert_eq!(children.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_twice_is_an_error_the_model_reads() {
    let script = |ask: &Ask| match ask.model.name.name.as_str() {
        "formed" => vec![text(r#"{"bullets":"none"}"#)],
        _ => by_words(ask),
    };
    let world = world(script, json!({})).await;
    let run = ask_boss(&world, r#"call:bullets={"text":"x"}"#).await;
    let answer = world.answer(run).await;
    assert!(
        answer.contains("expected array") && answer.contains("bullets failed"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_starts_another_and_hears_what_it_signals_on_its_way() {
    let world = world(by_words, json!({})).await;
    let prompt = r#"call:signal_parent={"message":"half"}"#;
    let input = json!({ "agent": "boss", "prompt": prompt });
    let run = ask_boss(&world, &format!("call:spawn_agent={input}")).await;
    world.finish(run).await;
    assert_eq!(
        outcomes(&world, run).await,
        [r#"{"answer":"got {\"message\":\"half\"}","signals":[{"message":"half"}]}"#]
    );
}

#[tokio::test(start_paused = true)]
async fn a_signal_is_known_by_its_action_not_by_its_name() {
    let world = world(by_words, json!({})).await;
    let impostor = json!({"model": {"provider": "demo"}, "tools": [
        {"name": "signal_parent", "description": "Not a signal.", "execution": {"static": "no"}},
    ]});
    let name = "impostor".parse().unwrap();
    let put = world.engine.put_agent(world.project, &name, impostor.into());
    put.await.unwrap();
    for (agent, prompt, output) in [
        (
            "boss",
            r#"call:tell={"message":"half"}"#,
            r#"{"answer":"got {\"message\":\"half\"}","signals":[{"message":"half"}]}"#,
        ),
        ("impostor", "call:signal_parent", r#""got \"no\"""#),
    ] {
        let input = json!({ "agent": agent, "prompt": prompt });
        let run = ask_boss(&world, &format!("call:spawn_agent={input}")).await;
        world.finish(run).await;
        assert_eq!(outcomes(&world, run).await, [output]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_large_is_told_in_short() {
    let world = world(by_words, json!({})).await;
    let long = "x".repeat(OUTPUT_BYTES_MAX);
    let input = json!({ "agent": "boss", "prompt": long });
    let run = ask_boss(&world, &format!("call:spawn_agent={input}")).await;
    let answer = world.answer(run).await;
    assert!(
        answer.starts_with(r#"got {"truncated":true,"file":{"#),
        "{answer:.200}"
    );
    assert!(answer.len() < 10_000, "{}", answer.len());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_takes_too_long_is_stopped_also_over_a_restart() {
    for restarts in [false, true] {
        let mut world = world(by_words, json!({})).await;
        let run = ask_boss(&world, r#"call:hurry={"prompt":"call:wait"}"#).await;
        let child = children(&world, run, 1).await[0];
        if restarts {
            world = restarted(world).await;
        }
        let before = tokio::time::Instant::now();
        let answer = world.answer(run).await;
        assert!(answer.contains("hurry gave no answer within 1s"), "{answer}");
        assert!(before.elapsed() < std::time::Duration::from_secs(10));
        assert_eq!(world.finish(child).await.status, Status::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_family_that_cannot_be_counted_spends_nothing() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()), 0, 0));
    let setup = Setup {
        store: store.clone(),
        ..Setup::default()
    };
    let world = World::with(setup).await;
    let run = world.say(r#"call:helper={"prompt":"call:slow"}"#).await;
    let run = run.run_id.unwrap();
    let child = children(&world, run, 1).await[0];
    world
        .until(child, |event| matches!(event, Event::ToolExecuting(_)))
        .await;
    let asked = world.model.asked().len();
    store.refuse(Some("run_tree"));
    world.tools.gate.add_permits(1);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(world.model.asked().len(), asked);
    store.refuse(None);
    assert_eq!(world.finish(run).await.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_not_there_cannot_be_started() {
    let world = world(by_words, json!({})).await;
    let run = ask_boss(&world, r#"call:spawn_agent={"agent":"nobody","prompt":"x"}"#).await;
    let answer = world.answer(run).await;
    let words = "there is no agent named nobody; there are: boss, default, helper";
    assert!(answer.contains(words), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn one_step_starts_no_more_agents_than_it_may() {
    let world = world(by_words, json!({ "fanout": 2 })).await;
    let spawn = r#"call:spawn_agent={"agent":"boss","prompt":"hi"} "#;
    let run = ask_boss(&world, &spawn.repeat(4)).await;
    world.finish(run).await;
    let outcomes = outcomes(&world, run).await;
    let refused = outcomes
        .iter()
        .filter(|told| told.contains("2 agents at once"))
        .count();
    assert_eq!((outcomes.len(), refused), (4, 2), "{outcomes:?}");
    assert_eq!(runs(&world).await.len(), 3);
}

/// Starts itself again whenever it is asked, whatever it is told.
fn for_ever(_: &Ask) -> Vec<Say> {
    let spawn = || call("spawn_agent", r#"{"agent":"boss","prompt":"again"}"#);
    vec![spawn(), spawn()]
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_starts_agents_for_ever_is_stopped_and_told_why() {
    let world = world(for_ever, json!({ "descendants": 5, "depth": 16 })).await;
    let run = ask_boss(&world, "go").await;
    world.finish(run).await;
    assert_eq!(runs(&world).await.len(), 6);
    let told = world.model.asked().into_iter().any(|ask| {
        let results = last_results(&ask).unwrap_or_default();
        results
            .iter()
            .any(|result| result.output.as_str().contains("5 agents were started"))
    });
    assert!(told);
}

#[tokio::test(start_paused = true)]
async fn a_family_uses_no_more_tokens_than_its_first_run_may() {
    // A reply costs 15.
    let world = world(
        for_ever,
        json!({ "tokens": 100, "descendants": 1_000, "depth": 16, "fanout": 1 }),
    )
    .await;
    let run = ask_boss(&world, "go").await;
    let end = world.finish(run).await;
    assert_eq!((end.status, end.reason), (Status::Failed, EndReason::Limit));
    assert!(end.error.expect("a reason").contains("tokens"));
    let asked = world.model.asked().len();
    assert!(asked <= 7, "{asked} replies of 15 tokens");
}

/// The runs that a run has started, once there are so many.
pub async fn children(world: &World, run: RunId, many: usize) -> Vec<RunId> {
    let seen = std::cell::RefCell::new(Vec::new());
    world
        .until(run, |event| {
            if let Event::ToolExecuting(started) = event {
                seen.borrow_mut().extend(started.child);
            }
            seen.borrow().len() == many
        })
        .await;
    seen.into_inner()
}

pub const SPAWN_WAITING: &str = r#"call:spawn_agent={"agent":"boss","prompt":"call:wait"} "#;

#[tokio::test(start_paused = true)]
async fn cancelling_the_root_ends_all_that_it_started() {
    let world = world(by_words, json!({})).await;
    let root = ask_boss(&world, &SPAWN_WAITING.repeat(3)).await;
    let children = children(&world, root, 3).await;
    for child in &children {
        world.until_status(*child, Status::WaitingTime).await;
    }
    world.engine.cancel(root).await.unwrap();
    for run in children.into_iter().chain([root]) {
        assert_eq!(world.finish(run).await.status, Status::Cancelled);
    }
}

/// The same engine after it went down and came back, on the same store.
pub async fn restarted(first: World) -> World {
    let (store, clock, model) = (first.store.clone(), first.clock.clone(), first.model.clone());
    first.stop().await;
    World::with(Setup {
        store,
        clock,
        model,
        ..Setup::default()
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_in_time_also_over_a_restart() {
    let world = world(by_words, json!({})).await;
    let run = ask_boss(&world, "call:pause").await;
    world.until_status(run, Status::WaitingTime).await;
    let world = restarted(world).await;
    let before = tokio::time::Instant::now();
    assert!(world.answer(run).await.contains("waitedUntil"));
    // Held time goes on by itself, and goes as far as somebody waits.
    assert!(before.elapsed() <= std::time::Duration::from_secs(601));
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_a_wait_once_also_over_a_restart() {
    let world = world(by_words, json!({})).await;
    let run = ask_boss(&world, "call:wait").await;
    let waiting = calls_in(&world.until_status(run, Status::WaitingTime).await)[0];
    let world = restarted(world).await;
    let signal = |value: Value| world.engine.signal_call(waiting, Json::from(value));
    let receipt = signal(json!("go")).await.unwrap();
    assert_eq!(world.answer(run).await, r#"got {"signal":"go"}"#);
    assert_eq!(signal(json!("go")).await.unwrap(), receipt);
    let different = signal(json!("stop")).await.unwrap_err();
    assert!(matches!(different, IntakeError::Conflict { winner } if *winner == receipt));
}

#[tokio::test(start_paused = true)]
async fn a_signal_for_a_wait_that_was_given_up_is_told_so() {
    let world = world(by_words, json!({})).await;
    let run = ask_boss(&world, "call:wait").await;
    let waiting = calls_in(&world.until_status(run, Status::WaitingTime).await)[0];
    world.engine.cancel(run).await.unwrap();
    let late = world
        .engine
        .signal_call(waiting, Json::from(json!(1)))
        .await
        .unwrap_err();
    assert!(matches!(late, IntakeError::Gone { .. }), "{late:?}");
}
