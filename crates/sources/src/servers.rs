//! Everything that is done with the MCP servers of a project.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_egress::Egress;
use toolgate_engine::clock::Clock;
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::Records;
use toolgate_engine::store::StoreError;
use toolgate_engine::workspace::Workspace;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::problem::{Problem, member};

use crate::config::{Reach, check_server_name};
use crate::error::ServerError;
use crate::index::{Catalog, State};
use crate::live::LiveCalls;
use crate::oauth::{Identities, SignInParts};
use crate::pool::{Pool, Spawning};
use crate::rounds::Rounds;
use crate::server_log::{LogLine, ServerLogs};
use crate::server_view::ServerView;
use crate::settings::{McpResolver, McpSettings};
use crate::snapshot::{Cache, Configured, Origin, Snapshot};
use crate::supervisor::{Patience, Status};

/// How long the tools of a server that was never connected are waited for, from the moment that somebody first asks.
const FIRST_LISTING: Duration = Duration::from_secs(15);
/// Longest time for connections to close when the gateway stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// What the servers work with.
pub struct McpServersParts {
    /// Where they are stored.
    pub records: Arc<dyn Records>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The settings of projects.
    pub resolver: Arc<dyn McpResolver>,
    /// Connections to servers of others.
    pub egress: Egress,
    /// How servers that are programs are run.
    pub spawning: Spawning,
    /// Takes pictures, sounds and other files that tools give.
    pub workspace: Workspace,
    /// What sign-ins need; without it nobody signs in.
    pub sign_ins: Option<SignInParts>,
}

/// The MCP servers of all projects. Cheap to clone. Dropping the last one ends all connections.
#[derive(Clone)]
pub struct McpServers(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub updater: RecordUpdater,
    pub clock: Arc<dyn Clock>,
    pub resolver: Arc<dyn McpResolver>,
    pub egress: Egress,
    pub spawning: Spawning,
    pub workspace: Workspace,
    pub rounds: Rounds,
    pub cache: Cache,
    pub pool: Pool,
    pub logs: Arc<ServerLogs>,
    pub live: LiveCalls,
    pub tasks: TaskTracker,
    pub identities: Option<Identities>,
}

/// What a person decides about a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is offered.
    Approve,
    /// It is not.
    Reject,
}

