//! Tools of sources: pinned by the run that begins with them, whatever becomes of them while it waits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use toolgate_engine::AgentError;
use toolgate_engine::intake::{Decision, Submission};
use toolgate_engine::store::{Append, LeaseWrite, LogRange, RunWrite};
use toolgate_kernel::event::{Event, Status};
use toolgate_kernel::id::{ApprovalId, CallId, RunId};
use toolgate_kernel::tool::{Decider, Listed, Placement};

use crate::editions::Editions;
use crate::world::{Setup, World, calls_in};

/// A world whose agent has this configuration.
async fn with_agent(agent: Value) -> World {
    World::with(Setup {
        agent,
        ..Setup::default()
    })
    .await
}

/// An agent with a tool that needs a yes, one that a client runs, and one that needs neither.
fn config() -> Value {
    json!({"model": {"provider": "demo"}, "tools": [
        {"name": "guarded", "executionType": "prebuilt", "execution": {"action": "echo"}, "approval": "always"},
        {"name": "ask", "description": "Asks.", "executionType": "basic"},
        {"name": "slow", "executionType": "prebuilt", "execution": {"action": "slow"}},
    ]})
}

/// The same store and tools in another process.
async fn restarted(world: World, always_evict: bool) -> World {
    let setup = Setup {
        store: world.store.clone(),
        clock: world.clock.clone(),
        tools: world.tools.clone(),
        always_evict,
        ..Setup::default()
    };
    world.stop().await;
    World::with(setup).await
}

async fn approve(world: &World, call: CallId) {
    let approval = ApprovalId {
        run: call.run,
        number: call.number,
    };
    let decided = world
        .engine
        .decide(approval, Decision::Approve(None), Decider::Backend);
    decided.await.unwrap();
}

async fn submit(world: &World, call: CallId) {
    let submission = Submission::Output(json!({"said": "yes"}).into());
    world.engine.submit(call, submission, None).await.unwrap();
}

/// The descriptions that the model was told last.
fn told(world: &World) -> Vec<String> {
    let asked = world.model.asked();
    let tools = asked.last().expect("it was asked").tools.iter();
    tools.map(|tool| tool.description.clone()).collect()
}

fn described(words: &str) -> Listed {
    Listed::new(json!({"description": words, "parameters": {"type": "object"}}))
}

