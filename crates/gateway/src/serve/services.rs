//! Everything of the gateway that is no door: tool sources, the engine, and what works beside it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use toolgate_a2a_push::{PushParts, Pusher};
use toolgate_egress::Egress;
use toolgate_engine::Engine;
use toolgate_engine::bus::Bus;
use toolgate_engine::clock::SystemClock;
use toolgate_engine::deletion::Deletions;
use toolgate_engine::feed::BacklogLimits;
use toolgate_engine::outbox::Outbox;
use toolgate_engine::push_configs::PushConfigs;
use toolgate_engine::retention::Retention;
use toolgate_engine::sources::Sources;
use toolgate_engine::store::Store;
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_kernel::id::NodeId;
use toolgate_models::{ModelSettings, Models};
use toolgate_plugins::{PluginSource, Plugins, PluginsParts};
use toolgate_remote_agents::{RemoteAgentParts, RemoteAgents};
use toolgate_sandbox::{Compute, Sandbox, SandboxOptions};
use toolgate_sources::oauth::SignInParts;
use toolgate_sources::{McpServers, McpServersParts, McpSource, Spawning};
use toolgate_tools::knowledge::Library;
use toolgate_tools::notify::Deliveries;
use toolgate_tools::readable::{READER, Reader};
use toolgate_tools::{Planner, Toolkit};
use toolgate_worker::Workers;

use super::lifecycle::Parts;
use super::prepared::Prepared;
use crate::bus::NodeBus;
use crate::projects::ProjectResolver;
use crate::settings::Settings;
use crate::storage::{self, Node};

pub struct Services {
    pub node: Node,
    pub bus: NodeBus,
    pub engine: Engine,
    pub egress: Egress,
    pub projects: Arc<ProjectResolver>,
    pub workspace: Workspace,
    pub knowledge: Arc<Library>,
    pub outbox: Arc<Outbox>,
    pub deliveries: Arc<Deliveries>,
    pub plugins: Plugins,
    pub mcp: McpServers,
    pub deletions: Arc<Deletions>,
    pub push_configs: PushConfigs,
    /// The protections of the sandbox that this machine lacks.
    pub sandbox_lacks: Vec<String>,
}

impl Services {
    pub async fn build(settings: &Settings, prepared: &Prepared) -> anyhow::Result<Self> {
        let store = prepared.store.clone();
        let workspace = Workspace::new(store.clone(), WorkspaceLimits::default());
        let program = std::env::current_exe().context("the gateway's own program, which reads documents")?;
        let sandbox = Sandbox::new(program.clone(), SandboxOptions::default());
        let sandbox_lacks = sandbox_lacks(&sandbox).await;
        let reader = Arc::new(Reader::in_workers(Workers::new(program.clone(), READER)));
        let egress = Egress::with_requests(settings.engine.outbound_requests());
        let library = Library::new(store.clone(), reader.clone());
        let knowledge = Arc::new(match settings.embeddings.model()? {
            Some(model) => library.with_embeddings(model, &egress),
            None => library,
        });
        let outbox = Arc::new(Outbox::new(store.clone(), Arc::new(SystemClock)));
        let channels = settings.notifications.channels()?;
        let deliveries = Arc::new(Deliveries::new(outbox.clone(), channels, &egress));
        let projects = Arc::new(ProjectResolver::new(settings, store.clone())?);
        let tools = Toolkit::standard(toolgate_tools::Parts {
            store: store.clone(),
            records: store.clone(),
            plans: settings.plans.limits(),
            egress: egress.clone(),
            outbound: projects.clone(),
            workspace: workspace.clone(),
            knowledge: knowledge.clone(),
            deliveries: deliveries.clone(),
            reader,
        });
        let plugins = Plugins::new(PluginsParts {
            records: store.clone(),
            clock: Arc::new(SystemClock),
            resolver: projects.clone(),
            egress: egress.clone(),
            engine: env!("CARGO_PKG_VERSION")
                .parse()
                .context("the gateway's own version")?,
        });
        let mcp = McpServers::new(McpServersParts {
            records: store.clone(),
            clock: Arc::new(SystemClock),
            resolver: projects.clone(),
            egress: egress.clone(),
            spawning: spawning(settings, &program),
            workspace: workspace.clone(),
            sign_ins: Some(sign_ins(settings, prepared).await?),
        });
        let remote_agents = RemoteAgents::new(RemoteAgentParts {
            records: store.clone(),
            clock: Arc::new(SystemClock),
            egress: egress.clone(),
            outbound: projects.clone(),
            workspace: workspace.clone(),
        });
        let sources = sources(tools, sandbox.clone())
            .with(Arc::new(PluginSource::new(plugins.clone(), sandbox)))
            .with(Arc::new(McpSource::new(mcp.clone())))
            .with(Arc::new(remote_agents));
        let node = storage::node(settings, &prepared.data)?;
        let bus = NodeBus::join(settings).await?;
        let engine = engine(
            store.clone(),
            bus.get(),
            sources,
            projects.clone(),
            node.id,
            settings,
        );
        Ok(Self {
            deletions: Arc::new(Deletions::new(engine.clone(), store.clone(), projects.clone())),
            push_configs: PushConfigs::new(store, Arc::new(SystemClock)),
            node,
            bus,
            engine,
            egress,
            projects,
            workspace,
            knowledge,
            outbox,
            deliveries,
            plugins,
            mcp,
            sandbox_lacks,
        })
    }

