//! An engine with everything around it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_bus::InProcessBus;
use toolgate_engine::bus::Bus;
use toolgate_engine::feed::{BacklogLimits, End, Scope};
use toolgate_engine::intake::{Answer, Charged, Post, Posted, UnderWay};
use toolgate_engine::project::Projects;
use toolgate_engine::quota::QuotaLimits;
use toolgate_engine::records::Records;
use toolgate_engine::sources::Sources;
use toolgate_engine::store::{Append, LeaseWrite, LogRange, ProjectRecord, RunWrite, Store};
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_engine::{Engine, Parts, Settings};
use toolgate_fair::Shares;

use toolgate_kernel::agent::Starter;
use toolgate_kernel::event::{Event, RunFinish, Seq, Status};
use toolgate_kernel::id::{CallId, MessageId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use toolgate_testkit::fake_tools::FakeTools;
use toolgate_testkit::held_clock::HeldClock;
use toolgate_testkit::project_settings::project_settings;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, call, last_results, last_words, text};
use toolgate_testkit::task_source::TaskSource;
use uuid::Uuid;

use crate::dice::Dice;
use crate::editions::Editions;
use crate::sampling::Sampler;

/// An engine at work.
pub struct World {
    pub engine: Engine,
    pub store: Arc<dyn Store>,
    pub model: Arc<ScriptedModel>,
    pub tools: Arc<FakeTools>,
    pub tasks: Arc<TaskSource>,
    pub clock: Arc<HeldClock>,
    pub project: ProjectId,
    stop: CancellationToken,
    driving: Option<JoinHandle<()>>,
}

/// How to set it up.
pub struct Setup {
    pub store: Arc<dyn Store>,
    /// What tools and the engine keep beside the log.
    pub records: Arc<dyn Records>,
    pub clock: Arc<HeldClock>,
    pub bus: Arc<dyn Bus>,
    pub node: NodeId,
    pub model: Arc<ScriptedModel>,
    pub tools: Arc<FakeTools>,
    pub editions: Arc<Editions>,
    pub tasks: Arc<TaskSource>,
    /// The configuration of the agents `default` and `helper`, unless they are there.
    pub agent: Value,
    pub always_evict: bool,
    pub runs_active: Shares,
    pub model_calls: Shares,
    pub quotas: QuotaLimits,
    pub projects: Arc<dyn Projects>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            records: Arc::new(MemoryStore::new()),
            clock: Arc::new(HeldClock::new()),
            bus: Arc::new(InProcessBus::default()),
            node: NodeId::new(Uuid::from_u128(1)),
            model: ScriptedModel::new(by_words),
            tools: Arc::new(FakeTools::default()),
            editions: Arc::default(),
            tasks: Arc::default(),
            agent: agent(),
            always_evict: false,
            runs_active: Shares::same(1_000),
            model_calls: Shares::same(1_000),
            quotas: QuotaLimits::UNLIMITED,
            projects: project_settings(),
        }
    }
}

/// The project of every world, so that a second one sees the first one's records.
pub fn project() -> ProjectId {
    ProjectId::new(Uuid::from_u128(7))
}

/// Says what the user's words ask for: `call:NAME=INPUT` calls; after the results it tells them.
pub fn by_words(ask: &toolgate_engine::model::Ask) -> Vec<Say> {
    if let Some(results) = last_results(ask) {
        let told: Vec<&str> = results.iter().map(|result| result.output.as_str()).collect();
        return vec![text(format!("got {}", told.join(" and ")))];
    }
    let words = last_words(ask);
    let calls: Vec<Say> = words
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("call:"))
        .map(|wanted| {
            let (name, input) = wanted.split_once('=').unwrap_or((wanted, "{}"));
            call(name, input)
        })
        .collect();
    if calls.is_empty() {
        vec![text("you said "), text(words)]
    } else {
        calls
    }
}

