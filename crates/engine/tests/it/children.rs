//! Runs that start runs.

use serde_json::json;
use toolgate_engine::model::Ask;
use toolgate_engine::store::RunFilter;
use toolgate_kernel::event::{EndReason, Event, Status};
use toolgate_kernel::id::RunId;

use toolgate_testkit::scripted_model::{ScriptedModel, call, last_words, text};

use crate::world::{Setup, World, by_words};

async fn child_of(world: &World, run: RunId) -> RunId {
    let events = world
        .until(run, |event| matches!(event, Event::ToolExecuting(_)))
        .await;
    let Some(Event::ToolExecuting(started)) = events.last() else {
        unreachable!()
    };
    started.child.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_last_words_of_a_child_are_the_output() {
    let world = World::new().await;
    let run = world.say(r#"call:helper={"prompt":"hi"}"#).await.run_id.unwrap();
    assert_eq!(world.answer(run).await, r#"got "you said hi""#);
    let children = world
        .store
        .runs(
            world.project,
            RunFilter {
                parent: Some(run),
                limit: 10,
                ..RunFilter::default()
            },
        )
        .await
        .unwrap()
        .runs;
    assert_eq!(children.len(), 1);
    assert_eq!(children[0].root, run);
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_run_reaches_the_last_child() {
    let world = World::new().await;
    let nested = r#"call:helper={"prompt":"call:helper={\"prompt\":\"call:wait\"}"}"#;
    let root = world.say(nested).await.run_id.unwrap();
    let child = child_of(&world, root).await;
    let grandchild = child_of(&world, child).await;
    world.until_status(grandchild, Status::WaitingTime).await;
    world.engine.cancel(root).await.unwrap();
    for run in [root, child, grandchild] {
        assert_eq!(world.finish(run).await.status, Status::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn agents_that_call_agents_reach_a_floor() {
    let world = World::new().await;
    // The scripted model passes any prompt on to the next helper.
    let mut words = "hello".to_owned();
    for _ in 0..6 {
        words = format!(r#"call:helper={}"#, serde_json::json!({ "prompt": words }));
    }
    let run = world.say(&words).await.run_id.unwrap();
    let answer = world.answer(run).await;
    assert!(answer.contains("agents may call agents"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn calls_that_nothing_can_ever_answer_are_told_when_an_agent_is_saved() {
    let world = World::new().await;
    let warnings = async |name: &str| -> Vec<String> {
        let name = name.parse().unwrap();
        let warnings = world.engine.agent_warnings(world.project, &name);
        let warnings = warnings.await.unwrap().into_iter();
        warnings.map(|p| format!("{} {}", p.pointer, p.message)).collect()
    };
    assert!(
        warnings("default").await.is_empty(),
        "helpers may call helpers, four deep"
    );
    let mut config = crate::world::agent();
    config["limits"] = json!({"depth": 1});
    let nobody = json!({"name": "nobody", "description": "Asks.", "executionType": "ai-agent",
        "parameters": {"type": "object", "propertes": {}}, "execution": {"agent": "nobody"}});
    config["tools"].as_array_mut().unwrap().push(nobody);
    let name = "default".parse().unwrap();
    world
        .engine
        .put_agent(world.project, &name, config.into())
        .await
        .unwrap();
    let told = warnings("default").await;
    assert_eq!(told.len(), 3, "{told:?}");
    for (told, words) in told.iter().zip([
        "/tools/16/parameters/propertes \"propertes\" is no keyword of JSON Schema",
        "/tools/13 helper of helper would start a run 2 deep",
        "/tools/16 there is no agent named nobody now",
    ]) {
        assert!(told.starts_with(words), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_depth_of_the_run_at_the_top_bounds_all_below() {
    let world = World::new().await;
    let mut shallow = crate::world::agent();
    shallow["limits"] = json!({"depth": 1});
    let name = "default".parse().unwrap();
    world
        .engine
        .put_agent(world.project, &name, shallow.into())
        .await
        .unwrap();
    let nested = r#"call:helper={"prompt":"call:helper={\"prompt\":\"hi\"}"}"#;
    let run = world.say(nested).await.run_id.unwrap();
    let answer = world.answer(run).await;
    assert!(answer.contains("1 deep"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_at_its_step_limit_without_words_says_so_and_fails_its_caller() {
    let mut agent = crate::world::agent();
    agent["loop"] = json!({"maxSteps": 1});
    let world = World::with(Setup {
        agent,
        ..Setup::default()
    })
    .await;
    let run = world
        .say(r#"call:helper={"prompt":"call:echo"}"#)
        .await
        .run_id
        .unwrap();
    let end = world.finish(run).await;
    assert_eq!((end.status, end.reason), (Status::Completed, EndReason::MaxSteps));
    let words = "The agent stopped at its limit of 1 steps (loop.maxSteps) without an answer.";
    assert_eq!(world.answer(run).await, words, "the reader is told");
    let told = crate::families::outcomes(&world, run).await;
    assert_eq!(told, [format!("Some(LimitExceeded): helper failed: {words}")]);
}

#[tokio::test(start_paused = true)]
async fn an_agents_answer_that_must_have_a_form_is_asked_for_once_more() {
    for (second, expected) in [
        (r#"{"n":1}"#, r#"{"n":1}"#),
        ("never", "Some(InvalidOutput): helper failed"),
    ] {
        let script = move |ask: &Ask| match last_words(ask) {
            words if words.contains("does not fit") => vec![text(second)],
            words if words == "count" => vec![text("one")],
            _ => by_words(ask),
        };
        let mut agent = crate::world::agent();
        let tools = agent["tools"].as_array_mut().unwrap();
        let helper = tools.iter_mut().find(|tool| tool["name"] == "helper").unwrap();
        helper["execution"]["result_schema"] = json!({"type": "object", "required": ["n"]});
        for always_evict in [false, true] {
            let world = World::with(Setup {
                agent: agent.clone(),
                model: ScriptedModel::new(script),
                always_evict,
                ..Setup::default()
            })
            .await;
            let run = world
                .say(r#"call:helper={"prompt":"count"}"#)
                .await
                .run_id
                .unwrap();
            world.finish(run).await;
            let told = crate::families::outcomes(&world, run).await;
            assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
            let asked = world.model.asked();
            let child = asked.iter().find(|ask| last_words(ask) == "count").unwrap();
            assert!(
                child.instructions.contains("required"),
                "the model is told the schema"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_budget_holds_for_a_model_that_reports_no_usage() {
    let script = |ask: &Ask| match last_words(ask).as_str() {
        "once" => vec![text("words of sixteen")],
        _ => vec![call("echo", "{}")],
    };
    let mut agent = crate::world::agent();
    agent["limits"] = json!({"tokens": 5_000});
    agent["loop"] = json!({"maxSteps": 100});
    let world = World::with(Setup {
        agent,
        model: ScriptedModel::without_usage(script),
        ..Setup::default()
    })
    .await;
    let once = world.finish(world.say("once").await.run_id.unwrap()).await;
    assert!(once.usage.estimated && once.usage.output_tokens == 4, "{once:?}");
    let end = world.finish(world.say("for ever").await.run_id.unwrap()).await;
    assert_eq!(
        (end.status, end.reason),
        (Status::Failed, EndReason::Limit),
        "{end:?}"
    );
    assert!(end.usage.total() > 5_000 && end.usage.estimated);
}

#[tokio::test(start_paused = true)]
async fn the_tools_of_a_child_work_in_the_space_of_the_first_run() {
    for always_evict in [false, true] {
        let world = World::with(Setup {
            always_evict,
            ..Setup::default()
        })
        .await;
        let nested = r#"call:helper={"prompt":"call:helper={\"prompt\":\"call:echo\"}"}"#;
        let posted = world.say(nested).await;
        world.finish(posted.run_id.unwrap()).await;
        assert_eq!(world.tools.spaces(), [posted.space_id]);
    }
}
