//! Tools that the agents of a project share.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use toolgate_engine::intake::Decision;
use toolgate_engine::shared_tools::{SHARED_TOOL_BYTES_MAX, SHARED_TOOLS_BYTES_MAX, SharedToolError};
use toolgate_engine::workspace::Only;
use toolgate_kernel::event::{Event, Status};
use toolgate_kernel::id::ApprovalId;
use toolgate_kernel::tool::Decider;

use crate::editions::Editions;
use crate::world::{Setup, World, calls_in};

fn echo() -> Value {
    json!({"executionType": "prebuilt", "execution": {"action": "echo"}, "approval": "always"})
}

async fn put(world: &World, name: &str, definition: Value) -> Result<u64, SharedToolError> {
    let name = name.parse().unwrap();
    let put = world
        .engine
        .put_shared_tool(world.project, &name, definition, Only::Always);
    put.await.map(|(tool, _)| tool.version)
}

/// A world whose agent names these tools.
async fn with_agent(tools: Value, shared: &[(&str, Value)]) -> World {
    let world = World::with(Setup::default()).await;
    for (name, definition) in shared {
        put(&world, name, definition.clone()).await.unwrap();
    }
    for agent in ["default", "helper"] {
        let config = json!({"model": {"provider": "demo"}, "tools": tools});
        let name = agent.parse().unwrap();
        let put = world.engine.put_agent(world.project, &name, config.into());
        put.await.unwrap();
    }
    world
}

