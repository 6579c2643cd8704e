//! Doors with an engine behind them, asked the way a client asks.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_access::{Access, AccessSettings, Auth, ClaimNames, Rate, Rates, SessionLimits, keys};
use toolgate_bus::InProcessBus;
use toolgate_egress::Egress;
use toolgate_engine::bus::Bus;
use toolgate_engine::clock::Clock;
use toolgate_engine::feed::BacklogLimits;
use toolgate_engine::quota::QuotaLimits;
use toolgate_engine::sources::Sources;
use toolgate_engine::store::{Directory, KeyKind, ProjectRecord};
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_engine::{Engine, Parts, Settings};
use toolgate_http::content::ContentLimits;
use toolgate_http::meter::{Meter, MeterLimits};
use toolgate_http::session_cookie::SessionCookie;
use toolgate_http::{Http, HttpSettings, Shared, finish};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::{NodeId, ProjectId};
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use toolgate_testkit::fake_tools::FakeTools;
use toolgate_testkit::faulty_store::FaultyStore;
use toolgate_testkit::held_clock::HeldClock;
use toolgate_testkit::project_settings::project_settings;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, call, last_results, last_words, text};
use toolgate_testkit::task_source::TaskSource;
use uuid::Uuid;

use crate::client::Client;
use crate::contract::Contract;

/// The secret key of the test's project.
pub const SECRET: &str = "sk_0123456789abcdef";
/// Its public key.
pub const PUBLIC: &str = "pk_0123456789abcdef";
/// The secret key of another project.
pub const OTHER_SECRET: &str = "sk_other0123456789";
/// The public key of another project.
pub const OTHER_PUBLIC: &str = "pk_other0123456789";
/// The operator's key.
pub const OPERATOR: &str = "operator-of-the-tests";
/// Signs the tokens of both projects.
pub const JWT_SECRET: &str = "what signs the tokens of the test project";
/// Long after any test, in seconds.
pub const FAR: u64 = 4_000_000_000;
/// The port that the gateway says it listens on.
pub const PORT: u16 = 8787;
/// Largest request body.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Bytes of requests and answers in memory.
pub const IN_FLIGHT_BYTES_MAX: usize = 16 << 20;
/// Streams of one user.
pub const STREAMS_MAX: usize = 32;
/// What one user may have.
pub const QUOTAS: QuotaLimits = QuotaLimits {
    spaces: 20,
    stored_bytes: 2 << 20,
    open_runs: 8,
};
/// Limits on what a request may store.
pub const CONTENT: ContentLimits = ContentLimits {
    message: 60 * 1024,
    metadata: 4 * 1024,
    progress: 2 * 1024,
};
/// How often a silent stream shows that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// Longest wait for a run within one request.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// A gateway without a socket.
pub struct World {
    /// What the doors share.
    pub shared: Shared,
    /// Every route.
    pub router: Router,
    /// The engine behind it.
    pub engine: Engine,
    /// The store.
    pub store: Arc<MemoryStore>,
    /// What engine and access reach the store through; fails on demand.
    pub faults: Arc<FaultyStore>,
    /// The gateway's own tools.
    pub tools: Arc<FakeTools>,
    /// The clock.
    pub clock: Arc<HeldClock>,
    /// What carries its events to nodes beside it.
    pub bus: Arc<dyn Bus>,
    /// Stops it.
    pub stop: CancellationToken,
    contract: &'static Contract,
    driving: JoinHandle<()>,
}

/// More than any test asks.
const RATE: Rate = Rate {
    per_second: 10_000,
    burst: 10_000,
};

/// What a test may set.
pub struct WorldSettings {
    /// The engine's.
    pub engine: Settings,
    /// Whether callers need a key.
    pub auth: Auth,
    /// Requests of one caller.
    pub rate: Rates,
    /// Origins that browsers may call from.
    pub origins: Vec<String>,
    /// Bytes of requests and answers in memory.
    pub in_flight_bytes_max: usize,
    /// How long sessions last, and how many there are.
    pub sessions: SessionLimits,
    /// What it stores in.
    pub store: Arc<MemoryStore>,
    /// The clock.
    pub clock: Arc<HeldClock>,
    /// What carries its events to nodes beside it.
    pub bus: Arc<dyn Bus>,
}

impl WorldSettings {
    /// Makes it another node of the same gateway.
    pub fn beside(&mut self, other: &World) {
        self.store = other.store.clone();
        self.clock = other.clock.clone();
        self.bus = other.bus.clone();
        self.engine.node = NodeId::new(Uuid::now_v7());
    }
}

/// What doors are made of.
pub struct Ground {
    /// State that handlers share.
    pub shared: Shared,
    /// What the gateway stores in.
    pub store: Arc<MemoryStore>,
    /// The clock.
    pub clock: Arc<HeldClock>,
}

/// One of the two projects: 1 is the test's, 2 is another.
pub fn project(number: u128) -> ProjectId {
    ProjectId::new(Uuid::from_u128(number))
}