impl McpServers {
    /// The servers in this store.
    pub fn new(parts: McpServersParts) -> Self {
        let updater = RecordUpdater::new(parts.records.clone());
        let identities = parts.sign_ins.as_ref().map(|sign_ins| {
            Identities::new(
                sign_ins,
                updater.clone(),
                parts.clock.clone(),
                parts.egress.clone(),
                parts.resolver.clone(),
            )
        });
        Self(Arc::new(Inner {
            cache: Cache::new(parts.records, parts.resolver.clone()),
            identities,
            updater,
            clock: parts.clock,
            resolver: parts.resolver,
            egress: parts.egress,
            pool: Pool::new(parts.spawning.limits),
            spawning: parts.spawning,
            workspace: parts.workspace,
            rounds: Rounds::default(),
            logs: Arc::default(),
            live: LiveCalls::default(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Connects the operator's servers of a project now, in the background and all at once, so that the first call finds
    /// them up.
    pub async fn warm(&self, project: ProjectId) -> Result<(), StoreError> {
        let snapshot = self.0.cache.snapshot(project).await?;
        let servers = snapshot.servers.iter();
        for (key, server) in servers.filter(|(_, server)| server.origin == Origin::Settings) {
            self.begin(project, key, server);
        }
        Ok(())
    }

    fn begin(&self, project: ProjectId, key: &str, server: &Configured) {
        let handle = self.0.pool.handle(&self.0, project, key, server);
        // What comes of it is told by its status.
        let connect = async move { drop(handle.lease(Patience::Wait).await) };
        self.0.tasks.spawn(connect);
    }

    /// Runs until `stop` fires, then closes all connections.
    pub async fn run(&self, stop: CancellationToken) {
        stop.cancelled().await;
        self.0.pool.stop();
        self.0.live.end_all();
        self.0.tasks.close();
        if tokio::time::timeout(STOP_TIMEOUT, self.0.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("some MCP servers did not end in time");
        }
    }

    /// All servers of a project, by name.
    pub async fn list(&self, project: ProjectId) -> Result<Vec<ServerView>, StoreError> {
        let snapshot = self.0.cache.snapshot(project).await?;
        let view = |(key, server): (&String, &Configured)| self.0.view(project, key, server, &snapshot);
        Ok(snapshot.servers.iter().map(view).collect())
    }

    /// One server.
    pub async fn get(&self, project: ProjectId, key: &str) -> Result<ServerView, ServerError> {
        let snapshot = self.0.cache.snapshot(project).await?;
        let server = snapshot.servers.get(key).ok_or_else(|| missing(key))?;
        Ok(self.0.view(project, key, server, &snapshot))
    }

    /// Adds a server or changes it, and begins to connect it.
    pub async fn put(
        &self,
        project: ProjectId,
        name: &str,
        written: &Value,
    ) -> Result<ServerView, ServerError> {
        check_server_name(name).map_err(|words| ServerError::Invalid(vec![Problem::new("", words)]))?;
        let settings = self.0.resolver.mcp_settings(project).await?;
        if settings.servers.contains_key(name) {
            return Err(ServerError::Settings(name.to_owned()));
        }
        self.0.check(written, "", &settings)?;
        let servers = BTreeMap::from([(name.to_owned(), written.clone())]);
        self.0.store(project, &settings, &servers, |_| false).await?;
        let snapshot = self.0.cache.snapshot(project).await?;
        let server = snapshot.servers.get(name).ok_or_else(|| missing(name))?;
        self.begin(project, name, server);
        Ok(self.0.view(project, name, server, &snapshot))
    }

    /// Removes a server and what is known of its tools. False if there is none.
    pub async fn remove(&self, project: ProjectId, name: &str) -> Result<bool, ServerError> {
        let settings = self.0.resolver.mcp_settings(project).await?;
        if settings.servers.contains_key(name) {
            return Err(ServerError::Settings(name.to_owned()));
        }
        let removed = self
            .0
            .store(project, &settings, &BTreeMap::new(), |key| key == name)
            .await?;
        self.0.forget_tokens(project, name).await?;
        Ok(removed > 0)
    }

    /// Connects a server now, whatever happened before, and has it list its tools. The view says what came of it.
    pub async fn test(&self, project: ProjectId, key: &str) -> Result<ServerView, ServerError> {
        let snapshot = self.0.cache.snapshot(project).await?;
        let server = snapshot.servers.get(key).ok_or_else(|| missing(key))?;
        let handle = self.0.pool.handle(&self.0, project, key, server);
        // The status says it as well.
        drop(handle.lease(Patience::Now).await);
        self.get(project, key).await
    }

    /// Ends the connections to a server, and with them its programs, and connects it anew, whatever happened before. Calls
    /// under way end as they do when a server dies. The view says where the new connection stands.
    pub async fn restart(&self, project: ProjectId, key: &str) -> Result<ServerView, ServerError> {
        let snapshot = self.0.cache.snapshot(project).await?;
        let server = snapshot.servers.get(key).ok_or_else(|| missing(key))?;
        let handle = self.0.pool.handle(&self.0, project, key, server);
        handle.restart().await;
        Ok(self.0.view(project, key, server, &snapshot))
    }

    /// What the program of a server wrote to its standard error last, on this node, oldest first; nothing for a server at
    /// an address.
    pub async fn log(&self, project: ProjectId, key: &str) -> Result<Vec<LogLine>, ServerError> {
        let snapshot = self.0.cache.snapshot(project).await?;
        let server = snapshot.servers.get(key).ok_or_else(|| missing(key))?;
        Ok(match server.config.reach {
            Reach::Command { .. } => self.0.logs.lines(project, key),
            Reach::Http { .. } => Vec::new(),
        })
    }

    /// Decides about the definition of a tool; `hash` names the one that was looked at.
    pub async fn decide(
        &self,
        project: ProjectId,
        key: &str,
        tool: &str,
        hash: Option<&str>,
        decision: Decision,
    ) -> Result<ServerView, ServerError> {
        let now = self.0.clock.now();
        let change = |before: Option<Catalog>| {
            let mut catalog = before.ok_or_else(|| missing(key))?;
            let no_tool = || ServerError::Missing(format!("tool {tool:?} of the server {key:?}"));
            let known = catalog.tools.get_mut(tool).filter(|known| !known.gone);
            let known = known.ok_or_else(no_tool)?;
            if hash.is_some_and(|hash| hash != known.hash) {
                return Err(ServerError::Changed(tool.to_owned()));
            }
            match decision {
                Decision::Approve => {
                    known.state = State::Accepted;
                    known.accepted = None;
                }
                Decision::Reject => {
                    if known.state == State::Accepted {
                        known.accepted = None;
                    }
                    known.state = State::Rejected { at: now };
                }
            }
            catalog.changed_at = now;
            Ok(catalog)
        };
        self.0.change_catalog(project, key, change).await?;
        self.get(project, key).await
    }

    /// What is wrong with the servers that an agent brings: `{name: {url | command, …}}`. Problems stand under `pointer`.
    pub async fn check_agents(
        &self,
        project: ProjectId,
        written: &Map<String, Value>,
        pointer: &str,
    ) -> Result<(), ServerError> {
        let settings = self.0.resolver.mcp_settings(project).await?;
        let mut problems = Vec::new();
        for (name, server) in written {
            let place = member(pointer, name);
            if let Err(words) = check_server_name(name) {
                problems.push(Problem::new(&place, words));
            }
            match self.0.check(server, &place, &settings) {
                Err(ServerError::Invalid(more)) => problems.extend(more),
                Err(error @ ServerError::Command(_)) => {
                    problems.push(Problem::new(member(&place, "command"), error.to_string()));
                }
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(ServerError::Invalid(problems)),
        }
    }

    /// Replaces the servers that an agent brings, which were checked before. Waits a moment for those that were never
    /// connected, so that their tools are there when the agent is read.
    pub async fn put_agents(
        &self,
        project: ProjectId,
        agent: &str,
        written: &Map<String, Value>,
    ) -> Result<(), ServerError> {
        let prefix = format!("{agent}/");
        let snapshot = self.0.cache.snapshot(project).await?;
        if written.is_empty() && !snapshot.servers.keys().any(|key| key.starts_with(&prefix)) {
            return Ok(());
        }
        let settings = self.0.resolver.mcp_settings(project).await?;
        let servers = written.iter();
        let servers: BTreeMap<String, Value> = servers
            .map(|(name, server)| (format!("{prefix}{name}"), server.clone()))
            .collect();
        let stale = |known: &str| known.starts_with(&prefix) && !servers.contains_key(known);
        self.0.store(project, &settings, &servers, stale).await?;
        let snapshot = self.0.cache.snapshot(project).await?;
        self.0.first_listings(project, &snapshot).await;
        Ok(())
    }
}

impl Inner {
    /// The servers of a project, those that were never connected after a moment in which they may be.
    pub async fn listed_servers(self: &Arc<Self>, project: ProjectId) -> Result<Arc<Snapshot>, StoreError> {
        let snapshot = self.cache.snapshot(project).await?;
        match self.first_listings(project, &snapshot).await {
            true => self.cache.snapshot(project).await,
            false => Ok(snapshot),
        }
    }

    /// Waits for servers without a catalog, all at once, and no longer than [`FIRST_LISTING`] from their first use.
    /// Says whether there were any.
    async fn first_listings(self: &Arc<Self>, project: ProjectId, snapshot: &Snapshot) -> bool {
        let mut waits = tokio::task::JoinSet::new();
        for (key, server) in &snapshot.servers {
            let catalog = snapshot.catalogs.get(key);
            if catalog.is_some_and(|catalog| catalog.fingerprint == server.config.fingerprint()) {
                continue;
            }
            let handle = self.pool.handle(self, project, key, server);
            if let Some(left) = handle.left_of(FIRST_LISTING)
                && matches!(handle.status(), Status::Configured | Status::Connecting)
            {
                waits.spawn(
                    async move { drop(tokio::time::timeout(left, handle.lease(Patience::Wait)).await) },
                );
            }
        }
        let waited = !waits.is_empty();
        waits.join_all().await;
        waited
    }

    /// The settings of a project.
    pub async fn settings(&self, project: ProjectId) -> Result<Arc<McpSettings>, StoreError> {
        self.resolver.mcp_settings(project).await
    }
}

fn missing(key: &str) -> ServerError {
    ServerError::Missing(format!("MCP server {key:?} in this project"))
}
