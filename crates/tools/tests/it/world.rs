//! An engine with the standard tools, on every store there is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_egress::Egress;
use toolgate_engine::feed::{BacklogLimits, End, Scope};
use toolgate_engine::intake::{Answer, Charged, Post, UnderWay};
use toolgate_engine::model::Ask;
use toolgate_engine::outbox::Outbox;
use toolgate_engine::records::Records;
use toolgate_engine::store::{ProjectRecord, SpaceRecord, Store};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_engine::{Engine, Settings};
use toolgate_fair::Shares;
use toolgate_kernel::agent::{Action, Secret, Starter};
use toolgate_kernel::event::{Event, Seq};
use toolgate_kernel::id::{MessageId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Retry;
use toolgate_store::{MemoryStore, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use toolgate_testkit::held_clock::HeldClock;
use toolgate_testkit::postgres_server::PostgresServer;
use toolgate_testkit::project_settings::project_settings;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, call, last_results, last_words, text};
use toolgate_tools::knowledge::Library;
use toolgate_tools::notify::{Channels, Deliveries, Mail, MailSettings, Security, Webhook};
use toolgate_tools::readable::Reader;
use toolgate_tools::{Parts, ServerTool, Toolkit};
use uuid::Uuid;

/// An engine at work, with the agents `ada` and `bob`, who have every tool.
pub struct World {
    pub engine: Engine,
    pub store: Arc<dyn Store>,
    pub records: Arc<dyn Records>,
    pub clock: Arc<HeldClock>,
    pub outbox: Arc<Outbox>,
    stop: CancellationToken,
    driving: JoinHandle<()>,
    /// Taken away when the world ends.
    directory: Option<PathBuf>,
}

pub const AGENTS: [&str; 2] = ["ada", "bob"];

pub fn project() -> ProjectId {
    ProjectId::new(Uuid::from_u128(7))
}

/// Another one, with agents of the same names.
pub fn other_project() -> ProjectId {
    ProjectId::new(Uuid::from_u128(8))
}

/// Every test body runs on every store.
macro_rules! on_every_store {
    ($(async fn $name:ident($world:ident) $body:block)*) => {
        mod in_memory {
            use super::*;
            $( #[tokio::test] async fn $name() {
                let $world = &crate::world::World::in_memory().await;
                $body
            } )*
        }
        mod in_sqlite {
            use super::*;
            $( #[tokio::test] async fn $name() {
                let $world = &crate::world::World::in_sqlite().await;
                $body
            } )*
        }
        mod in_postgres {
            use super::*;
            $( #[tokio::test] async fn $name() {
                let $world = &crate::world::World::in_postgres().await;
                $body
            } )*
        }
    };
}
pub(crate) use on_every_store;

impl World {
    pub async fn in_memory() -> Self {
        Self::in_memory_with(|_| ()).await
    }