#[tokio::test(start_paused = true)]
async fn an_agent_uses_a_shared_tool_by_its_name() {
    let shared = json!({"executionType": "prebuilt", "execution": {"action": "echo"}});
    let world = with_agent(json!(["repeat"]), &[("repeat", shared)]).await;
    let run = world.say(r#"call:repeat={"a":1}"#).await.run_id.unwrap();
    assert_eq!(world.answer(run).await, r#"got {"a":1}"#);

    // The next run has it as it is by then, and an agent goes on without one that is gone.
    let changed = json!({"description": "Fixed.", "execution": {"static": 7}});
    assert_eq!(put(&world, "repeat", changed.clone()).await.unwrap(), 2);
    assert_eq!(
        put(&world, "repeat", changed).await.unwrap(),
        2,
        "nothing changed"
    );
    let run = world.say("call:repeat").await.run_id.unwrap();
    assert_eq!(world.answer(run).await, "got 7");
    let name = "repeat".parse().unwrap();
    let remove = |only| world.engine.remove_shared_tool(world.project, &name, only);
    assert!(matches!(
        remove(Only::Version(1)).await,
        Err(SharedToolError::Changed(Some(2)))
    ));
    assert!(remove(Only::Version(2)).await.unwrap());
    assert!(!remove(Only::Always).await.unwrap());
    let run = world.say("call:repeat").await.run_id.unwrap();
    let answer = world.answer(run).await;
    assert!(answer.contains("no tool named"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_shared_tool_that_goes_or_changes_under_a_run_is_unavailable_and_the_run_goes_on() {
    for (now, word) in [
        (None, "removed"),
        (
            Some(json!({"description": "Other.", "execution": {"static": 1}})),
            "changed",
        ),
    ] {
        let world = with_agent(json!(["repeat"]), &[("repeat", echo())]).await;
        let run = world.say(r#"call:repeat={"a":1}"#).await.run_id.unwrap();
        let calls = calls_in(&world.until_status(run, Status::WaitingApproval).await);
        let name = "repeat".parse().unwrap();
        match now {
            None => drop(
                world
                    .engine
                    .remove_shared_tool(world.project, &name, Only::Always)
                    .await
                    .unwrap(),
            ),
            Some(definition) => drop(put(&world, "repeat", definition).await.unwrap()),
        }
        let approval = ApprovalId {
            run: calls[0].run,
            number: calls[0].number,
        };
        let decided = world
            .engine
            .decide(approval, Decision::Approve(None), Decider::Backend);
        decided.await.unwrap();
        let answer = world.answer(run).await;
        assert!(
            answer.contains("the call was not made") && answer.contains(word),
            "{answer}"
        );
        assert_eq!(world.finish(run).await.status, Status::Completed);
        assert!(world.tools.calls().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_run_of_a_shared_prompt_tool_outlives_it() {
    let prompt = |words: &str| json!({"description": words, "executionType": "prompt", "execution": {"prompt": "{{text}}"}});
    let world = with_agent(json!(["translate"]), &[("translate", prompt("Answers."))]).await;
    let run = world
        .say(r#"call:translate={"text":"hello"}"#)
        .await
        .run_id
        .unwrap();
    let answer = world.answer(run).await;
    assert!(answer.contains("you said hello"), "{answer}");
    world.rest().await;
    // The log of the child is read again without the tool.
    let child = world
        .log(run)
        .await
        .into_iter()
        .find_map(|(_, event)| match event {
            Event::ToolExecuting(started) => started.child,
            _ => None,
        });
    let child = child.expect("a child run");
    let name = "translate".parse().unwrap();
    let removed = world
        .engine
        .remove_shared_tool(world.project, &name, Only::Always);
    assert!(removed.await.unwrap());
    assert_eq!(world.engine.cancel(child).await.unwrap(), Status::Completed);

    let run = world
        .say(r#"call:translate={"text":"hello"}"#)
        .await
        .run_id
        .unwrap();
    assert!(world.answer(run).await.contains("no tool named"));
}

#[tokio::test(start_paused = true)]
async fn shared_tools_are_bounded_in_count_and_bytes() {
    let world = World::new().await;
    let tool = |bytes: usize| json!({"description": "Says.", "execution": {"static": "x".repeat(bytes)}});
    let refused = put(&world, "large", tool(SHARED_TOOL_BYTES_MAX)).await;
    assert!(matches!(refused, Err(SharedToolError::Invalid(_))), "{refused:?}");
    let each = SHARED_TOOL_BYTES_MAX - 1_000;
    let fit = SHARED_TOOLS_BYTES_MAX / each;
    for index in 0..fit {
        put(&world, &format!("tool_{index}"), tool(each)).await.unwrap();
    }
    let full = put(&world, "one_more", tool(each)).await;
    assert!(
        matches!(&full, Err(SharedToolError::Full(words)) if words.contains("bytes")),
        "{full:?}"
    );
    // One that is stored again takes no more.
    put(&world, "tool_0", tool(each - 1)).await.unwrap();
    for index in 0..fit {
        let name = format!("tool_{index}").parse().unwrap();
        let removed = world
            .engine
            .remove_shared_tool(world.project, &name, Only::Always);
        assert!(removed.await.unwrap());
    }
    for index in 0..toolgate_engine::shared_tools::SHARED_TOOLS_MAX {
        put(&world, &format!("tool_{index}"), tool(1)).await.unwrap();
    }
    let full = put(&world, "one_more", tool(1)).await;
    assert!(
        matches!(&full, Err(SharedToolError::Full(words)) if words.contains("shared tools")),
        "{full:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn no_name_is_taken_while_a_source_cannot_say_what_its_tools_are_called() {
    let editions = Arc::new(Editions::default());
    let world = World::with(Setup {
        editions: editions.clone(),
        ..Setup::default()
    })
    .await;
    put(&world, "known", echo()).await.unwrap();
    editions.silent.store(true, Ordering::Relaxed);
    let refused = put(&world, "new", echo()).await;
    let Err(SharedToolError::NamesUnknown(unknown)) = refused else {
        panic!("{refused:?}");
    };
    let words = unknown.to_string();
    assert!(
        words.contains("\"editions\"") && words.contains("nothing was changed"),
        "{words}"
    );
    assert_eq!(world.engine.shared_tools(world.project).await.unwrap().len(), 1);
    // One that has its name already goes on.
    let changed = json!({"description": "Fixed.", "execution": {"static": 7}});
    assert_eq!(put(&world, "known", changed).await.unwrap(), 2);
    editions.silent.store(false, Ordering::Relaxed);
    put(&world, "new", echo()).await.unwrap();
}
