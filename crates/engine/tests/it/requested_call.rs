//! Calls that somebody asks for without a model: runs of one step, through the same pipeline.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_engine::intake::{Decision, Post, PostError, Posted, RequestedCall, Submission};
use toolgate_kernel::agent::Starter;
use toolgate_kernel::call::{CallState, Outcome};
use toolgate_kernel::event::{EndReason, Event, Status};
use toolgate_kernel::id::{EntityId, NodeId, SpaceId};
use toolgate_kernel::run::RunState;
use toolgate_kernel::tool::Decider;
use uuid::Uuid;

use crate::world::{Setup, World, agent, calls_in};

fn request(world: &World, space: Option<SpaceId>, tool: &str, input: Value) -> Post {
    let mut post = world.post_to(space, "");
    post.message.parts.clear();
    post.call = Some(RequestedCall {
        tool: tool.parse().unwrap(),
        input: input.into(),
    });
    post
}

async fn call(world: &World, space: Option<SpaceId>, tool: &str, input: Value) -> Posted {
    let post = request(world, space, tool, input);
    world.engine.post(post).await.unwrap()
}

/// How the call of an ended run came out.
async fn outcome(world: &World, posted: &Posted) -> Result<Value, String> {
    let run = posted.run_id.unwrap();
    let end = world.finish(run).await;
    let state = world
        .engine
        .run_state::<toolgate_engine::store::StoreError>(run, &Decider::Backend, |_| Ok(()))
        .await
        .unwrap();
    let [call] = state.calls() else {
        panic!("not one call: {:?}", RunState::calls(&state))
    };
    match &call.state {
        CallState::Settled(settled) => match &settled.outcome {
            Outcome::Output(output) => {
                assert_eq!((end.status, end.reason), (Status::Completed, EndReason::Stop));
                Ok(output.to_value())
            }
            Outcome::Error { code, message } => {
                assert_eq!(end.reason, EndReason::ToolError);
                assert_eq!(end.status, Status::Failed);
                assert_eq!(end.error, Some(format!("{}: {message}", code.as_str())));
                Err(code.as_str().to_owned())
            }
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_tool_is_called_and_no_model_is_asked() {
    let world = World::new().await;
    for (tool, expected) in [
        ("fixed", Ok(json!({"fixed": true}))),
        ("mirror", Ok(json!({"a": 1}))),
        ("echo", Ok(json!({"a": 1}))),
        ("fail", Err("EXECUTION_FAILED".to_owned())),
        ("break", Err("EXECUTION_FAILED".to_owned())),
        ("hang", Err("TIMEOUT".to_owned())),
    ] {
        let posted = call(&world, None, tool, json!({"a": 1})).await;
        assert_eq!(outcome(&world, &posted).await, expected, "{tool}");
        let row = world.store.run(posted.run_id.unwrap()).await.unwrap().unwrap();
        assert_eq!(row.tool.unwrap().as_str(), tool);
    }
    assert!(world.model.asked().is_empty());
    world.rest().await;
}

#[tokio::test(start_paused = true)]
async fn people_clients_and_child_runs_take_their_part() {
    let world = World::new().await;
    let posted = call(&world, None, "guarded_ask", json!({})).await;
    let run = posted.run_id.unwrap();
    let events = world.until_status(run, Status::WaitingApproval).await;
    let id = calls_in(&events)[0];
    world.rest().await;
    let decided = world
        .engine
        .decide(id.approval(), Decision::Approve(None), Decider::Backend)
        .await;
    decided.unwrap();
    world.until_status(run, Status::WaitingTool).await;
    let given = Submission::Output(json!({"seen": true}).into());
    world.engine.submit(id, given, None).await.unwrap();
    assert_eq!(outcome(&world, &posted).await, Ok(json!({"seen": true})));
    assert!(world.model.asked().is_empty());

    let posted = call(&world, None, "helper", json!({"prompt": "hello"})).await;
    assert_eq!(outcome(&world, &posted).await, Ok(json!("you said hello")));
    assert_eq!(world.model.asked().len(), 1, "the child run has a model");
}

#[tokio::test(start_paused = true)]
async fn an_action_of_the_gateway_needs_no_agent_that_has_it() {
    let world = World::new().await;
    let posted = call(&world, None, "context", json!({})).await;
    let seen = outcome(&world, &posted).await.unwrap();
    assert_eq!(seen["agent"], "default");
    assert!(seen["tools"].as_array().unwrap().contains(&json!("context")));
    let unknown = request(&world, None, "nothing", json!({}));
    match world.engine.post(unknown).await {
        Err(PostError::NoTool(words)) => assert!(words.contains("mirror"), "{words}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_leave_nothing_behind() {
    let world = World::new().await;
    let wrong = request(&world, None, "guarded", json!({"to": 7}));
    let told = world.engine.post(wrong).await;
    assert!(matches!(told, Err(PostError::Arguments(_))), "{told:?}");
    let runs = world
        .engine
        .runs(world.project, Default::default())
        .await
        .unwrap();
    assert!(runs.runs.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_user_calls_what_it_is_shown_and_nothing_else() {
    let mut config = agent();
    config["access"] = json!("public");
    let shown = json!({
        "name": "open_mirror", "description": "for tests", "executionType": "basic", "visibility": "public",
        "parameters": {"type": "object"}, "execution": {"mode": "pass-through"},
    });
    config["tools"].as_array_mut().unwrap().push(shown);
    let world = World::with(Setup {
        agent: config,
        ..Setup::default()
    })
    .await;
    let as_user = |tool: &str| {
        let mut post = request(&world, None, tool, json!({"a": 1}));
        post.starter = Starter::User {
            groups: Arc::default(),
        };
        post.message.from = Some(EntityId::new(Uuid::from_u128(4)));
        post
    };
    let posted = world.engine.post(as_user("open_mirror")).await.unwrap();
    assert_eq!(outcome(&world, &posted).await, Ok(json!({"a": 1})));
    world.engine.post(as_user("ask")).await.unwrap();
    for hidden in ["mirror", "echo", "guarded", "context", "nothing"] {
        let told = world.engine.post(as_user(hidden)).await;
        assert!(matches!(told, Err(PostError::NoTool(_))), "{hidden}: {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_stands_beside_the_agents_run_and_no_model_reads_of_it() {
    let world = World::new().await;
    let first = world.say("call:ask").await;
    let (run, space) = (first.run_id.unwrap(), first.space_id);
    let asked = calls_in(&world.until_status(run, Status::WaitingTool).await)[0];
    let waits = call(&world, Some(space), "ask", json!({})).await;
    world
        .until_status(waits.run_id.unwrap(), Status::WaitingTool)
        .await;
    let posted = call(&world, Some(space), "mirror", json!({"unsaid": 1})).await;
    outcome(&world, &posted).await.unwrap();
    // A message joins the agent's run, not the call that waits.
    let joined = world.say_in(space, "hello").await;
    assert_eq!(joined.run_id, Some(run));
    assert_eq!(world.answer(run).await, "you said hello");
    let next = world.say_in(space, "and now").await;
    assert_eq!(world.answer(next.run_id.unwrap()).await, "you said and now");
    let read = format!("{:?}", world.model.asked());
    assert!(read.contains("hello") && !read.contains("unsaid"), "{read}");
    // The call still waits: nobody superseded it.
    let id = calls_in(
        &world
            .until_status(waits.run_id.unwrap(), Status::WaitingTool)
            .await,
    )[0];
    assert_ne!(id, asked);
    let given = Submission::Output(json!({}).into());
    world.engine.submit(id, given, None).await.unwrap();
    assert_eq!(outcome(&world, &waits).await, Ok(json!({})));
}

#[tokio::test(start_paused = true)]
async fn what_one_did_counts_for_prerequisites_of_the_same_person() {
    let mut config = agent();
    let later = json!({
        "name": "later", "description": "for tests", "executionType": "basic",
        "parameters": {"type": "object"}, "execution": {"mode": "pass-through"},
        "prerequisites": [{"tool": "mirror", "scope": "space"}],
    });
    config["tools"].as_array_mut().unwrap().push(later);
    let world = World::with(Setup {
        agent: config,
        ..Setup::default()
    })
    .await;
    let (ada, bob) = (
        EntityId::new(Uuid::from_u128(4)),
        EntityId::new(Uuid::from_u128(5)),
    );
    let space = world.say("hello").await.space_id;
    let calls = async |who: EntityId, tool: &str| {
        let mut post = request(&world, Some(space), tool, json!({}));
        post.message.from = Some(who);
        let posted = world.engine.post(post).await.unwrap();
        outcome(&world, &posted).await
    };
    assert_eq!(calls(ada, "later").await, Err("PREREQUISITES_NOT_MET".into()));
    calls(ada, "mirror").await.unwrap();
    assert_eq!(calls(bob, "later").await, Err("PREREQUISITES_NOT_MET".into()));
    assert_eq!(calls(ada, "later").await, Ok(json!({})));
}

#[tokio::test(start_paused = true)]
async fn a_dead_node_s_call_is_made_again_or_nobody_knows() {
    let is_under_way = |event: &Event| matches!(event, Event::ToolExecuting(_) | Event::StepFinish(_));
    for (tool, expected) in [
        ("slow_safe", Ok(json!({"n": 1}))),
        ("slow", Err("INTERRUPTED".to_owned())),
    ] {
        // Nothing says that it lives.
        let dead = World::idle(Setup::default()).await;
        let posted = call(&dead, None, tool, json!({"n": 1})).await;
        let run = posted.run_id.unwrap();
        dead.until(run, is_under_way).await;
        while dead.tools.calls().is_empty() {
            tokio::task::yield_now().await;
        }
        let world = World::with(Setup {
            store: dead.store.clone(),
            clock: dead.clock.clone(),
            node: NodeId::new(Uuid::from_u128(2)),
            ..Setup::default()
        })
        .await;
        world.tools.gate.add_permits(1);
        assert_eq!(outcome(&world, &posted).await, expected, "{tool}");
        assert!(world.model.asked().is_empty() && dead.model.asked().is_empty());
        world.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_the_same_run() {
    let world = World::new().await;
    let post = || Post {
        idempotency: Some(("once".into(), [1; 32])),
        ..request(&world, None, "echo", json!({}))
    };
    let first = world.engine.post(post()).await.unwrap();
    outcome(&world, &first).await.unwrap();
    let again = world.engine.post(post()).await.unwrap();
    assert!(again.repeated);
    assert_eq!((again.run_id, again.space_id), (first.run_id, first.space_id));
    assert_eq!(world.tools.calls().len(), 1);
    let other = Post {
        idempotency: Some(("once".into(), [2; 32])),
        ..request(&world, None, "echo", json!({"b": 1}))
    };
    assert!(matches!(
        world.engine.post(other).await,
        Err(PostError::KeyReused)
    ));
}
