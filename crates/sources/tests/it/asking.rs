//! Servers that ask people in the middle of a call, and tasks.

use std::time::Duration;

use serde_json::json;
use toolgate_engine::tools::{Called, Delegation, ToolSource as _};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Action, Answer, Ask};

use crate::world::{Fixture, World, settings, tool};

fn delegated(called: Called) -> Delegation {
    match called {
        Called::Delegated(delegation) => delegation,
        Called::Output(output) => panic!("{output:?}"),
    }
}

fn answer(key: &str, action: Action, content: Option<serde_json::Value>) -> Answer {
    Answer {
        key: key.into(),
        action,
        content: content.map(Json::from),
    }
}

#[tokio::test]
async fn a_question_of_a_server_is_put_to_people_and_its_answer_given_back() {
    for era in ["legacy", "modern"] {
        let fixture = Fixture::new(era, &[tool("ask")]);
        let world = World::with(&fixture).await;
        for (action, content, expected) in [
            (Action::Accept, Some(json!({"name": "Ada"})), "hello Ada"),
            (Action::Decline, None, "nobody: decline"),
        ] {
            let asks = delegated(world.call("mcp_fix_ask", json!({})).await.unwrap());
            let [question] = asks.questions.as_slice() else {
                panic!("{asks:?}")
            };
            assert_eq!(question.message, "Who are you?");
            assert!(matches!(question.ask, Ask::Form { .. }), "{question:?}");
            let tool = world.pinned("mcp_fix_ask").await;
            let (input, context) = (Json::from(json!({})), world.context());
            if era == "legacy" {
                let idle = world
                    .source
                    .resume(&tool, &input, &asks.task, &[], &context)
                    .await;
                let idle = delegated(idle.unwrap());
                assert!(
                    idle.questions.is_empty() && idle.task == asks.task,
                    "nothing has changed: {idle:?}"
                );
            }
            let answers = [answer(&question.key, action, content)];
            let done = world
                .source
                .resume(&tool, &input, &asks.task, &answers, &context)
                .await;
            assert_eq!(
                done.unwrap().output().expect("it is done").to_value(),
                json!(expected),
                "{era}"
            );
        }
    }
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_given_up() {
    let fixture = Fixture::new("legacy", &[tool("ask_forever")]);
    let world = World::with(&fixture).await;
    let tool = world.pinned("mcp_fix_ask_forever").await;
    let (input, context) = (Json::from(json!({})), world.context());
    let mut asks = delegated(world.call("mcp_fix_ask_forever", json!({})).await.unwrap());
    for _ in 0..60 {
        let answers = [answer(&asks.questions[0].key, Action::Decline, None)];
        let next = world
            .source
            .resume(&tool, &input, &asks.task, &answers, &context)
            .await;
        match next {
            Ok(next) => asks = delegated(next),
            Err(failure) => {
                assert!(failure.message.contains("asked for more 50 times"), "{failure:?}");
                fixture.wrote("cancelled").await;
                return;
            }
        }
    }
    panic!("it asks and asks");
}

#[tokio::test]
async fn a_question_of_the_newer_protocol_outlives_the_gateway_and_one_of_the_older_is_interrupted() {
    for era in ["legacy", "modern"] {
        let fixture = Fixture::new(era, &[tool("ask")]);
        let world = World::with(&fixture).await;
        let asks = delegated(world.call("mcp_fix_ask", json!({})).await.unwrap());
        let restarted = world.again();
        drop(world);
        let tool = restarted.pinned("mcp_fix_ask").await;
        let answers = [answer(
            &asks.questions[0].key,
            Action::Accept,
            Some(json!({"name": "Ada"})),
        )];
        let (input, context) = (Json::from(json!({})), restarted.context());
        let resumed = restarted
            .source
            .resume(&tool, &input, &asks.task, &answers, &context)
            .await;
        match era {
            "modern" => assert_eq!(resumed.unwrap().output().unwrap().to_value(), json!("hello Ada")),
            _ => assert_eq!(resumed.unwrap_err().code, ErrorCode::Interrupted),
        }
    }
}

#[tokio::test]
async fn a_task_is_polled_by_its_id_also_after_a_restart() {
    let fixture = Fixture::new("modern", &[tool("task")]);
    let world = World::with(&fixture).await;
    let begun = delegated(world.call("mcp_fix_task", json!({})).await.unwrap());
    assert!(
        begun.questions.is_empty() && begun.check_at.is_some(),
        "{begun:?}"
    );
    let restarted = world.again();
    drop(world);
    let tool = restarted.pinned("mcp_fix_task").await;
    let (input, context) = (Json::from(json!({})), restarted.context());
    let working = restarted
        .source
        .resume(&tool, &input, &begun.task, &[], &context)
        .await;
    assert_eq!(delegated(working.unwrap()).task, begun.task);
    assert_eq!(
        restarted.told.lock().unwrap().last(),
        Some(&json!({"status": "at it"}))
    );
    fixture.write("task-done", "");
    let done = restarted
        .source
        .resume(&tool, &input, &begun.task, &[], &context)
        .await;
    assert_eq!(done.unwrap().output().unwrap().to_value(), json!("worked"));
    restarted
        .source
        .abandon(&tool, &begun.task, restarted.project)
        .await;
    fixture.wrote("task-cancelled").await;
}

#[tokio::test]
async fn a_task_may_ask_people() {
    let fixture = Fixture::new("modern", &[tool("asking_task")]);
    let world = World::with(&fixture).await;
    let begun = delegated(world.call("mcp_fix_asking_task", json!({})).await.unwrap());
    let tool = world.pinned("mcp_fix_asking_task").await;
    let (input, context) = (Json::from(json!({})), world.context());
    let asks = delegated(
        world
            .source
            .resume(&tool, &input, &begun.task, &[], &context)
            .await
            .unwrap(),
    );
    assert_eq!(asks.questions[0].message, "Go on?");
    let answers = [answer("go", Action::Accept, Some(json!({"go": true})))];
    let done = world
        .source
        .resume(&tool, &input, &asks.task, &answers, &context)
        .await;
    let told = done.unwrap().output().unwrap().to_value();
    let told: serde_json::Value = serde_json::from_str(told.as_str().unwrap()).unwrap();
    assert_eq!(told, json!({"go": {"action": "accept", "content": {"go": true}}}));
}

#[tokio::test]
async fn a_waiting_call_that_is_given_up_is_cancelled_on_the_server() {
    let fixture = Fixture::new("legacy", &[tool("ask")]);
    let world = World::with(&fixture).await;
    let asks = delegated(world.call("mcp_fix_ask", json!({})).await.unwrap());
    let tool = world.pinned("mcp_fix_ask").await;
    world.source.abandon(&tool, &asks.task, world.project).await;
    fixture.wrote("cancelled").await;
}

#[tokio::test]
async fn a_call_that_asked_leaves_memory_with_its_end() {
    let fixture = Fixture::new("legacy", &[tool("ask")]);
    let world = World::with(&fixture).await;
    let asks = delegated(world.call("mcp_fix_ask", json!({})).await.unwrap());
    let tool = world.pinned("mcp_fix_ask").await;
    let (input, context) = (Json::from(json!({})), world.context());
    let answers = [answer(&asks.questions[0].key, Action::Decline, None)];
    let ended = world
        .source
        .resume(&tool, &input, &asks.task, &answers, &context)
        .await;
    assert!(ended.unwrap().output().is_some());
    let again = world
        .source
        .resume(&tool, &input, &asks.task, &[], &context)
        .await;
    assert_eq!(again.unwrap_err().code, ErrorCode::Interrupted, "nothing is kept");
}

#[tokio::test]
async fn what_needs_no_person_is_answered_at_once() {
    let fixture = Fixture::new("modern", &[tool("roots")]);
    let world = World::with(&fixture).await;
    let output = world.output("mcp_fix_roots", json!({})).await;
    assert_eq!(output, json!("{\"roots\":[]}"));
}

#[tokio::test]
async fn a_task_that_asks_for_folders_is_answered_and_stays_the_same_task() {
    let fixture = Fixture::new("modern", &[tool("roots_task")]);
    let world = World::with(&fixture).await;
    let begun = delegated(world.call("mcp_fix_roots_task", json!({})).await.unwrap());
    let tool = world.pinned("mcp_fix_roots_task").await;
    let (input, context) = (Json::from(json!({})), world.context());
    let look = || world.source.resume(&tool, &input, &begun.task, &[], &context);
    let looked = delegated(look().await.unwrap());
    assert_eq!(looked.task, begun.task, "a look gives the same task");
    assert!(looked.questions.is_empty(), "nobody is asked: {looked:?}");
    let told = look().await.unwrap().output().unwrap().to_value();
    let told: serde_json::Value = serde_json::from_str(told.as_str().unwrap()).unwrap();
    assert_eq!(told, json!({"folders": {"roots": []}}));
}

#[tokio::test]
async fn a_server_that_wants_to_be_asked_again_is_asked_with_its_last_state() {
    let fixture = Fixture::new("modern", &[tool("later")]);
    let world = World::with(&fixture).await;
    let begun = delegated(world.call("mcp_fix_later", json!({})).await.unwrap());
    let tool = world.pinned("mcp_fix_later").await;
    let (input, context) = (Json::from(json!({})), world.context());
    let look = || world.source.resume(&tool, &input, &begun.task, &[], &context);
    for seen in ["1", "2"] {
        assert_eq!(
            delegated(look().await.unwrap()).task,
            begun.task,
            "a look gives the same task"
        );
        assert_eq!(fixture.wrote("later").await, seen);
    }
    assert_eq!(
        look().await.unwrap().output().unwrap().to_value(),
        json!("at last")
    );
}

#[tokio::test]
async fn a_task_that_its_server_has_lost_is_interrupted() {
    let fixture = Fixture::new("modern", &[tool("task")]);
    let world = World::with(&fixture).await;
    let begun = delegated(world.call("mcp_fix_task", json!({})).await.unwrap());
    let tool = world.pinned("mcp_fix_task").await;
    let (input, context) = (Json::from(json!({})), world.context());
    fixture.write("task-lost", "");
    let lost = world
        .source
        .resume(&tool, &input, &begun.task, &[], &context)
        .await
        .unwrap_err();
    assert_eq!(lost.code, ErrorCode::Interrupted);
    assert!(lost.message.contains("no such task"), "{lost:?}");
}

#[tokio::test]
async fn a_question_is_open_as_long_as_the_server_is_configured() {
    for era in ["legacy", "modern"] {
        let fixture = Fixture::new(era, &[tool("ask")]);
        let world = World::new(settings());
        let mut config = fixture.config();
        config["questionTimeout"] = 90.into();
        world.put("fix", &config).await;
        world.ready("fix").await;
        let asks = delegated(world.call("mcp_fix_ask", json!({})).await.unwrap());
        assert_eq!(asks.questions[0].timeout, Some(Duration::from_secs(90)));
    }
}