    /// Starts what works without being asked.
    pub fn start(&self, parts: &mut Parts, settings: &Settings, prepared: &Prepared) {
        let Self {
            engine,
            deliveries,
            deletions,
            knowledge,
            mcp,
            ..
        } = self;
        let pusher = Pusher::new(PushParts {
            engine: engine.clone(),
            directory: prepared.store.clone(),
            configs: self.push_configs.clone(),
            egress: self.egress.clone(),
            outbound: self.projects.clone(),
            secret: settings.a2a.push_secret.clone(),
        });
        let planner = Planner::new(engine.clone(), prepared.store.clone(), settings.plans.limits());
        let retention = Retention::new(
            engine.clone(),
            deletions.clone(),
            self.projects.clone(),
            settings.retention.apply_every,
        );
        let (engine, deliveries, deletions) = (engine.clone(), deliveries.clone(), deletions.clone());
        let (knowledge, mcp) = (knowledge.clone(), mcp.clone());
        parts.start(|stop| async move { engine.drive(stop).await });
        parts.start(|stop| async move { deliveries.work(stop).await });
        parts.start(|stop| pusher.run(stop));
        parts.start(|stop| planner.watch(stop));
        parts.start(|stop| async move { deletions.work(stop).await });
        parts.start(|stop| async move { retention.work(stop).await });
        parts.start(|stop| async move { knowledge.upkeep(&SystemClock, stop).await });
        parts.start(|stop| async move { mcp.run(stop).await });
    }
}

/// Every tool source of the gateway: a new one is a line here.
pub(crate) fn sources(tools: Toolkit, sandbox: Sandbox) -> Sources {
    tools.sources().with(Arc::new(Compute::new(sandbox)))
}

/// How MCP servers that are programs are started.
fn spawning(settings: &Settings, own_program: &Path) -> Spawning {
    Spawning {
        keeper: Some(own_program.to_owned()),
        environment: std::env::vars_os().collect(),
        limits: settings.mcp.processes(),
    }
}

/// What sign-ins to MCP servers need: a key, and the address that browsers come back to.
async fn sign_ins(settings: &Settings, prepared: &Prepared) -> anyhow::Result<SignInParts> {
    Ok(SignInParts {
        key: storage::encryption_key(settings, &prepared.data, &*prepared.store).await?,
        public_url: settings.files.address()?.unwrap_or_else(|| prepared.url()),
    })
}

/// The protections of the sandbox that this machine lacks. Whoever runs the gateway is told at the start.
async fn sandbox_lacks(sandbox: &Sandbox) -> Vec<String> {
    let protection = match sandbox.protection().await {
        Ok(protection) => protection,
        Err(error) => {
            tracing::warn!(%error, "the sandbox cannot be tried: calls of `compute` tools and plugins may fail");
            return vec!["worker".into()];
        }
    };
    for (name, reason) in protection.missing() {
        tracing::warn!(
            protection = name,
            reason,
            "code in the sandbox runs without one of its protections"
        );
    }
    protection
        .missing()
        .into_iter()
        .map(|(name, _)| name.into())
        .collect()
}

fn engine(
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
    tools: Sources,
    projects: Arc<ProjectResolver>,
    node: NodeId,
    settings: &Settings,
) -> Engine {
    let vendors = &settings.vendors;
    let models = Models::new(ModelSettings {
        openai_key: vendors.openai_key.clone(),
        anthropic_key: vendors.anthropic_key.clone(),
        google_key: vendors.google_key.clone(),
        connect_timeout: vendors.connect_timeout,
        idle_timeout: vendors.idle_timeout,
        attempts: vendors.attempts,
        pace: vendors.pace,
        direct: vendors.direct,
    });
    let parts = toolgate_engine::Parts {
        store,
        model: Arc::new(models),
        tools,
        clock: Arc::new(SystemClock),
        bus,
    };
    let settings = toolgate_engine::Settings {
        node,
        runs_active: settings.engine.runs_active(),
        model_calls: settings.engine.model_calls(),
        parallel_calls: settings.engine.parallel_calls,
        reader_backlog: BacklogLimits {
            bytes: settings.engine.reader_backlog_bytes,
            stall: settings.engine.reader_stall,
        },
        history_bytes_max: settings.engine.history_bytes_max,
        quotas: settings.quotas.limits(),
        drain: settings.drain,
        node_lease: settings.engine.node_lease,
        projects,
        always_evict: false,
    };
    Engine::new(parts, settings)
}
