//! A project with plugins, in memory.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate_egress::Egress;
use toolgate_engine::records::{Amendment, Records as _, Turn};
use toolgate_engine::sources::Sources;
use toolgate_engine::tools::{BUILT_IN, CallContext, CallFailure, Called, ToolSource};
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::SourceTool;
use toolgate_package::{Algorithm, CuratorKey, SigningKey, sign};
use toolgate_plugins::{
    Candidate, Index, Install, Mode, NewCurator, NewKey, PluginError, PluginLimits, PluginSettings, Plugins,
    PluginsParts, Review,
};
use toolgate_store::MemoryStore;
use toolgate_testkit::held_clock::HeldClock;
use uuid::Uuid;

/// The curator that the project trusts.
pub const CURATOR: &str = "acme";
/// Its first key.
pub const KEY: &str = "first";

pub struct World {
    pub plugins: Plugins,
    pub clock: Arc<HeldClock>,
    pub project: ProjectId,
    pub settings: PluginSettings,
    /// Private key of [`KEY`].
    pub key: SigningKey,
    store: Arc<MemoryStore>,
    pub sources: Arc<Sources>,
    /// The source of tools that are not plugins.
    pub others: Arc<Others>,
}

/// Tools that the project has from elsewhere.
pub struct Others {
    names: Mutex<Result<Vec<String>, CallFailure>>,
    /// A name that is taken right after the names were read.
    meanwhile: Mutex<Option<(Arc<MemoryStore>, Turn, String)>>,
}

impl Others {
    fn new() -> Self {
        Self {
            names: Mutex::new(Ok(vec!["setGoals".into()])),
            meanwhile: Mutex::default(),
        }
    }

    /// From now on it cannot say what it has.
    pub fn fall_silent(&self) {
        *self.names.lock().unwrap() = Err(CallFailure::unavailable("it is asleep"));
    }
}

#[async_trait]
impl ToolSource for Others {
    fn name(&self) -> &'static str {
        BUILT_IN
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["prebuilt"]
    }
    async fn names(&self, project: ProjectId) -> Result<Vec<String>, CallFailure> {
        let names = self.names.lock().unwrap().clone();
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some((store, turn, name)) = meanwhile {
            self.names.lock().unwrap().as_mut().unwrap().push(name);
            let set = toolgate_engine::records::RecordSet {
                project,
                kind: "other",
                ..turn.set
            };
            let turn = Some(turn);
            let taken = Amendment {
                turn,
                ..Amendment::default()
            };
            store.amend_records(set, taken, Time(0)).await.unwrap();
        }
        names
    }
    async fn call(&self, _: &SourceTool, _: &Json, _: &CallContext) -> Result<Called, CallFailure> {
        Err(CallFailure::removed())
    }
}

/// A world in production mode that trusts [`CURATOR`].
pub async fn world() -> World {
    World::with(PluginSettings::default()).await
}

/// Settings of development mode.
pub fn development() -> PluginSettings {
    PluginSettings {
        mode: Mode::Development,
        ..PluginSettings::default()
    }
}

/// A document with a tool of each of these names.
pub fn document(id: &str, version: &str, tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| tool(name)).collect();
    json!({"id": id, "name": id, "version": version, "tools": tools})
}

fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("The tool {name}."),
        "parameters": {"type": "object"},
        "executorCode": "return args;",
    })
}