/// An agent with one tool of each kind.
pub fn agent() -> Value {
    let tool = |name: &str, more: Value| {
        let mut tool = json!({
            "name": name, "description": "for tests", "executionType": "basic",
            "parameters": {"type": "object"},
        });
        tool.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        tool
    };
    json!({
        "instructions": "Do as the test says.",
        "model": {"provider": "demo"},
        "tools": [
            tool("ask", json!({"outputSchema": {"type": "object"}, "timeout": "60s"})),
            tool("show", json!({})),
            tool("fixed", json!({"execution": {"mode": "static", "output": {"fixed": true}}})),
            tool("mirror", json!({"execution": {"mode": "pass-through"}})),
            tool("guarded", json!({"execution": {"mode": "pass-through"}, "approval": "always",
                "parameters": {"type": "object", "properties": {"to": {"type": "string"}}}})),
            tool("guarded_ask", json!({"approval": "always"})),
            tool("echo", json!({"executionType": "prebuilt", "execution": {"action": "echo"}, "retry": "safe"})),
            tool("fail", json!({"executionType": "prebuilt", "execution": {"action": "fail"}})),
            tool("break", json!({"executionType": "prebuilt", "execution": {"action": "panic"}})),
            tool("slow", json!({"executionType": "prebuilt", "execution": {"action": "slow"}})),
            tool("slow_safe", json!({"executionType": "prebuilt", "execution": {"action": "slow"}, "retry": "safe"})),
            tool("hang", json!({"executionType": "prebuilt", "execution": {"action": "hang"}, "timeout": "5s"})),
            tool("wait", json!({"executionType": "waiting", "execution": {"signal": true}})),
            tool("helper", json!({"executionType": "ai-agent", "execution": {"agent": "helper"},
                "parameters": {"type": "object", "properties": {"prompt": {"type": "string"}}}})),
            tool("work", json!({"executionType": "tasks", "execution": {"tool": "work"}})),
            tool("work_safe", json!({"executionType": "tasks", "execution": {"tool": "work_safe"}})),
        ],
    })
}

impl World {
    pub async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Self {
        let world = Self::idle(setup).await;
        world.start()
    }

    /// Everything there, nothing driven.
    pub async fn idle(setup: Setup) -> Self {
        let Setup {
            store,
            records,
            clock,
            bus,
            node,
            model,
            tools,
            editions,
            tasks,
            agent,
            always_evict,
            runs_active,
            model_calls,
            quotas,
            projects,
        } = setup;
        let workspace = Workspace::new(records.clone(), WorkspaceLimits::default());
        let parts = Parts {
            store: store.clone(),
            model: model.clone(),
            tools: Sources::new(records, workspace)
                .with(tools.clone())
                .with(Arc::new(Dice))
                .with(Arc::new(Sampler))
                .with(editions)
                .with(tasks.clone()),
            clock: clock.clone(),
            bus,
        };
        let settings = Settings {
            node,
            runs_active,
            model_calls,
            parallel_calls: 8,
            reader_backlog: BacklogLimits {
                bytes: 16 << 20,
                stall: Duration::from_secs(30),
            },
            history_bytes_max: 1 << 20,
            quotas,
            drain: Duration::from_secs(1),
            node_lease: Duration::from_secs(15),
            projects,
            always_evict,
        };
        let engine = Engine::new(parts, settings);
        let record = ProjectRecord {
            id: project(),
            name: "test".into(),
            jwt_secret: None,
            identity_provider: None,
            settings: None,
            created: Time(0),
        };
        retry(|| store.put_project(record.clone())).await;
        for name in ["default", "helper"] {
            let name = name.parse().unwrap();
            if retry(|| store.agent(project(), &name, None)).await.is_none() {
                retry(|| engine.put_agent(project(), &name, agent.clone().into())).await;
            }
        }
        let stop = CancellationToken::new();
        Self {
            engine,
            store,
            model,
            tools,
            tasks,
            clock,
            project: project(),
            stop,
            driving: None,
        }
    }

    pub fn start(mut self) -> Self {
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.driving = Some(tokio::spawn(async move { engine.drive(stop).await }));
        self
    }