    /// One with other tools besides.
    pub async fn in_memory_with(more: impl FnOnce(&mut Toolkit)) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self::on(store.clone(), store, None, more).await
    }

    pub async fn in_sqlite() -> Self {
        let directory = std::env::temp_dir().join(format!("toolgate-tools-{}", Uuid::now_v7()));
        std::fs::create_dir_all(&directory).unwrap();
        let opened = SqliteStore::open(&directory.join("test.db"), SqliteOptions::default());
        let store = Arc::new(opened.unwrap());
        Self::on(store.clone(), store, Some(directory), |_| ()).await
    }

    pub async fn in_postgres() -> Self {
        let address = PostgresServer::shared().database().parse().unwrap();
        let opened = PostgresStore::open(&address, PostgresOptions::default()).await;
        let store = Arc::new(opened.unwrap());
        Self::on(store.clone(), store, None, |_| ()).await
    }

    async fn on(
        store: Arc<dyn Store>,
        records: Arc<dyn Records>,
        directory: Option<PathBuf>,
        more: impl FnOnce(&mut Toolkit),
    ) -> Self {
        let clock = Arc::new(HeldClock::new());
        // Nothing is sent there: what is queued waits for whoever works it off.
        let channels = Channels {
            webhook: Some(Webhook {
                url: "http://127.0.0.1:1".parse().unwrap(),
                secret: None,
            }),
            mail: Some(Mail::new(mail(1)).unwrap()),
        };
        let outbox = Arc::new(Outbox::new(records.clone(), clock.clone()));
        let reader = Arc::new(Reader::here());
        let mut toolkit = Toolkit::standard(Parts {
            reader: reader.clone(),
            store: store.clone(),
            records: records.clone(),
            workspace: Workspace::new(records.clone(), WorkspaceLimits::default()),
            knowledge: Arc::new(Library::new(records.clone(), reader.clone())),
            deliveries: Arc::new(Deliveries::new(outbox.clone(), channels, &Egress::new())),
            plans: toolgate_tools::PlanLimits::default(),
            egress: Egress::new(),
            outbound: Arc::new(toolgate_tools::OutboundSettings::default()),
        });
        toolkit.register(Shout);
        more(&mut toolkit);
        let tools: Vec<Value> = toolkit.all().map(|tool| prebuilt(tool.name())).collect();
        let parts = toolgate_engine::Parts {
            store: store.clone(),
            model: ScriptedModel::new(as_told),
            tools: toolkit.sources(),
            clock: clock.clone(),
            bus: Arc::new(toolgate_bus::InProcessBus::default()),
        };
        let engine = Engine::new(parts, settings());
        for (project, title) in [(project(), "test"), (other_project(), "other")] {
            let record = ProjectRecord {
                id: project,
                name: title.into(),
                jwt_secret: None,
                identity_provider: None,
                settings: None,
                created: Time(0),
            };
            store.put_project(record).await.unwrap();
            for name in AGENTS {
                let config = json!({"instructions": "Do as the test says.", "model": {"provider": "demo"}, "tools": tools});
                let name = name.parse().unwrap();
                engine.put_agent(project, &name, config.into()).await.unwrap();
            }
        }
        let stop = CancellationToken::new();
        let (driven, halt) = (engine.clone(), stop.clone());
        let driving = tokio::spawn(async move { driven.drive(halt).await });
        Self {
            engine,
            store,
            records,
            clock,
            outbox,
            stop,
            driving,
            directory,
        }
    }

    /// A new space.
    pub async fn space(&self) -> SpaceId {
        self.space_of(project()).await
    }

    /// A new space of a project.
    pub async fn space_of(&self, project: ProjectId) -> SpaceId {
        let id = SpaceId::new(Uuid::now_v7());
        let record = SpaceRecord {
            id,
            project,
            title: Some("Kitchen".into()),
            agent: None,
            metadata: None,
            by_backend: true,
            members: Vec::new(),
            created: Time(0),
        };
        self.store.create_space(record).await.unwrap();
        id
    }

    /// What comes of an agent's call of a tool, in a space of its own.
    pub async fn call(&self, agent: &str, tool: &str, input: Value) -> Result<Value, String> {
        let space = self.space().await;
        self.call_in(space, agent, tool, input).await
    }

    /// What comes of an agent's call of a tool.
    pub async fn call_in(
        &self,
        space: SpaceId,
        agent: &str,
        tool: &str,
        input: Value,
    ) -> Result<Value, String> {
        let mut outcomes = self.calls_in(space, agent, &[(tool, input)]).await;
        outcomes.pop().expect("one call has one outcome")
    }

    /// What comes of calls that an agent makes at once; in no order.
    pub async fn calls_in(
        &self,
        space: SpaceId,
        agent: &str,
        calls: &[(&str, Value)],
    ) -> Vec<Result<Value, String>> {
        let run = self.start_in(space, agent, calls).await;
        self.outcomes(run).await
    }

    /// A run that makes these calls, in a space of its own.
    pub async fn start(&self, agent: &str, calls: &[(&str, Value)]) -> RunId {
        let space = self.space().await;
        self.start_in(space, agent, calls).await
    }

    async fn start_in(&self, space: SpaceId, agent: &str, calls: &[(&str, Value)]) -> RunId {
        self.post(space, agent, message(json!(calls).to_string())).await
    }

    /// Posts a message whose text is one call; gives what came of it.
    pub async fn say_in(&self, space: SpaceId, agent: &str, said: Message) -> Result<Value, String> {
        let run = self.post(space, agent, said).await;
        self.outcomes(run).await.pop().expect("one call has one outcome")
    }

    async fn post(&self, space: SpaceId, agent: &str, said: Message) -> RunId {
        let project = self.store.space(space).await.unwrap().expect("a space").project;
        let post = Post {
            user_token: None,
            call: None,
            starter: Starter::Backend,
            charged: Charged::Nobody,
            makes_space: false,
            under_way: UnderWay::Join,
            categories: None,
            history: Vec::new(),
            told: Vec::new(),
            project,
            space: Some(space),
            message: said,
            answer: Answer::Agent(agent.parse().unwrap()),
            client_tools: Vec::new(),
            idempotency: None,
        };
        self.engine.post(post).await.unwrap().run_id.unwrap()
    }

    /// What came of a run's calls, once it has ended.
    pub async fn outcomes(&self, run: RunId) -> Vec<Result<Value, String>> {
        let mut outcomes = Vec::new();
        let mut cursor = Seq(0);
        loop {
            let mut following = self.engine.subscribe(Scope::Run(run), cursor).await.unwrap();
            loop {
                let batch = match following.next().await {
                    Ok(batch) => batch,
                    Err(End::Cut) => break,
                    Err(End::Finished) => return outcomes,
                };
                for (seq, event) in batch.placed() {
                    cursor = seq;
                    match event {
                        Event::ToolOutputAvailable(e) => {
                            outcomes.push(Ok(e.output.as_ref().expect("an output").to_value()));
                        }
                        Event::ToolOutputError(e) => outcomes.push(Err(format!("{e:?}"))),
                        Event::RunFinish(_) => return outcomes,
                        _ => {}
                    }
                }
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
        self.driving.abort();
        if let Some(directory) = &self.directory {
            // What cannot be taken away stays in the system's own scratch folder.
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// A mail server on a port of this machine, which is told a password.
pub fn mail(port: u16) -> MailSettings {
    MailSettings {
        host: "127.0.0.1".into(),
        port: Some(port),
        security: Security::None,
        login: Some(("gate".into(), Secret::new(PASSWORD))),
        from: "Toolgate <gate@example.com>".into(),
        to: vec!["ops@example.com".into(), "Zoë <zoe@example.com>".into()],
    }
}

/// What nobody but the mail server may learn.
pub const PASSWORD: &str = "hunter2-hunter2";

/// Gives as many letters as it is asked for.
struct Shout;

#[async_trait]
impl ServerTool for Shout {
    fn name(&self) -> &'static str {
        "shout"
    }
    fn action(&self) -> Action {
        Action {
            description: "Shouts.".into(),
            parameters: json!({"type": "object"}),
            timeout: Duration::from_secs(5),
            retry: Retry::Safe,
        }
    }
    async fn call(&self, input: Value, _: &CallContext) -> Result<Value, CallFailure> {
        Ok("A".repeat(input["letters"].as_u64().unwrap() as usize).into())
    }
}

/// Makes the calls that the message names, then says that it is done.
fn as_told(ask: &Ask) -> Vec<Say> {
    if last_results(ask).is_some() {
        return vec![text("done")];
    }
    let words = last_words(ask);
    // Where several people speak, the name of the one who does stands before.
    let calls = &words[words.find("[[").expect("calls")..];
    let told: Vec<(String, Value)> = serde_json::from_str(calls).expect("calls");
    let calls = told
        .into_iter()
        .map(|(tool, input)| call(&tool, input.to_string()));
    calls.collect()
}

fn prebuilt(name: &str) -> Value {
    json!({"name": name, "executionType": "prebuilt", "execution": {"action": name}})
}

pub fn message(words: String) -> Message {
    Message::new(
        MessageId::new(Uuid::now_v7()),
        None,
        vec![Part::Text { text: words }],
    )
}

fn settings() -> Settings {
    Settings {
        node: NodeId::new(Uuid::from_u128(1)),
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
    }
}
