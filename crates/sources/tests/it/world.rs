//! A project with MCP servers, in memory, and the directory of the server that the tests start.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use toolgate_egress::{Egress, Secrets};
use toolgate_engine::clock::SystemClock;
use toolgate_engine::tools::{CallContext, CallFailure, Called, ToolSource as _};
use toolgate_engine::user_tokens::NoToken;
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::{CallId, EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::{Placement, SourceTool, ToolList};
use toolgate_sources::{
    Commands, McpServers, McpServersParts, McpSettings, McpSource, SOURCE, ServerView, Spawning, Status,
};
use toolgate_store::MemoryStore;
use uuid::Uuid;

/// Longest wait for anything that should happen soon: generous, because it only matters when a test fails.
const SOON: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);

/// A server's directory.
pub struct Fixture {
    pub directory: TempDir,
    era: &'static str,
}

impl Fixture {
    pub fn new(era: &'static str, tools: &[Value]) -> Self {
        let fixture = Self {
            directory: tempfile::tempdir().expect("a directory"),
            era,
        };
        fixture.lists(tools);
        fixture
    }

    /// What it lists from now on.
    pub fn lists(&self, tools: &[Value]) {
        self.write("tools.json", &json!(tools).to_string());
    }

    /// Tells the gateway that the list has changed.
    pub fn changed(&self) {
        self.write("changed", "");
    }

    pub fn write(&self, name: &str, text: &str) {
        let part = self.directory.path().join(format!("..{name}"));
        std::fs::write(&part, text).expect("a file");
        std::fs::rename(part, self.directory.path().join(name)).expect("a file");
    }

    /// Waits for what the server writes.
    pub async fn wrote(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        soon(name, || std::fs::read_to_string(&path).ok()).await
    }

    pub fn has(&self, name: &str) -> bool {
        self.directory.path().join(name).exists()
    }

    pub fn config(&self) -> Value {
        json!({
            "command": env!("CARGO_BIN_EXE_toolgate-mcp-fixture"),
            "args": [self.era, self.directory.path()],
        })
    }
}

/// A tool without parameters.
pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

/// Whether a process has not ended yet.
pub fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    // One that nobody has waited for yet has ended all the same.
    stat.rsplit_once(')')
        .is_some_and(|(_, fields)| !fields.trim_start().starts_with('Z'))
}

/// Looks until there is something.
pub async fn soon<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            match look() {
                Some(found) => return found,
                None => tokio::time::sleep(LOOK).await,
            }
        }
    };
    let found = tokio::time::timeout(SOON, wait).await;
    found.unwrap_or_else(|_| panic!("{what} did not happen within {SOON:?}"))
}

pub struct World {
    pub servers: McpServers,
    pub source: McpSource,
    pub project: ProjectId,
    pub workspace: Workspace,
    pub stop: CancellationToken,
    pub told: Arc<Mutex<Vec<Value>>>,
    store: Arc<MemoryStore>,
    settings: Arc<McpSettings>,
}

/// Settings in which anything may be started.
pub fn settings() -> McpSettings {
    let secret = ("TOKEN".to_owned(), Secret::new("hush-hush-hush"));
    McpSettings {
        commands: Commands::Any,
        secrets: Secrets::new([secret]).expect("a secret"),
        ..McpSettings::default()
    }
}

impl World {
    pub fn new(settings: McpSettings) -> Self {
        Self::over(Arc::new(MemoryStore::new()), Arc::new(settings))
    }

    /// The same project after a restart of the gateway.
    pub fn again(&self) -> Self {
        Self::over(self.store.clone(), self.settings.clone())
    }

    fn over(store: Arc<MemoryStore>, settings: Arc<McpSettings>) -> Self {
        let workspace = Workspace::new(store.clone(), WorkspaceLimits::default());
        let servers = McpServers::new(McpServersParts {
            records: store.clone(),
            clock: Arc::new(SystemClock),
            resolver: Arc::new(settings.clone()),
            egress: Egress::new(),
            spawning: Spawning {
                keeper: Some(PathBuf::from(env!("CARGO_BIN_EXE_toolgate-mcp-fixture"))),
                environment: std::env::vars_os().collect(),
                ..Spawning::default()
            },
            workspace: workspace.clone(),
            sign_ins: None,
        });
        Self {
            source: McpSource::new(servers.clone()),
            servers,
            project: ProjectId::new(Uuid::from_u128(1)),
            workspace,
            stop: CancellationToken::new(),
            told: Arc::default(),
            store,
            settings,
        }
    }

