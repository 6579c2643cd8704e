//! This door with an engine behind it.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use toolgate_access::file_links::{FileLinks, LinkLimits};
use toolgate_door_http::{Prices, Resources, api, router};
use toolgate_egress::Egress;
use toolgate_engine::Settings;
use toolgate_engine::deletion::Deletions;
use toolgate_engine::outbox::Outbox;
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::retention::Rules;
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_http::describe::document;
use toolgate_plugins::{PluginSettings, Plugins, PluginsParts};
use toolgate_sources::{Commands, McpServers, McpServersParts, McpSettings, Spawning};
use toolgate_testkit_http::contract::Contract;
use toolgate_testkit_http::world::{Ground, WorldSettings};
use toolgate_tools::knowledge::Library;
use toolgate_tools::readable::Reader;
use toolgate_tools::{Editor, PlanLimits};

pub use toolgate_testkit_http::world::{
    BODY_BYTES_MAX, FAR, HEARTBEAT, HIDDEN, OTHER_PUBLIC, PUBLIC, SECRET, agent, agent_with_tasks, project,
    token,
};

pub const FILE_BYTES_MAX: usize = 100_000;
/// The program that MCP servers may be.
pub const SHELL: &str = "/bin/sh";
/// How long links to files last.
pub const LINKS: LinkLimits = LinkLimits {
    lifetime: Duration::from_secs(60),
    lifetime_max: Duration::from_secs(600),
};

static DOCUMENT: LazyLock<String> = LazyLock::new(|| document([api()]));
pub static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(&DOCUMENT));

/// A gateway with this door alone.
pub struct World {
    world: toolgate_testkit_http::world::World,
    pub outbox: Arc<Outbox>,
    pub workspace: Workspace,
}

impl World {
    pub async fn new() -> Self {
        Self::with(|_| ()).await
    }

    /// One whose readers are cut when they lag so many bytes behind.
    pub async fn with_backlog(bytes: usize) -> Self {
        Self::with_engine(|settings| settings.reader_backlog.bytes = bytes).await
    }

    /// One with other settings of the engine.
    pub async fn with_engine(change: impl FnOnce(&mut Settings)) -> Self {
        Self::with(|settings| change(&mut settings.engine)).await
    }

    pub async fn with(change: impl FnOnce(&mut WorldSettings)) -> Self {
        let mut kept = None;
        let doors = |ground: &Ground| {
            let limits = WorkspaceLimits {
                file_bytes_max: FILE_BYTES_MAX,
                files_max: 5,
                ..WorkspaceLimits::default()
            };
            let workspace = Workspace::new(ground.store.clone(), limits);
            let outbox = Arc::new(Outbox::new(ground.store.clone(), ground.clock.clone()));
            let servers_workspace = workspace.clone();
            kept = Some((workspace.clone(), outbox.clone()));
            let knowledge = Library::new(ground.store.clone(), Arc::new(Reader::here()));
            let deletions = Deletions::new(
                ground.shared.engine.clone(),
                ground.store.clone(),
                Arc::new(Rules::default()),
            );
            let resources = Resources {
                deletions: Arc::new(deletions),
                records: ground.store.clone(),
                state: Arc::new(Editor {
                    updater: RecordUpdater::new(ground.store.clone()),
                    plans: PlanLimits::default(),
                }),
                workspace,
                links: FileLinks::new(ground.store.clone(), LINKS),
                public_url: None,
                knowledge: Arc::new(knowledge),
                plugins: Plugins::new(PluginsParts {
                    records: ground.store.clone(),
                    clock: ground.clock.clone(),
                    resolver: Arc::new(PluginSettings::default()),
                    egress: Egress::new(),
                    engine: "0.1.0".parse().expect("a version"),
                }),
                mcp: McpServers::new(McpServersParts {
                    records: ground.store.clone(),
                    clock: ground.clock.clone(),
                    resolver: Arc::new(Arc::new(McpSettings {
                        commands: Commands::Only(vec![SHELL.to_owned()]),
                        ..McpSettings::default()
                    })),
                    egress: Egress::new(),
                    spawning: Spawning::default(),
                    workspace: servers_workspace,
                    sign_ins: None,
                }),
                outbox,
                metrics: Arc::new(|| "toolgate_up 1\n".into()),
                openapi: LazyLock::new(|| DOCUMENT.clone()),
                first_agent: agent().into(),
                prices: Prices::default(),
                sandbox_lacks: vec!["landlock".into()],
            };
            router(ground.shared.clone(), resources)
        };
        let world = toolgate_testkit_http::world::World::new(&CONTRACT, change, doors).await;
        let (workspace, outbox) = kept.expect("the doors were made");
        Self {
            world,
            outbox,
            workspace,
        }
    }
}

impl Deref for World {
    type Target = toolgate_testkit_http::world::World;
    fn deref(&self) -> &Self::Target {
        &self.world
    }
}
impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.world
    }
}
