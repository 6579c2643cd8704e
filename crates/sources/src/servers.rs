//! Everything that is done with the MCP servers of a project.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_egress::{Egress, Policy};
use toolgate_engine::clock::Clock;
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{Amendment, Change, Records};
use toolgate_engine::store::StoreError;
use toolgate_engine::workspace::Workspace;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::problem::{Problem, member};
use toolgate_mcp::{Abilities, About, Keeper, Server};
use toolgate_worker::{KEEP_SERVER, KeptLimits};

use crate::config::{Reach, ServerConfig, check_server_name};
use crate::diff::{Difference, differences};
use crate::error::ServerError;
use crate::index::{Catalog, INDEX, Read, State, StoredServer, StoredTool, catalog_id, record_set};
use crate::live::LiveCalls;
use crate::oauth::{self, Auth, Identities, Identity, SignInParts};
use crate::pool::{Pool, Spawning};
use crate::review;
use crate::settings::{McpResolver, McpSettings};
use crate::snapshot::{Cache, Configured, Origin, Snapshot};
use crate::supervisor::{Open, Patience, Spec, Status};

/// How long the tools of a server that was never connected are waited for, from the moment that somebody first asks.
const FIRST_LISTING: Duration = Duration::from_secs(15);
/// Longest time for connections to close when the gateway stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks a model on behalf of a server.
#[async_trait]
pub trait Sampler: Send + Sync {
    /// The result of `sampling/createMessage` with these parameters.
    async fn sample(&self, project: ProjectId, params: Value) -> Result<Value, String>;
}

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
    /// Asks a model for servers that may have one asked; without one, none may.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// What sign-ins need; without it nobody signs in.
    pub sign_ins: Option<SignInParts>,
}

/// The MCP servers of all projects. Cheap to clone. Dropping the last one ends all connections.
#[derive(Clone)]
pub struct McpServers(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    updater: RecordUpdater,
    pub clock: Arc<dyn Clock>,
    resolver: Arc<dyn McpResolver>,
    egress: Egress,
    spawning: Spawning,
    pub workspace: Workspace,
    pub sampler: Option<Arc<dyn Sampler>>,
    pub cache: Cache,
    pub pool: Pool,
    pub live: LiveCalls,
    pub tasks: TaskTracker,
    pub identities: Option<Identities>,
}

/// A server as people see it.
#[derive(Debug, Clone)]
pub struct ServerView {
    /// What it is called, `<agent>/<server>` for one of an agent.
    pub name: String,
    /// Who configured it.
    pub origin: Origin,
    /// Its configuration without the values of headers and variables.
    pub config: Value,
    /// Where the connection stands, on this node.
    pub status: Status,
    /// It waits for a person to sign in, as far as this node knows.
    pub needs_sign_in: bool,
    /// What it lists; none if it was never connected.
    pub catalog: Option<Arc<Catalog>>,
}

/// A tool as people see it.
#[derive(Debug, Clone)]
pub struct ToolView<'c> {
    /// The server's own name for it.
    pub original: &'c str,
    /// The tool.
    pub tool: &'c StoredTool,
    /// What differs from the definition that was accepted last.
    pub diff: Vec<Difference>,
}