impl World {
    pub async fn with(settings: PluginSettings) -> Self {
        let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(HeldClock::new()));
        let workspace = Workspace::new(store.clone(), WorkspaceLimits::default());
        let others = Arc::new(Others::new());
        let world = Self {
            sources: Arc::new(Sources::new(store.clone(), workspace).with(others.clone())),
            others,
            plugins: plugins(&store, &clock, &settings),
            project: ProjectId::new(Uuid::from_u128(7)),
            key: SigningKey::generate(Algorithm::Ed25519),
            store,
            clock,
            settings,
        };
        world.trust(CURATOR, KEY, &world.key).await;
        world
    }

    /// The same plugins as another node has them.
    pub fn another_node(&self) -> Plugins {
        plugins(&self.store, &self.clock, &self.settings)
    }

    /// The same store after a restart with other settings.
    pub fn reopened(self, settings: PluginSettings) -> Self {
        Self {
            plugins: plugins(&self.store, &self.clock, &settings),
            settings,
            ..self
        }
    }

    pub async fn trust(&self, curator: &str, id: &str, key: &SigningKey) {
        let mut written = CuratorKey::new(key.public());
        written.id = id.parse().unwrap();
        self.put_key(curator, written).await.unwrap();
    }

    pub async fn put_key(&self, curator: &str, key: CuratorKey) -> Result<(), PluginError> {
        self.put_new_key(curator, key.into()).await
    }

    pub async fn put_new_key(&self, curator: &str, key: NewKey) -> Result<(), PluginError> {
        let written = NewCurator {
            name: None,
            keys: vec![key],
        };
        self.plugins
            .put_curator(self.project, curator, written)
            .await
            .map(drop)
    }

    /// Signed by [`CURATOR`].
    pub fn signed(&self, document: Value) -> Value {
        self.signed_by(document, CURATOR, KEY, &self.key)
    }

    pub fn signed_by(&self, document: Value, curator: &str, id: &str, key: &SigningKey) -> Value {
        sign(
            document,
            key,
            &curator.parse().unwrap(),
            Some(&id.parse().unwrap()),
        )
        .unwrap()
    }

    pub fn offer(&self, document: &Value) -> Install {
        Install {
            candidate: Candidate::parse(document.to_string().as_bytes()).unwrap(),
            source_url: None,
            replace_curator: false,
        }
    }

    pub async fn install(&self, document: &Value) -> Result<Review, PluginError> {
        self.plugins
            .install(self.project, self.offer(document), &self.sources)
            .await
    }

    /// Installs a document after signing it; gives its hash.
    pub async fn installed(&self, document: Value) -> String {
        self.install(&self.signed(document)).await.unwrap().hash
    }

    pub async fn roll_back(&self, plugin: &str, to: &toolgate_plugins::RollBack) -> Result<(), PluginError> {
        self.plugins
            .roll_back(self.project, plugin, to, &self.sources)
            .await
    }

    /// Another source takes this name after the next change has read the names, and before it is stored.
    pub async fn take_meanwhile(&self, name: &str) {
        let taken = self.sources.taken_names(self.project, BUILT_IN).await.unwrap();
        let meanwhile = (self.store.clone(), taken.turn(), name.to_owned());
        *self.others.meanwhile.lock().unwrap() = Some(meanwhile);
    }

    pub async fn index(&self) -> Index {
        self.plugins.index(self.project).await.unwrap().0
    }

    /// Whether a package may run now.
    pub async fn runs(&self, hash: &str) -> bool {
        self.index().await.trust(hash, &self.settings).is_ok()
    }

    /// The version that is current; none if the plugin is not installed.
    pub async fn version(&self, plugin: &str) -> Option<String> {
        let index = self.index().await;
        index.current(plugin).map(|(_, package)| package.version.clone())
    }
}

fn plugins(store: &Arc<MemoryStore>, clock: &Arc<HeldClock>, settings: &PluginSettings) -> Plugins {
    Plugins::new(PluginsParts {
        records: store.clone(),
        clock: clock.clone(),
        resolver: Arc::new(settings.clone()),
        egress: Egress::new(),
        engine: "0.1.0".parse().unwrap(),
    })
}

/// The reasons of a refusal, `CODE pointer words` each.
pub fn reasons<T>(result: Result<T, PluginError>) -> Vec<String> {
    let Err(PluginError::Refused(refused)) = result else {
        panic!("it is refused");
    };
    let told = refused.iter().map(|refused| {
        format!(
            "{} {} {}",
            refused.reason.code(),
            refused.problem.pointer,
            refused.problem.message
        )
    });
    told.collect()
}

/// Limits with one of them changed.
pub fn limits(change: impl FnOnce(&mut PluginLimits)) -> PluginSettings {
    let mut settings = PluginSettings::default();
    change(&mut settings.limits);
    settings
}
