use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_engine::clock::Clock;
use toolgate_engine::feed::Scope;
use toolgate_engine::intake::{Answer, Post};
use toolgate_engine::outbox::Outbox;
use toolgate_engine::store::{ProjectRecord, RunFilter, RunRecord, Store};
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_engine::{Parts, Settings};
use toolgate_kernel::agent::{ModelName, ModelSpec, Provider};
use toolgate_kernel::event::{Event, Seq};
use toolgate_kernel::id::{MessageId, NodeId, ProjectId, SpaceId};
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{ClientToolLimits, Conflict};
use toolgate_store::MemoryStore;
use toolgate_testkit::held_clock::HeldClock;
use toolgate_testkit::scripted_model::{ScriptedModel, call, last_results, last_words, text};
use uuid::Uuid;

use super::*;
use crate::Toolkit;
use crate::knowledge::Library;
use crate::notify::{Channels, Deliveries};

/// Engines on one store, each with its planner.
struct World {
    nodes: Vec<(Engine, Planner)>,
    store: Arc<MemoryStore>,
    clock: Arc<HeldClock>,
    project: ProjectId,
    stop: CancellationToken,
}

impl World {
    async fn with(count: u128) -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(HeldClock::new());
        let stop = CancellationToken::new();
        let project = ProjectId::new(Uuid::from_u128(7));
        let record = ProjectRecord {
            id: project,
            name: "test".into(),
            jwt_secret: None,
            jwks_url: None,
            created: Time(0),
        };
        store.put_project(record).await.unwrap();
        let nodes = (1..=count)
            .map(|node| node_on(&store, &clock, node, &stop))
            .collect();
        let world = Self {
            nodes,
            store,
            clock,
            project,
            stop,
        };
        let tool =
            |name: &str| json!({"name": name, "executionType": "prebuilt", "execution": {"action": name}});
        let tools: Vec<Value> = ["createPlan", "getPlan", "cancelPlan"].map(tool).into();
        for name in ["default", "other"] {
            let config = json!({"model": {"provider": "demo"}, "tools": tools});
            let name = name.parse().unwrap();
            world.nodes[0]
                .0
                .put_agent(project, &name, config.into())
                .await
                .unwrap();
        }
        world
    }

    /// Lets an agent call a tool, and gives the output (or the error) and the space.
    async fn call(&self, agent: &str, tool: &str, input: Value) -> (Value, SpaceId) {
        let engine = &self.nodes[0].0;
        let message = Message {
            message_id: MessageId::new(Uuid::now_v7()),
            from: None,
            parts: vec![Part::Text {
                text: format!("{tool} {input}"),
            }],
            metadata: None,
        };
        let posted = engine.post(Post {
            makes_space: false,
            categories: None,
            history: Vec::new(),
            project: self.project,
            space: None,
            message,
            answer: Answer::Agent(agent.parse().unwrap()),
            client_tools: Vec::new(),
            idempotency: None,
        });
        let posted = posted.await.unwrap();
        let mut following = engine
            .subscribe(Scope::Run(posted.run_id.unwrap()), Seq(0))
            .await
            .unwrap();
        let mut told = Value::Null;
        while let Ok(batch) = following.next().await {
            for (_, event) in batch.placed() {
                match event {
                    Event::ToolOutputAvailable(e) => told = e.output.as_ref().unwrap().to_value(),
                    Event::ToolOutputError(e) => told = json!(e.error_text),
                    _ => {}
                }
            }
        }
        (told, posted.space_id)
    }

    /// The runs of a space that plans started.
    async fn planned(&self, space: SpaceId) -> Vec<RunRecord> {
        let filter = RunFilter {
            space: Some(space),
            limit: 100,
            ..RunFilter::default()
        };
        let mut runs = self.store.runs(self.project, filter).await.unwrap();
        // The oldest is the one that made the plan.
        runs.pop();
        runs
    }

    /// Lets every node look at once.
    async fn look(&self) {
        let looks = self.nodes.iter().map(|(_, planner)| planner.start_due());
        for look in futures_util::future::join_all(looks).await {
            look.unwrap();
        }
    }

    fn clock_now(&self) -> Time {
        self.clock.now()
    }

    fn wait(&self, span: Duration) {
        self.clock.jump(span.as_millis() as i64);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn node_on(
    store: &Arc<MemoryStore>,
    clock: &Arc<HeldClock>,
    node: u128,
    stop: &CancellationToken,
) -> (Engine, Planner) {
    let records: Arc<dyn Records> = store.clone();
    let tools = Toolkit::standard(crate::Parts {
        store: store.clone(),
        records: records.clone(),
        workspace: Workspace::new(records.clone(), WorkspaceLimits::default()),
        knowledge: Arc::new(Library::new(records.clone(), None)),
        deliveries: Arc::new(Deliveries::new(
            Arc::new(Outbox::new(records.clone(), clock.clone())),
            clock.clone(),
            Channels::default(),
        )),
        world: crate::World::default(),
    });
    let model = ScriptedModel::new(|ask| match (last_results(ask), last_words(ask).split_once(' ')) {
        (None, Some((tool, input))) if input.starts_with('{') => vec![call(tool, input)],
        _ => vec![text("done")],
    });
    let parts = Parts {
        store: store.clone(),
        model,
        tools: Arc::new(tools),
        clock: clock.clone(),
    };
    let settings = Settings {
        node: NodeId::new(Uuid::from_u128(node)),
        default_model: ModelSpec {
            name: ModelName {
                provider: Provider::Demo,
                name: "demo".into(),
            },
            base_url: None,
            api_key: None,
            temperature: None,
            top_p: None,
            max_output_tokens: None,
            reasoning_tokens: None,
        },
        runs_active_max: 100,
        parallel_calls: 8,
        reader_backlog: 1_000,
        drain: Duration::from_secs(1),
        node_lease: Duration::from_secs(15),
        client_tools: ClientToolLimits::default(),
        conflict: Conflict::default(),
        always_evict: false,
    };
    let engine = Engine::new(parts, settings);
    let (driven, stop) = (engine.clone(), stop.clone());
    tokio::spawn(async move { driven.drive(stop).await });
    (engine.clone(), Planner::new(engine, records))
}

#[tokio::test(start_paused = true)]
async fn two_nodes_start_a_plan_once() {
    let world = World::with(2).await;
    let at = Time(world.clock_now().0 + 60_000);
    let (plan, space) = world
        .call("default", "createPlan", json!({"message": "now", "at": at}))
        .await;
    assert_eq!(plan["nextAt"], json!(at), "{plan}");
    world.look().await;
    assert!(world.planned(space).await.is_empty(), "it is not due yet");
    world.wait(Duration::from_secs(61));
    for _ in 0..3 {
        world.look().await;
    }
    assert_eq!(world.planned(space).await.len(), 1);
    let (seen, _) = world.call("default", "getPlan", json!({"id": plan["id"]})).await;
    assert_eq!((&seen["status"], &seen["runs"]), (&json!("done"), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_the_plan_moved_on_starts_nothing_twice() {
    let world = World::with(1).await;
    let at = world.clock_now();
    let (_, space) = world
        .call("default", "createPlan", json!({"message": "now", "at": at}))
        .await;
    let due = world
        .store
        .due_records(KIND, world.clock_now(), 10)
        .await
        .unwrap();
    let (shelf, record) = due.into_iter().next().expect("a plan");
    // The same record seen twice is what a crash between the two writes leaves behind.
    let planner = &world.nodes[0].1;
    planner.start(shelf, record.clone()).await.unwrap();
    planner.start(shelf, record).await.unwrap();
    assert_eq!(world.planned(space).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_interval_that_was_missed_for_days_runs_once_and_goes_on_in_step() {
    let world = World::with(2).await;
    let (plan, space) = world
        .call(
            "default",
            "createPlan",
            json!({"message": "tick", "everySeconds": 3600}),
        )
        .await;
    let first: Time = serde_json::from_value(plan["nextAt"].clone()).unwrap();
    world.wait(Duration::from_secs(3 * 24 * 3600));
    world.look().await;
    assert_eq!(world.planned(space).await.len(), 1);
    let (seen, _) = world.call("default", "getPlan", json!({"id": plan["id"]})).await;
    let next: Time = serde_json::from_value(seen["nextAt"].clone()).unwrap();
    assert!(
        next > world.clock_now() && next.since(first).as_secs().is_multiple_of(3600),
        "{seen}"
    );
    world.wait(Duration::from_secs(3601));
    world.look().await;
    assert_eq!(world.planned(space).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cron_plan_that_was_missed_for_days_runs_once_and_goes_on_in_step() {
    let world = World::with(2).await;
    let input = json!({"message": "report", "cron": "0 9 * * *", "timeZone": "Europe/Berlin"});
    let (plan, space) = world.call("default", "createPlan", input).await;
    for runs in 1..=3 {
        world.wait(Duration::from_secs(5 * 24 * 3600));
        for _ in 0..2 {
            world.look().await;
        }
        assert_eq!(world.planned(space).await.len(), runs);
        let (seen, _) = world.call("default", "getPlan", json!({"id": plan["id"]})).await;
        let next: Time = serde_json::from_value(seen["nextAt"].clone()).unwrap();
        let ahead = next.since(world.clock_now());
        // Nine o'clock in Berlin, wherever summer time stands.
        let hour = next.0.rem_euclid(24 * 3_600_000) / 3_600_000;
        assert!(
            next > world.clock_now() && ahead <= Duration::from_secs(24 * 3600) && [7, 8].contains(&hour),
            "{seen}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn plans_are_listed_cancelled_and_nobody_elses() {
    let world = World::with(1).await;
    let input = json!({"message": "report", "cron": "0 9 * * 1-5", "timeZone": "Europe/Berlin"});
    let (plan, space) = world.call("default", "createPlan", input).await;
    let (of_other, _) = world.call("other", "getPlan", json!({})).await;
    assert_eq!(of_other["totalPlans"], json!(0));
    let (refused, _) = world.call("other", "cancelPlan", json!({"id": plan["id"]})).await;
    assert!(
        refused.as_str().unwrap().contains("you have no plan"),
        "{refused}"
    );
    let (own, _) = world.call("default", "getPlan", json!({})).await;
    assert_eq!(own["plans"], json!([plan]));
    for _ in 0..2 {
        // Also when a crash makes the call run again.
        let (told, _) = world
            .call("default", "cancelPlan", json!({"id": plan["id"]}))
            .await;
        assert_eq!(told["cancelled"]["status"], "cancelled", "{told}");
    }
    world.wait(Duration::from_secs(7 * 24 * 3600));
    world.look().await;
    assert!(world.planned(space).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_can_never_come_is_refused_in_words() {
    let world = World::with(1).await;
    for (input, words) in [
        (json!({"message": "x"}), "give one of"),
        (json!({"message": "x", "cron": "0 0 30 2 *"}), "never comes"),
        (
            json!({"message": "x", "cron": "0 0 * * *", "timeZone": "Mars/Base"}),
            "no time zone",
        ),
        (json!({"message": "x", "everySeconds": 5}), "60"),
    ] {
        let (told, _) = world.call("default", "createPlan", input).await;
        assert!(told.as_str().is_some_and(|told| told.contains(words)), "{told}");
    }
}
