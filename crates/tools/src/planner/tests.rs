use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_engine::clock::Clock;
use toolgate_engine::feed::{BacklogLimits, Scope};
use toolgate_engine::intake::{Answer, Charged, Post, Posted, UnderWay};
use toolgate_engine::outbox::Outbox;
use toolgate_engine::store::{Directory, LogRange, ProjectRecord, RunFilter, RunRecord, Runs};
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_engine::{Parts, Settings};
use toolgate_fair::Shares;

use toolgate_kernel::agent::Starter;
use toolgate_kernel::event::{Event, Seq, Status};
use toolgate_kernel::id::{MessageId, NodeId, ProjectId, SpaceId};
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use toolgate_testkit::held_clock::HeldClock;
use toolgate_testkit::project_settings::project_settings;
use toolgate_testkit::scripted_model::{ScriptedModel, call, last_results, last_words, text};
use uuid::Uuid;

use super::*;
use crate::Toolkit;
use crate::knowledge::Library;
use crate::notify::{Channels, Deliveries};
use crate::readable::Reader;

const LIMITS: PlanLimits = PlanLimits {
    ahead_min: Duration::from_secs(60),
    starts_per_hour: 3,
    wait_max: Duration::from_secs(3600),
};

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
            identity_provider: None,
            settings: None,
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
        let mut tools: Vec<Value> = ["createPlan", "getPlan", "cancelPlan"].map(tool).into();
        tools.push(
            json!({"name": "wait", "description": "Waits.", "executionType": "waiting",
            "execution": {"signal": true}}),
        );
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
        let posted = self.post(None, agent, format!("{tool} {input}")).await;
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

    /// Posts a message in a space, or in a new one.
    async fn post(&self, space: Option<SpaceId>, agent: &str, text: String) -> Posted {
        let message = Message::new(MessageId::new(Uuid::now_v7()), None, vec![Part::Text { text }]);
        let posted = self.nodes[0].0.post(Post {
            user_token: None,
            call: None,
            starter: Starter::Backend,
            charged: Charged::Nobody,
            makes_space: false,
            under_way: UnderWay::Join,
            categories: None,
            history: Vec::new(),
            told: Vec::new(),
            project: self.project,
            space,
            message,
            answer: Answer::Agent(agent.parse().unwrap()),
            client_tools: Vec::new(),
            idempotency: None,
        });
        posted.await.unwrap()
    }

    /// The runs of a space that plans started.
    async fn planned(&self, space: SpaceId) -> Vec<RunRecord> {
        let mut runs = self.runs(space).await;
        // The oldest is the one that made the plan.
        runs.pop();
        runs
    }

    /// The newest run of a space, once it waits.
    async fn waiting(&self, space: SpaceId) -> RunRecord {
        loop {
            let run = self.runs(space).await.swap_remove(0);
            if run.status == Status::WaitingTime || run.status == Status::WaitingTool {
                return run;
            }
            tokio::task::yield_now().await;
        }
    }

    /// The runs of a space, newest first.
    async fn runs(&self, space: SpaceId) -> Vec<RunRecord> {
        let filter = RunFilter {
            space: Some(space),
            limit: 100,
            ..RunFilter::default()
        };
        self.store.runs(self.project, filter).await.unwrap().runs
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

    /// A minute into the next hour.
    fn until_a_new_hour(&self) {
        const HOUR_MS: i64 = 3_600_000;
        let past = self.clock_now().0.rem_euclid(HOUR_MS);
        self.clock.jump(HOUR_MS - past + 61_000);
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
    let reader = Arc::new(Reader::here());
    let egress = toolgate_egress::Egress::new();
    let tools = Toolkit::standard(crate::Parts {
        reader: reader.clone(),
        store: store.clone(),
        records: records.clone(),
        workspace: Workspace::new(records.clone(), WorkspaceLimits::default()),
        knowledge: Arc::new(Library::new(records.clone(), reader)),
        deliveries: Arc::new(Deliveries::new(
            Arc::new(Outbox::new(records.clone(), clock.clone())),
            Channels::default(),
            &egress,
        )),
        plans: LIMITS,
        egress,
        outbound: Arc::new(crate::OutboundSettings::default()),
    });
    let model = ScriptedModel::new(|ask| {
        // The line before says that a plan speaks.
        let words = last_words(ask);
        match (
            last_results(ask),
            words.lines().last().and_then(|line| line.split_once(' ')),
        ) {
            (None, Some((tool, input))) if input.starts_with('{') => vec![call(tool, input)],
            _ => vec![text("done")],
        }
    });
    let parts = Parts {
        store: store.clone(),
        model,
        tools: tools.sources(),
        clock: clock.clone(),
        bus: Arc::new(toolgate_bus::InProcessBus::default()),
    };
    let settings = Settings {
        node: NodeId::new(Uuid::from_u128(node)),
        runs_active: Shares::same(1_000),
        model_calls: Shares::same(1_000),
        parallel_calls: 8,
        reader_backlog: BacklogLimits {
            bytes: 16 << 20,
            stall: Duration::from_secs(30),
        },
        history_bytes_max: 1 << 20,
        quotas: toolgate_engine::quota::QuotaLimits::UNLIMITED,
        drain: Duration::from_secs(1),
        node_lease: Duration::from_secs(15),
        projects: project_settings(),
        always_evict: false,
    };
    let engine = Engine::new(parts, settings);
    let (driven, stop) = (engine.clone(), stop.clone());
    tokio::spawn(async move { driven.drive(stop).await });
    (engine.clone(), Planner::new(engine, records, LIMITS))
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
    let at = world.clock_now().after(Duration::from_secs(60));
    let (_, space) = world
        .call("default", "createPlan", json!({"message": "now", "at": at}))
        .await;
    world.wait(Duration::from_secs(61));
    let due = world
        .store
        .due_records(KIND, world.clock_now(), 10)
        .await
        .unwrap();
    let due = due.into_iter().next().expect("a plan");
    // The same record seen twice is what a crash between the two writes leaves behind.
    let planner = &world.nodes[0].1;
    planner.perform(&due).await.unwrap();
    planner.perform(&due).await.unwrap();
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
    assert_eq!(plan["schedule"]["cron"]["timeZone"], "Europe/Berlin", "{plan}");
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
        (json!({"message": "x"}), "exactly one of"),
        (json!({"message": "x", "cron": "0 0 30 2 *"}), "never comes"),
        (
            json!({"message": "x", "cron": format!("{} * * * *", vec!["0"; 500].join(","))}),
            "at most 512 bytes",
        ),
        (
            json!({"message": "x", "cron": "0 0 * * *", "timeZone": "Mars/Base"}),
            "no time zone",
        ),
        (json!({"message": "x", "everySeconds": 5}), "60"),
        (json!({"message": "x", "at": "2020-01-01T00:00:00Z"}), "is over"),
        (
            json!({"message": "x", "at": world.clock_now().after(Duration::from_secs(59))}),
            "60 seconds ahead",
        ),
    ] {
        let (told, _) = world.call("default", "createPlan", input).await;
        assert!(told.as_str().is_some_and(|told| told.contains(words)), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_due_plan_waits_for_the_run_under_way_up_to_a_limit() {
    let world = World::with(1).await;
    let input = json!({"message": "wait {}", "everySeconds": 60});
    let (_, space) = world.call("default", "createPlan", input).await;
    world.wait(Duration::from_secs(61));
    world.look().await;
    let first = world.waiting(space).await;
    for _ in 0..3 {
        world.wait(Duration::from_secs(61));
        world.look().await;
    }
    assert_eq!(
        world.planned(space).await,
        std::slice::from_ref(&first),
        "it is left alone"
    );
    let (told, _) = world.call("default", "getPlan", json!({})).await;
    assert_eq!(told["plans"][0]["status"], "active", "{told}");
    let reason = told["plans"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("a run under way"), "{reason}");

    // As soon as it is over, the plan runs: once, however many times it was due.
    let engine = &world.nodes[0].0;
    engine.cancel(first.id).await.unwrap();
    world.wait(Duration::from_secs(31));
    world.look().await;
    let second = world.waiting(space).await;
    assert_ne!(second.id, first.id);
    assert_eq!(world.planned(space).await.len(), 2);

    // Beyond the limit it joins the run, which is told that a plan speaks.
    world.wait(Duration::from_secs(61));
    world.look().await;
    world.wait(LIMITS.wait_max);
    world.look().await;
    assert_eq!(world.planned(space).await.len(), 2);
    let log = engine.run_log(second.id, LogRange::default()).await.unwrap();
    let events: Vec<&Event> = log.entries.iter().flat_map(|entry| &entry.events).collect();
    let superseded = events.iter().any(|event| match event {
        Event::ToolOutputError(e) => e.error_text.as_ref().unwrap().contains("a plan was due"),
        _ => false,
    });
    assert!(superseded, "{events:?}");
    let said = events.iter().filter_map(|event| match event {
        Event::Said(said) => Some(&said.message),
        _ => None,
    });
    let origins: Vec<_> = said.map(|message| message.origin.clone()).collect();
    assert_eq!(origins.len(), 2);
    assert!(origins.iter().all(Option::is_some), "{origins:?}");
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_was_paused_waits_for_the_run_under_way_as_long_as_any() {
    let world = World::with(1).await;
    let input = json!({"message": "wait {}", "everySeconds": 60});
    let (_, space) = world.call("other", "createPlan", input).await;
    world.wait(Duration::from_secs(61));
    world.look().await;
    let first = world.waiting(space).await;
    let (engine, name) = (&world.nodes[0].0, "other".parse().unwrap());
    let config = world.store.agent(world.project, &name, None).await.unwrap();
    let config = config.expect("it was there").config;
    engine.remove_agent(world.project, &name).await.unwrap();
    world.wait(Duration::from_secs(61));
    world.look().await;
    world.wait(LIMITS.wait_max * 2);
    engine.put_agent(world.project, &name, config).await.unwrap();
    let said = world.post(Some(space), "other", "wait {}".into()).await;
    let under_way = world.waiting(space).await;
    assert_eq!(Some(under_way.id), said.run_id);
    assert_ne!(under_way.id, first.id);
    world.wait(RETIRED_PAUSE);
    world.look().await;
    assert_eq!(world.runs(space).await.len(), 3, "the run is left alone");
    let still = world.store.run(under_way.id).await.unwrap().unwrap();
    assert!(!still.status.is_final(), "{still:?}");
    world.wait(LIMITS.wait_max);
    world.look().await;
    let log = engine.run_log(under_way.id, LogRange::default()).await.unwrap();
    let mut events = log.entries.iter().flat_map(|entry| &entry.events);
    let superseded = events.any(|event| match event {
        Event::ToolOutputError(e) => e.error_text.as_ref().unwrap().contains("a plan was due"),
        _ => false,
    });
    assert!(superseded, "it joins after the wait");
}

#[tokio::test(start_paused = true)]
async fn plans_beyond_what_an_hour_may_start_wait_for_the_next_and_say_so() {
    let world = World::with(2).await;
    let mut spaces = Vec::new();
    for _ in 0..LIMITS.starts_per_hour + 2 {
        let input = json!({"message": "now", "everySeconds": 60});
        spaces.push(world.call("default", "createPlan", input).await.1);
    }
    let started = async || {
        let mut started = 0;
        for space in &spaces {
            started += world.planned(*space).await.len();
        }
        started
    };
    world.until_a_new_hour();
    world.look().await;
    world.look().await;
    assert_eq!(started().await, LIMITS.starts_per_hour as usize);
    let (told, _) = world.call("default", "getPlan", json!({})).await;
    let waiting = told["plans"].as_array().unwrap().iter();
    let waiting = waiting.filter(|plan| plan["reason"].as_str().is_some_and(|why| why.contains("an hour")));
    assert_eq!(waiting.count(), 2);
    // Others are not held up.
    let input = json!({"message": "now", "everySeconds": 60});
    let (_, space) = world.call("other", "createPlan", input).await;
    world.wait(Duration::from_secs(61));
    world.look().await;
    assert_eq!(world.planned(space).await.len(), 1);
    world.until_a_new_hour();
    world.look().await;
    assert!(started().await > LIMITS.starts_per_hour as usize);
}

#[tokio::test(start_paused = true)]
async fn the_plans_of_a_retired_agent_are_paused_and_go_on_when_it_is_back() {
    let world = World::with(1).await;
    let input = json!({"message": "now", "everySeconds": 600});
    let (_, space) = world.call("other", "createPlan", input).await;
    let (engine, name) = (&world.nodes[0].0, "other".parse().unwrap());
    let config = world.store.agent(world.project, &name, None).await.unwrap();
    let config = config.expect("it was there").config;
    engine.remove_agent(world.project, &name).await.unwrap();
    for _ in 0..3 {
        world.wait(Duration::from_secs(601));
        world.look().await;
    }
    assert!(world.planned(space).await.is_empty());
    let due = world.store.due_records(KIND, Time(i64::MAX), 1).await.unwrap();
    let plan: Plan = due[0].1.body.read().unwrap();
    assert_eq!((plan.status, plan.paused), (PlanStatus::Active, true));
    assert!(plan.reason.unwrap().contains("no agent named other"));

    engine
        .put_agent(world.project, &name, config.clone())
        .await
        .unwrap();
    let (seen, _) = world.call("other", "getPlan", json!({})).await;
    assert_eq!(seen["plans"][0]["status"], "paused", "{seen}");
    world.wait(RETIRED_PAUSE);
    world.look().await;
    assert_eq!(
        world.planned(space).await.len(),
        1,
        "once, for all that it missed"
    );
    let (seen, _) = world.call("other", "getPlan", json!({})).await;
    assert_eq!(seen["plans"][0]["status"], "active", "{seen}");

    engine.purge_agent(world.project, &name).await.unwrap();
    engine.put_agent(world.project, &name, config).await.unwrap();
    world.wait(Duration::from_secs(601));
    world.look().await;
    assert_eq!(world.planned(space).await.len(), 1);
    let (seen, _) = world.call("other", "getPlan", json!({})).await;
    assert_eq!(seen["totalPlans"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_cannot_be_read_is_dead_lettered_and_holds_up_no_other() {
    let world = World::with(1).await;
    let input = json!({"message": "now", "everySeconds": 60});
    let (_, space) = world.call("default", "createPlan", input).await;
    let due = world.store.due_records(KIND, Time(i64::MAX), 1).await.unwrap();
    let broken = NewRecord {
        id: "broken".into(),
        body: json!({"message": 7}).into(),
        text: None,
        data: None,
        due: Some(Time(0)),
    };
    let (set, _) = due[0];
    let change = vec![Change::Put(broken)];
    world
        .store
        .change_records(set, vec![], change, Time(1))
        .await
        .unwrap();
    world.wait(Duration::from_secs(61));
    world.look().await;
    assert_eq!(world.planned(space).await.len(), 1);
    let kept = world.store.record(set, "broken").await.unwrap();
    assert_eq!(kept.expect("kept").due, None);
    let (told, _) = world.call("default", "getPlan", json!({})).await;
    assert_eq!(told["totalPlans"], json!(1), "{told}");
}
