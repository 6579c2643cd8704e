//! A door with an engine behind it, asked the way a client asks.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_door_http::{Auth, DoorSettings, Rate, keys, router};
use toolgate_engine::clock::Clock;
use toolgate_engine::outbox::Outbox;
use toolgate_engine::store::{KeyKind, ProjectRecord, Store};
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_engine::{Engine, Parts, Settings};
use toolgate_kernel::agent::{ModelName, ModelSpec, Provider};
use toolgate_kernel::id::{NodeId, ProjectId};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{ClientToolLimits, Conflict};
use toolgate_store::MemoryStore;
use toolgate_testkit::fake_tools::FakeTools;
use toolgate_testkit::held_clock::HeldClock;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, call, last_results, last_words, text};
use toolgate_tools::knowledge::Library;
use toolgate_tools::readable::Reader;
use uuid::Uuid;

use crate::client::Client;

pub const SECRET: &str = "sk_0123456789abcdef";
pub const PUBLIC: &str = "pk_0123456789abcdef";
/// The keys of another project.
pub const OTHER_SECRET: &str = "sk_other0123456789";
pub const OTHER_PUBLIC: &str = "pk_other0123456789";
pub const JWT_SECRET: &str = "what signs the tokens of the test project";
/// Long after any test.
pub const FAR: u64 = 4_000_000_000;
pub const BODY_BYTES_MAX: usize = 64 * 1024;
pub const FILE_BYTES_MAX: usize = 100_000;
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// A gateway without a socket.
pub struct World {
    pub router: Router,
    pub store: Arc<dyn Store>,
    pub tools: Arc<FakeTools>,
    pub clock: Arc<HeldClock>,
    pub workspace: Workspace,
    pub outbox: Arc<Outbox>,
    pub stop: CancellationToken,
    driving: JoinHandle<()>,
}

pub fn project(number: u128) -> ProjectId {
    ProjectId::new(Uuid::from_u128(number))
}

impl World {
    pub async fn new() -> Self {
        Self::with(|_| ()).await
    }

    pub async fn with(change: impl FnOnce(&mut DoorSettings)) -> Self {
        Self::made(engine_settings(), change).await
    }

    /// One whose readers are cut when they lag so many batches behind.
    pub async fn with_backlog(reader_backlog: usize) -> Self {
        let settings = Settings {
            reader_backlog,
            ..engine_settings()
        };
        Self::made(settings, |_| ()).await
    }

    /// One with other settings of the engine.
    pub async fn with_engine(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = engine_settings();
        change(&mut settings);
        Self::made(settings, |_| ()).await
    }

    async fn made(engine_settings: Settings, change: impl FnOnce(&mut DoorSettings)) -> Self {
        let records = Arc::new(MemoryStore::new());
        let store: Arc<dyn Store> = records.clone();
        let limits = WorkspaceLimits {
            file_bytes_max: FILE_BYTES_MAX,
            files_max: 5,
            ..WorkspaceLimits::default()
        };
        let tools = Arc::new(FakeTools::default());
        let clock = Arc::new(HeldClock::new());
        let parts = Parts {
            store: store.clone(),
            model: ScriptedModel::new(by_words),
            tools: tools.clone(),
            clock: clock.clone(),
        };
        let workspace = Workspace::new(records.clone(), limits);
        let engine = Engine::new(parts, engine_settings);
        let outbox = Arc::new(Outbox::new(records.clone(), clock.clone()));
        let stop = CancellationToken::new();
        let mut settings = DoorSettings {
            auth: Auth::Keys,
            workspace: workspace.clone(),
            knowledge: Arc::new(Library::new(records.clone(), Arc::new(Reader::here()))),
            outbox: outbox.clone(),
            body_bytes_max: BODY_BYTES_MAX,
            heartbeat: HEARTBEAT,
            rate: Rate {
                per_second: 10_000,
                burst: 10_000,
            },
            metrics: Arc::new(|| "toolgate_up 1\n".into()),
            origins: vec!["https://app.example".into()],
            stop: stop.clone(),
        };
        change(&mut settings);
        for (number, name, secret, public) in [
            (1, "test", SECRET, PUBLIC),
            (2, "other", OTHER_SECRET, OTHER_PUBLIC),
        ] {
            let id = project(number);
            let record = ProjectRecord {
                id,
                name: name.into(),
                jwt_secret: Some(JWT_SECRET.into()),
                jwks_url: None,
                created: Time(0),
            };
            store.put_project(record).await.unwrap();
            for (key, kind) in [(secret, KeyKind::Secret), (public, KeyKind::Public)] {
                store
                    .put_key(keys::record(key, id, kind, Time(0)).unwrap())
                    .await
                    .unwrap();
            }
            engine
                .put_agent(id, &"default".parse().unwrap(), agent().into())
                .await
                .unwrap();
        }
        let (driving, halt) = (engine.clone(), stop.clone());
        let driving = tokio::spawn(async move { driving.drive(halt).await });
        Self {
            router: router(engine, settings),
            store,
            tools,
            clock,
            workspace,
            outbox,
            stop,
            driving,
        }
    }