#[tokio::test(start_paused = true)]
async fn a_source_of_one_file_serves_an_agent() {
    let config = json!({"model": {"provider": "demo"}, "tools": [
        {"name": "roll", "executionType": "dice", "execution": {"tool": "roll"}},
    ]});
    let world = with_agent(config).await;
    let run = world.say(r#"call:roll={"sides":6}"#).await.run_id.unwrap();
    assert_eq!(world.answer(run).await, r#"got {"rolled":4}"#);
    let placements = world
        .log(run)
        .await
        .into_iter()
        .filter_map(|(_, event)| match event {
            Event::ToolOutputAvailable(e) => Some(e.placement),
            _ => None,
        });
    assert_eq!(placements.collect::<Vec<_>>(), [Placement::Plugin]);

    let run = world.say(r#"call:roll={"sides":1}"#).await.run_id.unwrap();
    let answer = world.answer(run).await;
    assert!(answer.contains("sides must be at least 2"), "{answer}");

    let other = "other".parse().unwrap();
    let wrong = json!({"tools": [{"name": "roll", "executionType": "dice", "execution": {"tool": "rol"}}]});
    let put = world.engine.put_agent(world.project, &other, wrong.into());
    let Err(AgentError::Invalid(problems)) = put.await else {
        panic!("there is no such tool")
    };
    assert_eq!(problems[0].pointer, "/tools/0/execution/tool");
    assert_eq!(
        problems[0].message,
        r#"its source has no tool named "rol"; did you mean "roll"? There are: roll"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_goes_or_changes_while_a_call_waits_is_unavailable_and_the_run_goes_on() {
    for restarts in [false, true] {
        for (now, word) in [
            (None, "removed"),
            (Some(described("Formats the disk.")), "changed"),
        ] {
            let mut world = with_agent(config()).await;
            let said = world
                .say(r#"call:guarded={"a":1} call:ask call:slow={"b":2}"#)
                .await;
            let run = said.run_id.unwrap();
            let events = world
                .until(run, |event| matches!(event, Event::ToolExecuting(_)))
                .await;
            let calls = calls_in(&events);
            world.tools.gate.add_permits(1);
            world.until_status(run, Status::WaitingApproval).await;
            world.tools.relist("echo", now);
            if restarts {
                world = restarted(world, false).await;
            }
            approve(&world, calls[0]).await;
            world
                .until(run, |event| matches!(event, Event::ToolOutputError(_)))
                .await;
            submit(&world, calls[1]).await;
            let answer = world.answer(run).await;
            assert!(
                answer.contains("the call was not made") && answer.contains(word),
                "{answer}"
            );
            assert!(answer.ends_with(r#"{"said":"yes"} and {"b":2}"#), "{answer}");
            assert_eq!(world.finish(run).await.status, Status::Completed);
            assert_eq!(world.tools.calls(), [calls[2]]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_keeps_versions_runs_the_pinned_one_until_it_withdraws_it() {
    let config = json!({"model": {"provider": "demo"}, "tools": [
        {"name": "quote", "executionType": "editions", "execution": {"tool": "quote"}, "approval": "always"},
    ]});
    let editions = Arc::<Editions>::default();
    let world = World::with(Setup {
        agent: config,
        editions: editions.clone(),
        ..Setup::default()
    })
    .await;
    for (withdrawn, expected) in [(None, r#"got {"edition":0}"#), (Some(0), "withdrawn")] {
        let run = world.say("call:quote").await.run_id.unwrap();
        let calls = calls_in(&world.until_status(run, Status::WaitingApproval).await);
        editions.newest.fetch_add(1, Ordering::Relaxed);
        editions.withdrawn.lock().unwrap().extend(withdrawn);
        approve(&world, calls[0]).await;
        let answer = world.answer(run).await;
        assert!(answer.contains(expected), "{answer}");
        assert_eq!(world.finish(run).await.status, Status::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_with_what_its_model_was_told() {
    for always_evict in [false, true] {
        let world = with_agent(config()).await;
        let run = world.say("call:ask").await.run_id.unwrap();
        let calls = calls_in(&world.until_status(run, Status::WaitingTool).await);
        let first = told(&world);
        assert!(first.contains(&"Does echo.".into()), "{first:?}");
        world.tools.relist("echo", Some(described("Echoes, and better.")));
        world.tools.relist("slow", None);
        let world = restarted(world, always_evict).await;
        submit(&world, calls[0]).await;
        assert_eq!(world.answer(run).await, r#"got {"said":"yes"}"#);
        assert_eq!(told(&world), first);

        let run = world.say("hello").await.run_id.unwrap();
        world.finish(run).await;
        assert_eq!(told(&world), ["Asks.", "Echoes, and better."]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_goes_without_a_tool_that_no_source_has() {
    let world = with_agent(config()).await;
    world.tools.relist("echo", None);
    let world = restarted(world, false).await;
    let run = world.say("call:guarded").await.run_id.unwrap();
    let answer = world.answer(run).await;
    assert!(
        answer.contains("no tool named") && answer.contains("ask, slow"),
        "{answer}"
    );
    let name = "default".parse().unwrap();
    let put = world.engine.put_agent(world.project, &name, config().into());
    assert!(matches!(put.await, Err(AgentError::Invalid(_))));
}

/// Writes a run into another store as it was written before definitions were stored.
async fn written_before(from: &World, to: &World, run: RunId) {
    let mut record = from.store.run(run).await.unwrap().unwrap();
    let space = from.store.space(record.space).await.unwrap();
    let (status, wake_at) = (record.status, record.wake_at);
    (record.node, record.epoch) = (None, 0);
    let mut version = None;
    let log = from.store.run_log(run, LogRange::default()).await.unwrap();
    for entry in log.entries {
        let mut events = entry.events.clone();
        for event in &mut events {
            if let Event::RunStart(start) = event {
                start.tools = json!({"guarded": "a".repeat(64), "ask": "b".repeat(64)}).into();
            }
        }
        let write = match version {
            None => RunWrite::Create {
                record: Box::new(record.clone()),
                space: space.clone().map(Box::new),
                descendants_max: None,
                definitions: Arc::default(),
            },
            Some(version) => RunWrite::Extend {
                id: run,
                version,
                epoch: 0,
                status,
                wake_at,
                lease: LeaseWrite::Keep,
            },
        };
        let append = Append {
            space: record.space,
            run: write,
            events,
            usage: Vec::new(),
            consumption: Vec::new(),
            above: None,
            wakes: Vec::new(),
            time: entry.time,
            idempotency: Vec::new(),
        };
        version = Some(to.store.append(append).await.unwrap().last());
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_written_before_definitions_were_stored_goes_by_its_agents_revision() {
    let before = with_agent(config()).await;
    let run = before.say("call:guarded call:ask").await.run_id.unwrap();
    let calls = calls_in(&before.until_status(run, Status::WaitingApproval).await);
    // Of one of the two nothing is left.
    let rest = json!({"model": {"provider": "demo"}, "tools": [config()["tools"][1]]});
    let world = with_agent(rest).await;
    written_before(&before, &world, run).await;
    submit(&world, calls[1]).await;
    approve(&world, calls[0]).await;
    let answer = world.answer(run).await;
    assert!(
        answer.contains("this tool was removed") && answer.ends_with(r#"{"said":"yes"}"#),
        "{answer}"
    );
}