    /// Ends as a process that is told to end.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(driving) = self.driving.take() {
            driving.await.unwrap();
        }
    }

    pub fn post_to(&self, space: Option<SpaceId>, words: &str) -> Post {
        Post {
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
            message: message(words),
            answer: Answer::Default,
            client_tools: Vec::new(),
            idempotency: None,
        }
    }

    pub async fn say(&self, words: &str) -> Posted {
        self.engine.post(self.post_to(None, words)).await.unwrap()
    }

    pub async fn say_in(&self, space: SpaceId, words: &str) -> Posted {
        self.engine.post(self.post_to(Some(space), words)).await.unwrap()
    }

    /// Follows a run until `wanted` says yes, and gives everything up to there.
    pub async fn until(&self, run: RunId, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut seen = Vec::new();
        let mut cursor = Seq(0);
        'again: loop {
            let mut following = retry(|| self.engine.subscribe(Scope::Run(run), cursor)).await;
            loop {
                let after = following.cursor();
                let batch = match following.next().await {
                    Ok(batch) => batch,
                    Err(End::Cut) => continue 'again,
                    Err(End::Finished) => panic!("{run} ended before: {seen:#?}"),
                };
                for (seq, event) in batch.placed().filter(|(seq, _)| *seq > after) {
                    cursor = seq;
                    seen.push(event.clone());
                    if wanted(event) {
                        return seen;
                    }
                }
            }
        }
    }

    pub async fn until_status(&self, run: RunId, status: Status) -> Vec<Event> {
        self.until(
            run,
            |event| matches!(event, Event::RunStatus(e) if e.status == status),
        )
        .await
    }

    pub async fn finish(&self, run: RunId) -> RunFinish {
        let events = self
            .until(run, |event| matches!(event, Event::RunFinish(_)))
            .await;
        let Some(Event::RunFinish(end)) = events.last() else {
            unreachable!()
        };
        end.clone()
    }

    pub fn now(&self) -> Time {
        self.engine.clock().now()
    }

    /// Until no run is in memory.
    pub async fn rest(&self) {
        while self.engine.active_runs() > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Every durable event of a run, as it is stored.
    pub async fn log(&self, run: RunId) -> Vec<(Seq, Event)> {
        let log = retry(|| self.store.run_log(run, LogRange::default())).await;
        assert!(!log.more, "a log of a test fits a page");
        log.entries
            .iter()
            .flat_map(|entry| entry.placed().map(|(seq, event)| (seq, event.clone())))
            .collect()
    }

    /// Adds an event to the log of a run that waits, as another node would.
    pub async fn write(&self, run: RunId, stored: Value) {
        let record = self.store.run(run).await.unwrap().unwrap();
        let raw = serde_json::value::to_raw_value(&stored).unwrap();
        let append = Append {
            space: record.space,
            run: RunWrite::Extend {
                id: run,
                version: record.version,
                epoch: record.epoch,
                status: record.status,
                wake_at: record.wake_at,
                lease: LeaseWrite::Keep,
            },
            events: vec![Event::read(&raw).unwrap()],
            usage: Vec::new(),
            consumption: Vec::new(),
            above: None,
            wakes: Vec::new(),
            time: record.updated,
            idempotency: Vec::new(),
        };
        self.store.append(append).await.unwrap();
    }

    /// What the run said in the end.
    pub async fn answer(&self, run: RunId) -> String {
        self.finish(run).await;
        let log = self.log(run).await;
        let last = log.iter().rev().find_map(|(_, event)| match event {
            Event::TextEnd(e) => Some(e.text.clone()),
            _ => None,
        });
        last.unwrap_or_default()
    }
}

/// Tries until it works: for stores that fail now and then.
pub async fn retry<T, E: std::fmt::Debug, F>(mut act: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, E>>,
{
    const TRIES: usize = 50;
    let mut last = None;
    for _ in 0..TRIES {
        match act().await {
            Ok(value) => return value,
            Err(error) => last = Some(error),
        }
    }
    panic!("failed {TRIES} times: {last:?}")
}

pub fn message(words: &str) -> Message {
    Message::new(
        MessageId::new(Uuid::now_v7()),
        None,
        vec![Part::Text { text: words.into() }],
    )
}

/// The calls that a run has asked for, in order.
pub fn calls_in(events: &[Event]) -> Vec<CallId> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::ToolInputAvailable(e) => Some(e.tool_call_id),
            _ => None,
        })
        .collect()
}