    /// Waits until the engine has stopped.
    pub async fn stopped(&mut self) {
        (&mut self.driving).await.unwrap();
    }

    /// As the test project's backend.
    pub fn backend(&self) -> Client<'_> {
        Client {
            router: &self.router,
            headers: vec![("authorization".into(), format!("Bearer {SECRET}"))],
        }
    }
    /// As a user of the test project.
    pub fn user(&self, subject: &str) -> Client<'_> {
        let token = token(json!({ "sub": subject, "exp": FAR }));
        let headers = vec![
            ("x-public-key".into(), PUBLIC.into()),
            ("authorization".into(), format!("Bearer {token}")),
        ];
        Client {
            router: &self.router,
            headers,
        }
    }
    /// As a user whose token holds for so long.
    pub fn user_for(&self, subject: &str, span: Duration) -> Client<'_> {
        let expires = self.clock.now().after(span).0 / 1000;
        let token = token(json!({ "sub": subject, "exp": expires }));
        self.nobody()
            .with("x-public-key", PUBLIC)
            .with("authorization", &format!("Bearer {token}"))
    }
    /// As nobody.
    pub fn nobody(&self) -> Client<'_> {
        Client {
            router: &self.router,
            headers: Vec::new(),
        }
    }
    /// As another project's backend.
    pub fn stranger(&self) -> Client<'_> {
        Client {
            router: &self.router,
            headers: vec![("authorization".into(), format!("Bearer {OTHER_SECRET}"))],
        }
    }
}

/// A token of the test project.
pub fn token(claims: Value) -> String {
    encode(
        &Header::default(),
        &claims,
        &EncodingKey::from_secret(JWT_SECRET.as_bytes()),
    )
    .unwrap()
}

/// What the model gives to the tool that `hide:tool` names, and nobody says aloud.
pub const HIDDEN: &str = "Zq7-\u{fffd}-hidden";

/// The model calls what the user's words name (`call:tool={"json":1}`), otherwise it answers.
fn by_words(ask: &toolgate_engine::model::Ask) -> Vec<Say> {
    let words = last_words(ask);
    if let Some(results) = last_results(ask) {
        if words.starts_with("hide:") {
            return vec![text("done")];
        }
        let outputs: Vec<&str> = results.iter().map(|result| result.output.as_str()).collect();
        return vec![text(format!("got {}", outputs.join(" and ")))];
    }
    if words == "what was said?" {
        return vec![text(format!("{:?}", ask.turns))];
    }
    if let Some(name) = words.strip_prefix("hide:") {
        return vec![call(name, json!({ "hidden": HIDDEN }).to_string())];
    }
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

/// An agent with tools of each kind.
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
        "model": {"provider": "demo", "apiKey": "hush-hush"},
        "tools": [
            tool("ask", json!({"outputSchema": {"type": "object"}})),
            tool("mirror", json!({"execution": {"mode": "pass-through"}})),
            tool("open_mirror", json!({"execution": {"mode": "pass-through"}, "visibility": "public"})),
            tool("guarded", json!({"execution": {"mode": "pass-through"}, "approval": "always",
                "parameters": {"type": "object", "properties": {"to": {"type": "string"}}}})),
            tool("guarded_ask", json!({"approval": "always"})),
            tool("fail", json!({"executionType": "prebuilt", "execution": {"action": "fail"}})),
            tool("slow", json!({"executionType": "prebuilt", "execution": {"action": "slow"}})),
        ],
    })
}

fn engine_settings() -> Settings {
    let name = ModelName {
        provider: Provider::Demo,
        name: "demo".into(),
    };
    let default_model = ModelSpec {
        name,
        base_url: None,
        api_key: None,
        temperature: None,
        top_p: None,
        max_output_tokens: None,
        reasoning_tokens: None,
    };
    Settings {
        node: NodeId::new(Uuid::from_u128(1)),
        default_model,
        runs_active_max: 1_000,
        parallel_calls: 8,
        reader_backlog: 1_000,
        drain: Duration::from_secs(1),
        node_lease: Duration::from_secs(15),
        client_tools: ClientToolLimits::default(),
        conflict: Conflict::default(),
        always_evict: false,
    }
}
