//! Calls that are made again after a crash, and calls that are made at once.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use toolgate_engine::records::{Change, Listing, NewRecord, Owner, RecordSet};
use toolgate_engine::sources::Sources;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::{CallId, SpaceId};
use toolgate_kernel::time::Time;
use toolgate_tools::knowledge::Library;
use toolgate_tools::notify::Webhook;
use toolgate_tools::readable::Reader;
use toolgate_tools::{Parts, PlanLimits, Toolkit};

use crate::notify::deliveries;
use crate::server::{context, parse};
use crate::world::{World, on_every_store, project};

/// A node with tools of its own, and a space to work in.
struct Node {
    toolkit: Sources,
    space: SpaceId,
}

impl Node {
    async fn on(world: &World) -> Self {
        Self::at(world, world.space().await)
    }

    fn at(world: &World, space: SpaceId) -> Self {
        let hook = Webhook {
            url: "http://127.0.0.1:1".parse().unwrap(),
            secret: None,
        };
        let reader = Arc::new(Reader::here());
        let toolkit = Toolkit::standard(Parts {
            store: world.store.clone(),
            records: world.records.clone(),
            workspace: Workspace::new(world.records.clone(), WorkspaceLimits::default()),
            knowledge: Arc::new(Library::new(world.records.clone(), reader.clone())),
            deliveries: Arc::new(deliveries(world, Some(hook), None)),
            reader,
            plans: PlanLimits::default(),
            egress: toolgate_egress::Egress::new(),
            outbound: Arc::new(toolgate_tools::OutboundSettings::default()),
        })
        .sources();
        Self { toolkit, space }
    }

    fn context(&self, number: u32) -> CallContext {
        let context = context();
        let run = context.run;
        CallContext {
            project: project(),
            space: self.space,
            call: CallId { run, number },
            ..context
        }
    }

    /// What comes of the call of this number; the same number again is the same call.
    async fn call(&self, number: u32, tool: &str, input: Value) -> Result<Value, CallFailure> {
        let tool = parse(&self.toolkit, "prebuilt", json!({ "action": tool })).await;
        let called = self
            .toolkit
            .run(&tool, &input.into(), &self.context(number))
            .await?;
        Ok(called.output().expect("these tools end").to_value())
    }

    /// What comes of calls at once; the first has this number.
    async fn calls(&self, first: u32, tool: &str, inputs: Vec<Value>) -> Vec<Result<Value, CallFailure>> {
        let calls = (first..).zip(inputs);
        join_all(calls.map(|(number, input)| self.call(number, tool, input))).await
    }
}

fn goals(count: usize) -> Value {
    json!({"goals": vec![json!({"description": "grow"}); count]})
}

fn succeeded(outcomes: &[Result<Value, CallFailure>]) -> usize {
    for outcome in outcomes {
        if let Err(failure) = outcome {
            assert_eq!(failure.code, ErrorCode::LimitExceeded, "{failure}");
        }
    }
    outcomes.iter().filter(|outcome| outcome.is_ok()).count()
}