impl ServerView {
    /// Its tools, by the server's own names.
    pub fn tools(&self) -> impl Iterator<Item = ToolView<'_>> {
        let tools = self.catalog.iter().flat_map(|catalog| &catalog.tools);
        tools
            .filter(|(_, tool)| !tool.gone)
            .map(|(original, tool)| ToolView {
                original,
                diff: tool
                    .accepted
                    .as_ref()
                    .map(|accepted| differences(accepted, &tool.definition))
                    .unwrap_or_default(),
                tool,
            })
    }
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
            sampler: parts.sampler,
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

    fn view(&self, project: ProjectId, key: &str, server: &Configured, snapshot: &Snapshot) -> ServerView {
        let catalog = snapshot.catalogs.get(key).cloned();
        let same = |catalog: &Arc<Catalog>| catalog.fingerprint == server.config.fingerprint();
        ServerView {
            name: key.to_owned(),
            origin: server.origin.clone(),
            config: ServerConfig::shown(&server.written),
            status: self
                .pool
                .known(project, key)
                .map_or(Status::Configured, |handle| handle.status()),
            needs_sign_in: self.identities.as_ref().is_some_and(|identities| {
                identities.is_needed(&Identity {
                    project,
                    server: key.to_owned(),
                })
            }),
            catalog: catalog.filter(same),
        }
    }

    /// Reads a configuration that is not the operator's, and checks what it may reach.
    fn check(
        &self,
        written: &Value,
        pointer: &str,
        settings: &McpSettings,
    ) -> Result<ServerConfig, ServerError> {
        let config = ServerConfig::read(written, pointer).map_err(ServerError::Invalid)?;
        match &config.reach {
            Reach::Command { program, .. } if !settings.commands.permits(program) => {
                Err(ServerError::Command(program.clone()))
            }
            Reach::Command { .. } => Ok(config),
            Reach::Http { url, .. } => {
                let client = self.egress.client(Policy::public(settings.allow.clone()));
                match client.check(url) {
                    Ok(()) => Ok(config),
                    Err(refused) => {
                        let words =
                            format!("{refused}; the setting `outside.allow` permits addresses inside");
                        let problem = Problem::new(member(pointer, "url"), words);
                        Err(ServerError::Invalid(vec![problem]))
                    }
                }
            }
        }
    }

    /// Adds servers and removes those that are stale, in one change. Says how many were removed.
    async fn store(
        &self,
        project: ProjectId,
        settings: &McpSettings,
        add: &BTreeMap<String, Value>,
        is_stale: impl Fn(&str) -> bool,
    ) -> Result<usize, ServerError> {
        let now = self.clock.now();
        let decide = |read: Read| {
            let mut index = read.index.clone();
            let stale: Vec<String> = index
                .servers
                .keys()
                .filter(|key| is_stale(key))
                .cloned()
                .collect();
            let mut changes = Vec::new();
            for key in &stale {
                index.servers.remove(key);
                index.catalogs.remove(key);
                changes.push(Change::Remove(catalog_id(key)));
            }
            for (key, config) in add {
                let known = index.servers.get(key);
                if known.is_some_and(|known| known.config == *config) {
                    continue;
                }
                let server = StoredServer {
                    config: config.clone(),
                    added_at: known.map_or(now, |known| known.added_at),
                    updated_at: now,
                };
                index.servers.insert(key.clone(), server);
            }
            let count = index.servers.len() + settings.servers.len();
            if count > settings.limits.servers && index.servers.len() > read.index.servers.len() {
                return Err(ServerError::TooMany(settings.limits.servers));
            }
            let changed = index != read.index;
            let amendment = match changed {
                false => Amendment::default(),
                true => {
                    changes.push(index.put());
                    Amendment {
                        expected: vec![read.expected()],
                        changes,
                        ..Amendment::default()
                    }
                }
            };
            Ok((amendment, stale.len()))
        };
        let set = record_set(project);
        let stored = self.updater.update(set, now, || self.read(project), decide).await;
        // Also after a failure: a store that gave no answer may have done it.
        self.changed(project).await?;
        stored
    }

    async fn read(&self, project: ProjectId) -> Result<Read, StoreError> {
        Read::of(self.updater.records().record(record_set(project), INDEX).await?)
    }

    async fn changed(&self, project: ProjectId) -> Result<(), StoreError> {
        self.cache.changed(project).await;
        let snapshot = self.cache.snapshot(project).await?;
        self.pool
            .retain(project, |key| snapshot.servers.contains_key(key));
        Ok(())
    }

    /// Reads the catalog of a server, decides, and stores what comes of it.
    async fn change_catalog(
        &self,
        project: ProjectId,
        key: &str,
        change: impl Fn(Option<Catalog>) -> Result<Catalog, ServerError>,
    ) -> Result<(), ServerError> {
        let read = || async {
            let records = self.updater.records();
            let index = self.read(project).await?;
            let record = records.record(record_set(project), &catalog_id(key)).await?;
            let catalog = record.as_ref().map(Catalog::of).transpose()?;
            Ok((index, catalog))
        };
        let decide = |(read, before): (Read, Option<Catalog>)| {
            let after = change(before.clone())?;
            if before.as_ref() == Some(&after) {
                return Ok((Amendment::default(), false));
            }
            let mut index = read.index.clone();
            *index.catalogs.entry(key.to_owned()).or_default() += 1;
            let amendment = Amendment {
                expected: vec![read.expected()],
                changes: vec![after.put(key), index.put()],
                ..Amendment::default()
            };
            Ok::<_, ServerError>((amendment, true))
        };
        let (set, now) = (record_set(project), self.clock.now());
        if self.updater.update(set, now, read, decide).await? {
            self.cache.changed(project).await;
        }
        Ok(())
    }

    /// A server has listed its tools.
    pub async fn listed(&self, spec: &Spec, about: About, tools: Vec<Value>) -> Result<(), String> {
        let words = |error: StoreError| format!("what it lists cannot be stored: {error}");
        let settings = self.resolver.mcp_settings(spec.project).await.map_err(words)?;
        let limits = settings.limits;
        if tools.len() > limits.tools {
            return Err(format!(
                "it lists {} tools, at most {} are taken; \"tools\" and the setting `mcp.tools_max` change that",
                tools.len(),
                limits.tools
            ));
        }
        let bytes: usize = tools.iter().map(|tool| tool.to_string().len()).sum();
        if bytes > limits.catalog_bytes {
            return Err(format!(
                "what it lists has {bytes} bytes, at most {} are taken; the setting `mcp.catalog_bytes_max` changes that",
                limits.catalog_bytes
            ));
        }
        let Configured {
            name, config, origin, ..
        } = &spec.configured;
        let snapshot = self.cache.snapshot(spec.project).await.map_err(words)?;
        let taken = taken(&snapshot, &spec.key, origin);
        let change = |before: Option<Catalog>| {
            let listing = review::Listing {
                server: name,
                fingerprint: config.fingerprint(),
                about: about.clone(),
                tools: tools.clone(),
                review: config.review,
                is_taken: &|name| taken.contains(name),
                now: self.clock.now(),
            };
            Ok(listing.reviewed(before.as_ref()))
        };
        let stored = self.change_catalog(spec.project, &spec.key, change).await;
        stored.map_err(|error| format!("what it lists cannot be stored: {error}"))
    }

    /// Starts or reaches a server and has it list its tools.
    pub async fn connect(&self, spec: &Spec) -> Result<Open, String> {
        let unread = |error: StoreError| format!("its settings cannot be read: {error}");
        let settings = self.resolver.mcp_settings(spec.project).await.map_err(unread)?;
        let snapshot = self.cache.snapshot(spec.project).await.map_err(unread)?;
        let known = snapshot.catalogs.get(&spec.key);
        let known = known.filter(|known| known.fingerprint == spec.configured.config.fingerprint());
        let identity = Identity {
            project: spec.project,
            server: spec.key.clone(),
        };
        let server = self.signed_in(
            self.server(&spec.configured, &settings)?,
            &identity,
            &spec.configured,
            &settings,
        )?;
        let server = server
            .protocol(known.map(|known| known.protocol.clone()))
            .abilities(Abilities {
                elicitation: true,
                sampling: spec.configured.config.sampling && self.sampler.is_some(),
                tasks: true,
            });
        let process = match &spec.configured.config.reach {
            Reach::Command { .. } => Some(self.pool.process(spec.project)?),
            Reach::Http { .. } => None,
        };
        let hidden = |words: String| settings.secrets.hide(&words);
        let connection = server.connect().await.map_err(|error| {
            self.noted(&identity, error.needs_authorization().is_some());
            hidden(error.to_string())
        })?;
        let tools = connection.list_raw().await.map_err(|error| {
            self.noted(&identity, error.needs_authorization().is_some());
            hidden(error.into())
        })?;
        self.noted(&identity, false);
        self.listed(spec, connection.about(), tools).await?;
        Ok(Open {
            connection,
            _process: process,
        })
    }

    /// The server, with whoever signs in to it.
    pub(crate) fn signed_in(
        &self,
        server: Server,
        identity: &Identity,
        configured: &Configured,
        settings: &McpSettings,
    ) -> Result<Server, String> {
        let Some(identities) = &self.identities else {
            return Ok(server);
        };
        Ok(match identities.authorizer(identity, configured, settings)? {
            Some(authorizer) => server.authorizer(authorizer),
            None => server,
        })
    }

    async fn forget_tokens(&self, project: ProjectId, key: &str) -> Result<(), StoreError> {
        let identity = Identity {
            project,
            server: key.to_owned(),
        };
        oauth::forget(&self.updater, &*self.clock, &identity).await
    }

    /// Notes whether a server waits for a person to sign in.
    pub(crate) fn noted(&self, identity: &Identity, is_needed: bool) {
        if let Some(identities) = &self.identities {
            identities.needed(identity, is_needed);
        }
    }

    /// The server with its secrets, if it may be reached.
    pub(crate) fn server(&self, configured: &Configured, settings: &McpSettings) -> Result<Server, String> {
        let fill = |text: &String| {
            let filled = settings.secrets.fill(text, str::to_owned);
            filled.map_err(|name| format!("the secret {name:?} is not set; add it to the project's settings"))
        };
        let is_operators = configured.origin == Origin::Settings;
        match &configured.config.reach {
            Reach::Http { url, headers, auth } => {
                let policy = match is_operators {
                    true => Policy::server(url),
                    false => Policy::public(settings.allow.clone()),
                };
                let client = self.egress.client(policy).streaming(url);
                let client = client.map_err(|refused| refused.to_string())?;
                let mut server = Server::http(&configured.name, url.as_str()).client(client);
                for (name, value) in headers {
                    let bad = |_| format!("the header {name:?} cannot be sent");
                    let name_of = name
                        .parse()
                        .map_err(|_| format!("{name:?} is no name of a header"))?;
                    let mut value = http::HeaderValue::try_from(fill(value)?).map_err(bad)?;
                    value.set_sensitive(true);
                    server = server.header(name_of, value);
                }
                if let Auth::Bearer(token) = auth {
                    let value = http::HeaderValue::try_from(format!("Bearer {}", fill(token)?));
                    let mut value =
                        value.map_err(|_| "the token of \"auth\" cannot be sent in a header".to_owned())?;
                    value.set_sensitive(true);
                    server = server.header(http::header::AUTHORIZATION, value);
                }
                Ok(server)
            }
            Reach::Command {
                program,
                arguments,
                environment,
                directory,
                memory_bytes,
                cpu_seconds,
                files,
            } => {
                if !is_operators && !settings.commands.permits(program) {
                    return Err(ServerError::Command(program.clone()).to_string());
                }
                let server = Server::command(&configured.name, program, arguments);
                let mut server = server.inherit(self.spawning.environment.iter().cloned());
                for (name, value) in environment {
                    server = server.env(name, fill(value)?);
                }
                if let Some(directory) = directory {
                    server = server.directory(directory);
                }
                if let Some(gateway) = &self.spawning.keeper {
                    let limits = KeptLimits {
                        memory_bytes: *memory_bytes,
                        cpu_seconds: *cpu_seconds,
                        files: *files,
                    };
                    let mut arguments = vec![KEEP_SERVER.into()];
                    arguments.extend(limits.arguments());
                    server = server.keeper(Keeper {
                        program: gateway.clone(),
                        arguments,
                    });
                }
                Ok(server)
            }
        }
    }

    /// The settings of a project.
    pub async fn settings(&self, project: ProjectId) -> Result<Arc<McpSettings>, StoreError> {
        self.resolver.mcp_settings(project).await
    }
}

/// Names of tools of other servers. Those of agents are each agent's own.
fn taken(snapshot: &Snapshot, key: &str, origin: &Origin) -> BTreeSet<String> {
    let others = snapshot.catalogs.iter().filter(|(other, _)| {
        let origin_of = snapshot.servers.get(*other).map(|server| &server.origin);
        let shares_names = match (origin, origin_of) {
            (Origin::Agent(one), Some(Origin::Agent(other))) => one == other,
            (Origin::Agent(_), _) | (_, Some(Origin::Agent(_)) | None) => false,
            (Origin::Settings | Origin::Project, Some(Origin::Settings | Origin::Project)) => true,
        };
        *other != key && shares_names
    });
    let tools = others.flat_map(|(_, catalog)| catalog.tools.values());
    tools.map(|tool| tool.name.clone()).collect()
}

fn missing(key: &str) -> ServerError {
    ServerError::Missing(format!("MCP server {key:?} in this project"))
}