impl World {
    /// One with these doors, whose answers are held against `contract`.
    pub async fn new(
        contract: &'static Contract,
        change: impl FnOnce(&mut WorldSettings),
        doors: impl FnOnce(&Ground) -> Router,
    ) -> Self {
        let mut settings = WorldSettings {
            engine: engine_settings(),
            auth: Auth::Keys,
            rate: Rates {
                secret: RATE,
                public: RATE,
            },
            origins: vec!["https://app.example".into()],
            in_flight_bytes_max: IN_FLIGHT_BYTES_MAX,
            sessions: SessionLimits::default(),
            store: Arc::default(),
            clock: Arc::new(HeldClock::new()),
            bus: Arc::new(InProcessBus::default()),
        };
        change(&mut settings);
        let (store, clock, bus) = (settings.store, settings.clock, settings.bus);
        let faults = Arc::new(FaultyStore::new(store.clone(), 0, 0));
        let tools = Arc::new(FakeTools::default());
        let workspace = Workspace::new(store.clone(), WorkspaceLimits::default());
        let parts = Parts {
            store: faults.clone(),
            model: ScriptedModel::new(by_words),
            tools: Sources::new(store.clone(), workspace)
                .with(tools.clone())
                .with(Arc::new(TaskSource::default())),
            clock: clock.clone(),
            bus: bus.clone(),
        };
        let engine = Engine::new(parts, settings.engine);
        let access = AccessSettings {
            auth: settings.auth,
            rate: settings.rate,
            claims: ClaimNames::default(),
            operator_key: Some(Secret::new(OPERATOR)),
            egress: Egress::new(),
            records: store.clone(),
            sessions: settings.sessions,
        };
        let stop = CancellationToken::new();
        let shared = Arc::new(Http {
            engine: engine.clone(),
            access: Access::new(
                faults.clone(),
                faults.clone(),
                clock.clone(),
                engine.revocations().clone(),
                access,
            ),
            in_flight: Meter::new(MeterLimits {
                all: settings.in_flight_bytes_max,
                user: settings.in_flight_bytes_max,
            }),
            streams: Meter::new(MeterLimits {
                all: usize::MAX,
                user: STREAMS_MAX,
            }),
            settings: HttpSettings {
                body_bytes_max: BODY_BYTES_MAX,
                body_timeout: Duration::from_secs(15),
                content: CONTENT,
                heartbeat: HEARTBEAT,
                wait_max: WAIT_MAX,
                origins: settings.origins,
                session_cookie: SessionCookie::new(PORT, None),
                leaving: stop.clone(),
                stop: stop.clone(),
            },
        });
        let ground = Ground {
            shared: shared.clone(),
            store: store.clone(),
            clock: clock.clone(),
        };
        let router = finish(doors(&ground), shared.clone());
        furnish(&store, &engine).await;
        let (driving, halt) = (engine.clone(), stop.clone());
        let driving = tokio::spawn(async move { driving.drive(halt).await });
        Self {
            shared,
            router,
            engine,
            store,
            faults,
            tools,
            clock,
            bus,
            stop,
            contract,
            driving,
        }
    }

    /// Waits until the engine has stopped.
    pub async fn stopped(&mut self) {
        (&mut self.driving).await.unwrap();
    }

    /// As the test project's backend.
    pub fn backend(&self) -> Client<'_> {
        self.nobody().with("authorization", &format!("Bearer {SECRET}"))
    }
    /// As a user of the test project.
    pub fn user(&self, subject: &str) -> Client<'_> {
        self.user_until(subject, FAR as i64)
    }
    /// As a user whose token holds for so long.
    pub fn user_for(&self, subject: &str, span: Duration) -> Client<'_> {
        self.user_until(subject, self.clock.now().after(span).0 / 1000)
    }
    fn user_until(&self, subject: &str, expires: i64) -> Client<'_> {
        let token = token(json!({ "sub": subject, "exp": expires }));
        self.nobody()
            .with("x-public-key", PUBLIC)
            .with("authorization", &format!("Bearer {token}"))
    }
    /// As nobody.
    pub fn nobody(&self) -> Client<'_> {
        Client {
            router: &self.router,
            contract: self.contract,
            headers: Vec::new(),
        }
    }
    /// As another project's backend.
    pub fn stranger(&self) -> Client<'_> {
        self.nobody()
            .with("authorization", &format!("Bearer {OTHER_SECRET}"))
    }
}

/// Two projects with keys and an agent each.
async fn furnish(store: &MemoryStore, engine: &Engine) {
    for (number, name, secret, public) in [
        (1, "test", SECRET, PUBLIC),
        (2, "other", OTHER_SECRET, OTHER_PUBLIC),
    ] {
        let id = project(number);
        // A node beside this one has furnished the store.
        if store.project(id).await.unwrap().is_some() {
            continue;
        }
        let record = ProjectRecord {
            id,
            name: name.into(),
            jwt_secret: Some(JWT_SECRET.into()),
            identity_provider: None,
            settings: None,
            created: Time(0),
        };
        store.put_project(record).await.unwrap();
        for (key, kind) in [(secret, KeyKind::Secret), (public, KeyKind::Public)] {
            let record = keys::record(key, id, kind, Time(0)).unwrap();
            store.put_key(record).await.unwrap();
        }
        let name = "default".parse().unwrap();
        engine.put_agent(id, &name, agent().into()).await.unwrap();
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

/// The same agent with a tool `work`, whose calls are tasks of a [`TaskSource`].
pub fn agent_with_tasks() -> Value {
    let mut config = agent();
    let work = json!({
        "name": "work", "description": "for tests", "executionType": "tasks", "execution": {"tool": "work"},
        "parameters": {"type": "object"},
    });
    config["tools"].as_array_mut().expect("a list").push(work);
    config
}

fn engine_settings() -> Settings {
    Settings {
        node: NodeId::new(Uuid::from_u128(1)),
        runs_active: toolgate_fair::Shares::same(1_000),
        model_calls: toolgate_fair::Shares::same(1_000),
        parallel_calls: 8,
        reader_backlog: BacklogLimits {
            bytes: 16 << 20,
            stall: Duration::from_secs(30),
        },
        history_bytes_max: 1 << 20,
        quotas: QUOTAS,
        drain: Duration::from_secs(1),
        node_lease: Duration::from_secs(15),
        projects: project_settings(),
        always_evict: false,
    }
}