on_every_store! {
    async fn goals_and_plans_at_the_limit_are_made_once(world) {
        let node = Node::on(world).await;
        let first = node.call(1, "setGoals", goals(150)).await.unwrap();
        assert_eq!(first["totalGoals"], 150);
        assert_eq!(node.call(1, "setGoals", goals(150)).await.unwrap(), first);
        let plan = |number: u32| json!({"message": format!("water {number}"), "everySeconds": 60});
        for number in 2..102 {
            node.call(number, "createPlan", plan(number)).await.unwrap();
        }
        let last = node.call(101, "createPlan", plan(101)).await.unwrap();
        let told = node.call(200, "getPlan", json!({})).await.unwrap();
        assert_eq!(told["totalPlans"], 100);
        assert!(told["plans"].as_array().unwrap().contains(&last), "{last}");
        let cancel = json!({"id": last["id"]});
        let gone = node.call(201, "cancelPlan", cancel.clone()).await.unwrap();
        assert_eq!(node.call(201, "cancelPlan", cancel.clone()).await.unwrap(), gone);
        // Over is over, whoever says so.
        assert_eq!(node.call(202, "cancelPlan", cancel).await.unwrap(), gone);
        let unknown = node.call(203, "cancelPlan", json!({"id": "plan_none"})).await;
        assert_eq!(unknown.unwrap_err().code, ErrorCode::NotFound);
    }

    async fn the_last_memory_that_fits_is_kept_once(world) {
        let node = Node::on(world).await;
        let set = RecordSet { project: project(), owner: Owner::Entity(context().entity), kind: "memory" };
        let memory = |n: usize| Change::Put(NewRecord {
            id: format!("old.mem_{n}"), body: json!({"topic": "old", "content": "x"}).into(), text: None, data: None, due: None,
        });
        world.records.change_records(set, vec![], (1..1000).map(memory).collect(), Time(0)).await.unwrap();
        let input = json!({"topic": "new", "content": "the last"});
        let first = node.call(1, "setMemory", input.clone()).await.unwrap();
        assert_eq!(node.call(1, "setMemory", input.clone()).await.unwrap(), first);
        assert_eq!(node.call(2, "setMemory", input).await.unwrap_err().code, ErrorCode::LimitExceeded);
    }

    async fn what_others_wrote_meanwhile_stays(world) {
        let node = Node::on(world).await;
        let write = |content: &str| json!({"path": "a", "content": content});
        let first = node.call(1, "vfs_write", write("old")).await.unwrap();
        node.call(2, "vfs_write", write("new")).await.unwrap();
        assert_eq!(node.call(1, "vfs_write", write("old")).await.unwrap(), first);
        let read = node.call(3, "vfs_read", json!({"path": "a"})).await.unwrap();
        assert_eq!((&read["content"], &read["version"]), (&json!("new"), &json!(2)));
        let gone = node.call(4, "vfs_delete", json!({"path": "a"})).await.unwrap();
        node.call(5, "vfs_write", write("newer")).await.unwrap();
        assert_eq!(node.call(4, "vfs_delete", json!({"path": "a"})).await.unwrap(), gone);
        assert_eq!(node.call(6, "vfs_read", json!({"path": "a"})).await.unwrap()["content"], "newer");

        let patch = |value| json!({"metadata": {"mood": value}});
        let first = node.call(7, "updateSpaceMetadata", patch("calm")).await.unwrap();
        node.call(8, "updateSpaceMetadata", patch("loud")).await.unwrap();
        assert_eq!(node.call(7, "updateSpaceMetadata", patch("calm")).await.unwrap(), first);
        let told = node.call(9, "getSpaceContext", json!({})).await.unwrap();
        assert_eq!(told["metadata"]["mood"], "loud");
    }

    async fn a_notification_that_was_delivered_is_not_queued_again(world) {
        let node = Node::on(world).await;
        let input = json!({"title": "Tea is ready", "channels": ["webhook"]});
        let first = node.call(1, "sendNotification", input.clone()).await.unwrap();
        let set = RecordSet { project: project(), owner: Owner::Project, kind: "delivery" };
        let all = || Listing { limit: 10, ..Listing::default() };
        let queued = world.records.list_records(set, all()).await.unwrap();
        assert_eq!(queued.len(), 1);
        let delivered = vec![Change::Remove(queued[0].id.clone())];
        world.records.change_records(set, vec![], delivered, Time(1)).await.unwrap();
        assert_eq!(node.call(1, "sendNotification", input).await.unwrap(), first);
        assert_eq!(world.records.list_records(set, all()).await.unwrap(), []);
    }

    async fn limits_hold_for_calls_at_once_on_several_nodes(world) {
        let node = Node::on(world).await;
        let others = Node::at(world, node.space);
        let (here, there) = tokio::join!(node.call(1, "setGoals", goals(150)), others.call(2, "setGoals", goals(150)));
        assert_eq!(succeeded(&[here, there]), 1);
        assert_eq!(node.call(3, "getGoals", json!({})).await.unwrap()["totalGoals"], 150);
        let plans = (0..110).map(|n| json!({"message": format!("water {n}"), "everySeconds": 60})).collect();
        let plans = node.calls(1000, "createPlan", plans).await;
        assert_eq!(succeeded(&plans), 100);
        assert_eq!(node.call(4, "getPlan", json!({})).await.unwrap()["totalPlans"], 100);
    }

    async fn many_changes_at_once_are_all_made(world) {
        let node = Node::on(world).await;
        let metadata = (0..40).map(|n| json!({"metadata": {format!("m{n}"): n}})).collect();
        let files = (0..40).map(|n| json!({"path": format!("f{n}"), "content": "x"})).collect();
        let (goals, metadata, files) = tokio::join!(
            node.calls(1000, "setGoals", vec![goals(1); 40]),
            node.calls(2000, "updateSpaceMetadata", metadata),
            node.calls(3000, "vfs_write", files),
        );
        for outcome in goals.iter().chain(&metadata).chain(&files) {
            assert!(outcome.is_ok(), "{outcome:?}");
        }
        let told = node.call(1, "getSpaceContext", json!({})).await.unwrap();
        assert_eq!(told["metadata"].as_object().unwrap().len(), 40);
        assert_eq!(node.call(2, "vfs_list", json!({})).await.unwrap()["totalFiles"], 40);
        assert_eq!(node.call(3, "getGoals", json!({})).await.unwrap()["totalGoals"], 40);
    }

    async fn an_agent_with_too_many_goals_is_told_what_helps(world) {
        let node = Node::on(world).await;
        let done = json!({"goals": vec![json!({"description": "done", "isCompleted": true}); 150]});
        node.call(1, "setGoals", done).await.unwrap();
        let refused = node.call(2, "setGoals", goals(60)).await.unwrap_err();
        assert!(refused.code == ErrorCode::LimitExceeded && refused.message.contains("clearCompleted"), "{refused}");
        let mut more = goals(60);
        more["clearCompleted"] = true.into();
        assert_eq!(node.call(3, "setGoals", more).await.unwrap()["totalGoals"], 60);
    }

    async fn an_action_checks_its_input_whatever_the_agent_wrote(world) {
        let node = Node::on(world).await;
        let never = json!({"message": "spin", "everySeconds": 0});
        let refused = node.call(1, "createPlan", never).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::ValidationFailed);
        assert_eq!(node.call(2, "getPlan", json!({})).await.unwrap()["totalPlans"], 0);
    }

    async fn an_agent_that_is_back_has_its_state_and_a_purged_one_has_none(world) {
        let ada = "ada".parse().unwrap();
        world.call("ada", "setGoals", json!({"goals": [{"description": "win"}]})).await.unwrap();
        world.call("ada", "setMemory", json!({"topic": "pin", "content": "1234"})).await.unwrap();
        world.call("ada", "createPlan", json!({"message": "spy", "everySeconds": 60})).await.unwrap();
        world.call("bob", "setMemory", json!({"topic": "pin", "content": "5678"})).await.unwrap();
        let config = world.store.agent(project(), &ada, None).await.unwrap().unwrap().config;
        assert!(world.engine.remove_agent(project(), &ada).await.unwrap());
        world.engine.put_agent(project(), &ada, config.clone()).await.unwrap();
        assert_eq!(world.call("ada", "getGoals", json!({})).await.unwrap()["totalGoals"], 1);
        assert_eq!(world.call("ada", "getMemory", json!({})).await.unwrap()["totalMemories"], 1);
        assert_eq!(world.call("ada", "getPlan", json!({})).await.unwrap()["totalPlans"], 1);
        let purged = world.engine.purge_agent(project(), &ada).await.unwrap().unwrap();
        assert_eq!((purged["goal"], purged["memory"], purged["plan"]), (1, 1, 1));
        world.engine.put_agent(project(), &ada, config).await.unwrap();
        assert_eq!(world.call("ada", "getGoals", json!({})).await.unwrap()["totalGoals"], 0);
        assert_eq!(world.call("ada", "getMemory", json!({})).await.unwrap()["totalMemories"], 0);
        assert_eq!(world.call("ada", "getMemory", json!({"query": "1234 pin"})).await.unwrap()["memories"], json!([]));
        assert_eq!(world.call("ada", "getPlan", json!({})).await.unwrap()["totalPlans"], 0);
        assert_eq!(world.call("bob", "getMemory", json!({})).await.unwrap()["totalMemories"], 1);
    }
}