    /// A world with one server, named `fix`, that is connected.
    pub async fn with(fixture: &Fixture) -> Self {
        let world = Self::new(settings());
        world.put("fix", &fixture.config()).await;
        world.ready("fix").await;
        world
    }

    pub async fn put(&self, name: &str, config: &Value) -> ServerView {
        self.servers
            .put(self.project, name, config)
            .await
            .expect("it is added")
    }

    /// Connects it and looks at it.
    pub async fn ready(&self, name: &str) -> ServerView {
        let view = self.servers.test(self.project, name).await.expect("it is there");
        assert_eq!(view.status, Status::Ready, "{view:?}");
        view
    }

    /// Waits until the log of the server `fix` holds a line with these words, and gives all of its lines.
    pub async fn until_logged(&self, words: &str) -> Vec<String> {
        let wait = async {
            loop {
                let lines = self.servers.log(self.project, "fix").await.expect("it is there");
                let lines: Vec<String> = lines.into_iter().map(|line| line.text).collect();
                if lines.iter().any(|line| line.contains(words)) {
                    return lines;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let logged = tokio::time::timeout(SOON, wait).await;
        logged.unwrap_or_else(|_| panic!("{words:?} was not logged within {SOON:?}"))
    }

    pub async fn list(&self) -> Arc<ToolList> {
        self.source.list(self.project).await.expect("a list")
    }

    pub async fn names(&self) -> Vec<String> {
        self.list().await.keys().cloned().collect()
    }

    /// Waits until these tools are listed, and no others.
    pub async fn until_listed(&self, names: &[&str]) {
        let wait = async {
            while self.names().await != names {
                tokio::time::sleep(LOOK).await;
            }
        };
        let listed = tokio::time::timeout(SOON, wait).await;
        listed.unwrap_or_else(|_| panic!("{names:?} were not listed within {SOON:?}"));
    }

    /// A tool as a run pins it.
    pub async fn pinned(&self, name: &str) -> SourceTool {
        let list = self.list().await;
        let listed = list
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {:?}", list.keys()));
        SourceTool {
            source: SOURCE.into(),
            tool: name.to_owned(),
            placement: Placement::Mcp,
            config: listed.config().cloned(),
            listed: Some(listed.hash().to_owned()),
        }
    }

    /// Calls a tool by the name that models are told.
    pub async fn call(&self, name: &str, input: Value) -> Result<Called, CallFailure> {
        let tool = self.pinned(name).await;
        self.call_pinned(&tool, input).await
    }

    pub async fn call_pinned(&self, tool: &SourceTool, input: Value) -> Result<Called, CallFailure> {
        self.source.still_offers(tool, self.project).await?;
        self.call_in(tool, input, &self.context()).await
    }

    pub async fn call_in(
        &self,
        tool: &SourceTool,
        input: Value,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        let input = Json::from(input);
        let called = self.source.call(tool, &input, context);
        tokio::time::timeout(SOON, called).await.expect("it ends")
    }

    /// The output of a call.
    pub async fn output(&self, name: &str, input: Value) -> Value {
        match self.call(name, input).await.expect("it works") {
            Called::Output(output) => output.to_value(),
            Called::Delegated(delegation) => panic!("{delegation:?}"),
        }
    }

    pub fn space(&self) -> SpaceId {
        SpaceId::new(Uuid::from_u128(2))
    }

    /// The context of another call, in another space.
    pub fn context_in(&self, space: u128, number: u32) -> CallContext {
        let context = self.context();
        CallContext {
            space: SpaceId::new(Uuid::from_u128(space)),
            call: CallId {
                number,
                ..context.call
            },
            ..context
        }
    }

    pub fn context(&self) -> CallContext {
        let now = toolgate_engine::clock::Clock::now(&SystemClock);
        let run = RunId::new(Uuid::from_u128(3));
        let told = self.told.clone();
        CallContext {
            project: self.project,
            space: self.space(),
            run,
            root: run,
            depth: 0,
            agent: "default".parse().expect("a name"),
            entity: EntityId::new(Uuid::from_u128(4)),
            call: CallId { run, number: 0 },
            profile: None,
            works_for: None,
            user_token: Err(NoToken::Absent),
            turns: Vec::new(),
            tools: Vec::new(),
            grants: Vec::new(),
            deadline: now.after(SOON),
            now,
            cancel: CancellationToken::new(),
            log: Default::default(),
            sampling: Default::default(),
            progress: Arc::new(move |progress| told.lock().expect("no panic").push(progress.to_value())),
        }
    }
}
