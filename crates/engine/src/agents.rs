//! Configurations, compiled once per revision.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use toolgate_fair::Share;
use toolgate_kernel::agent::{self, Agent, Catalog, Defaults, Missing, ModelSpec, Provider, Starter};
use toolgate_kernel::id::{EntityId, ProjectId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::problem::Problem;
use toolgate_kernel::prompt::OfferedTool;
use toolgate_kernel::schema::Profile;
use toolgate_kernel::tool::{
    self, Checked, ClientTool, ClientToolLimits, KeyKind, Placement, ResultSchema, Rules, Tool, Toolbox,
    client_tool_hash,
};

use crate::TooManyWait;
use crate::intake::IntakeError;
use crate::shares::share_of;
use crate::sources::Sources;
use crate::store::{AgentRecord, Purged, SpaceRecord, StoreError, StoredDefinition};
use crate::{Engine, Inner};

/// How long another node's change to an agent may stay unseen here.
const NEWEST_KNOWN_FOR: Duration = Duration::from_secs(1);
/// Compiled revisions kept in memory.
const COMPILED_MAX: usize = 1_000;
/// Compiled tools of stored definitions kept in memory.
const STORED_TOOLS_MAX: usize = 1_000;
/// Compiled sets of client tools kept in memory. Few: callers choose what is in them, and each may weigh megabytes.
const MERGED_MAX: usize = 64;

/// Why a configuration was not stored.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It is wrong in these ways.
    #[error("the configuration has {} problems", .0.len())]
    Invalid(Vec<Problem>),
    /// Too many requests wait to be checked.
    #[error(transparent)]
    TooManyWait(#[from] TooManyWait),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

type Key = (ProjectId, AgentName);

/// An agent as runs use it.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub revision: u32,
    pub agent: Arc<Agent>,
    pub tools: Arc<Kit>,
    /// What the project's sources offered when it was compiled.
    catalog: Arc<Catalog>,
    /// The project's default model when it was compiled.
    default_model: ModelSpec,
}

impl Compiled {
    fn new(revision: u32, agent: Agent, catalog: Arc<Catalog>, default_model: ModelSpec) -> Self {
        Self {
            revision,
            tools: Arc::new(Kit::new(agent.tools.clone())),
            agent: Arc::new(agent),
            catalog,
            default_model,
        }
    }

    /// The agent that answers a prompt tool, or this one itself. None when there is no such tool.
    pub fn behind(self, tool: Option<&ToolName>) -> Option<Self> {
        match tool {
            None => Some(self),
            Some(tool) => {
                let agent = self.agent.behind(tool)?;
                Some(Self::new(self.revision, agent, self.catalog, self.default_model))
            }
        }
    }

    /// The agent that answers this prompt tool. None when it is another kind of tool.
    pub fn behind_tool(self, tool: &Tool) -> Option<Self> {
        let agent = self.agent.behind_tool(tool)?;
        Some(Self::new(self.revision, agent, self.catalog, self.default_model))
    }

    /// The tool that the project has under this name, whether or not the agent has it.
    pub fn named_tool(&self, name: &ToolName) -> Option<Arc<Tool>> {
        let defaults = Defaults {
            model: self.default_model.clone(),
            catalog: &self.catalog,
            missing: Missing::Refused,
        };
        agent::tools_by_name(&[name.to_string()], &defaults).pop()
    }

    /// The agent with an answer that must fit a schema, when the call that starts it says so.
    pub fn with_result(mut self, result: Option<ResultSchema>) -> Self {
        if let Some(result) = result {
            self.agent = Arc::new(Agent::clone(&self.agent).with_result(result));
        }
        self
    }
}

/// Tools of a run: the agent's, or the agent's and a caller's.
pub(crate) struct Kit {
    pub toolbox: Arc<Toolbox>,
    /// As models are told of them.
    pub offered: Arc<[OfferedTool]>,
    /// The hash of every definition, by name.
    pub pins: Json,
    /// The version of every tool that has one, by name.
    pub versions: BTreeMap<ToolName, String>,
    /// Whether a run that began with these tools has stored their definitions already.
    pub stored: AtomicBool,
    /// Whether one of the tools passes the token of the user on; found out when it matters first.
    pub passes_user_token: OnceLock<bool>,
}

impl Kit {
    pub fn new(toolbox: Toolbox) -> Self {
        let pins = toolbox
            .iter()
            .map(|(name, tool)| (name.to_string(), tool.hash.clone().into()));
        let pins = Json::from(serde_json::Value::Object(pins.collect()));
        let versions = toolbox
            .iter()
            .filter_map(|(name, tool)| Some((name.clone(), tool.version.clone()?)));
        Self {
            offered: agent::offered(&toolbox),
            versions: versions.collect(),
            toolbox: Arc::new(toolbox),
            pins,
            stored: AtomicBool::new(false),
            passes_user_token: OnceLock::new(),
        }
    }

    /// The definitions that a run has to store when it begins. Those that came with the request stand in its log.
    pub fn unstored(&self, brought: &[ClientTool]) -> Arc<[StoredDefinition]> {
        if self.stored.load(Ordering::Relaxed) {
            return Arc::default();
        }
        let is_own = |tool: &&Arc<Tool>| !brought.iter().any(|brought| brought.name == tool.name);
        let stored = |tool: &Arc<Tool>| StoredDefinition {
            hash: tool.hash.clone(),
            definition: tool.stored(),
        };
        self.toolbox.values().filter(is_own).map(stored).collect()
    }
}

/// Cache of compiled agents.
#[derive(Default)]
pub(crate) struct Agents {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    newest: HashMap<Key, (Instant, Compiled)>,
    revisions: HashMap<(ProjectId, AgentName, u32), Compiled>,
    merged: HashMap<String, Arc<Kit>>,
    /// Tools of stored definitions, by hash.
    tools: HashMap<(ProjectId, String), Arc<Tool>>,
}

impl Inner {
    /// The revision asked for, or the newest, with the tools that the project's sources offer now.
    pub(crate) async fn compiled(
        &self,
        project: ProjectId,
        name: &AgentName,
        revision: Option<u32>,
    ) -> Result<Option<Compiled>, StoreError> {
        if revision.is_none()
            && let Some(known) = self.agents.newest(project, name)
        {
            return Ok(Some(known));
        }
        let catalog = self.tools.catalog(project).await;
        let model = self.project_settings(project).await?.default_model.clone();
        let find = |revision| self.agents.find(project, name, revision, &catalog, &model);
        if let Some(known) = revision.and_then(find) {
            return Ok(Some(known));
        }
        let Some(record) = self.store.agent(project, name, revision).await? else {
            return Ok(None);
        };
        let compiled = match find(record.revision) {
            Some(known) => known,
            None => self.compile(&record, catalog, model).await?,
        };
        self.agents.keep(project, name, &compiled, revision.is_none());
        Ok(Some(compiled))
    }

    async fn compile(
        &self,
        record: &AgentRecord,
        catalog: Arc<Catalog>,
        model: ModelSpec,
    ) -> Result<Compiled, StoreError> {
        let AgentRecord { name, revision, .. } = record;
        let agent = self
            .parse(
                record.project,
                name,
                &record.config,
                &catalog,
                &model,
                Missing::LeftOut,
            )
            .await
            .map_err(|problems| {
                let first = problems
                    .first()
                    .map(|p| format!("{} {}", p.pointer, p.message))
                    .unwrap_or_default();
                StoreError::Corrupt(format!("agent {name} revision {revision}: {first}"))
            })?;
        for Problem { pointer, message } in &agent.left_out {
            tracing::warn!(agent = %name, revision, pointer, "a tool is left out: {message}");
        }
        Ok(Compiled::new(*revision, agent, catalog, model))
    }

    /// Reads a configuration and compiles its schemas, off the runtime's threads: patterns take their time.
    async fn parse(
        &self,
        project: ProjectId,
        name: &AgentName,
        config: &Json,
        catalog: &Arc<Catalog>,
        model: &ModelSpec,
        missing: Missing,
    ) -> Result<Agent, Vec<Problem>> {
        let (name, config) = (name.clone(), config.clone());
        let (catalog, model) = (catalog.clone(), model.clone());
        let parse = move || {
            let value = config.read().map_err(|e| vec![Problem::new("", e.to_string())])?;
            let defaults = Defaults {
                model,
                catalog: &catalog,
                missing,
            };
            agent::parse(&name, &value, &defaults)
        };
        self.blocking.run(share_of(project, None), parse).await
    }

    /// The agent's tools with the caller's; of the agent's client tools only those of `categories`, if given,
    /// and those of none.
    pub(crate) async fn kit(
        &self,
        share: Share,
        agent: &Compiled,
        client: &[ClientTool],
        categories: Option<&[String]>,
    ) -> Result<Arc<Kit>, Vec<Problem>> {
        if client.is_empty() && categories.is_none() {
            return Ok(agent.tools.clone());
        }
        let hashes: String = client.iter().map(client_tool_hash).collect();
        let (tenant, pins) = (share.tenant, agent.tools.pins.as_str());
        let key = format!("{tenant}:{pins}:{hashes}:{categories:?}");
        if let Some(kit) = self.agents.lock().merged.get(&key) {
            return Ok(kit.clone());
        }
        let (own, brought) = (agent.tools.toolbox.clone(), client.to_vec());
        let merge = move || tool::merge(&own, &brought);
        let mut toolbox = self.blocking.run(share, merge).await?;
        if let Some(categories) = categories {
            let own = &agent.tools.toolbox;
            toolbox.retain(|name, tool| !own.contains_key(name) || is_chosen(tool, categories));
        }
        let kit = Kit {
            // The caller's tools are not stored as definitions, and the agent's may be already.
            stored: AtomicBool::new(agent.tools.stored.load(Ordering::Relaxed)),
            ..Kit::new(toolbox)
        };
        let kit = Arc::new(kit);
        let mut known = self.agents.lock();
        if known.merged.len() >= MERGED_MAX {
            known.merged.clear();
        }
        known.merged.insert(key, kit.clone());
        Ok(kit)
    }
}

/// Whether a caller that chose these categories wants the tool. Tools on the gateway's side are not its to choose.
fn is_chosen(tool: &Tool, categories: &[String]) -> bool {
    let category = tool.category.as_ref();
    tool.placement() != Placement::Client || category.is_none_or(|category| categories.contains(category))
}

impl Agents {
    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().expect("no panic holds the agents")
    }

    /// The tool of a stored definition that was compiled before.
    pub fn tool(&self, project: ProjectId, hash: &str) -> Option<Arc<Tool>> {
        self.lock().tools.get(&(project, hash.to_owned())).cloned()
    }

    pub fn keep_tool(&self, project: ProjectId, hash: &str, tool: &Arc<Tool>) {
        let mut known = self.lock();
        if known.tools.len() >= STORED_TOOLS_MAX {
            known.tools.clear();
        }
        known.tools.insert((project, hash.to_owned()), tool.clone());
    }

    fn newest(&self, project: ProjectId, name: &AgentName) -> Option<Compiled> {
        let known = self.lock();
        let (seen, compiled) = known.newest.get(&(project, name.clone()))?;
        (seen.elapsed() < NEWEST_KNOWN_FOR).then(|| compiled.clone())
    }

    /// A revision that was compiled when the sources offered the same, with the same default model.
    fn find(
        &self,
        project: ProjectId,
        name: &AgentName,
        revision: u32,
        catalog: &Arc<Catalog>,
        model: &ModelSpec,
    ) -> Option<Compiled> {
        let known = self.lock();
        let compiled = known.revisions.get(&(project, name.clone(), revision))?;
        let same = Arc::ptr_eq(&compiled.catalog, catalog) && compiled.default_model == *model;
        same.then(|| compiled.clone())
    }

    fn keep(&self, project: ProjectId, name: &AgentName, compiled: &Compiled, newest: bool) {
        let mut known = self.lock();
        if known.revisions.len() >= COMPILED_MAX {
            known.revisions.clear();
            known.newest.clear();
        }
        known
            .revisions
            .insert((project, name.clone(), compiled.revision), compiled.clone());
        if newest {
            known
                .newest
                .insert((project, name.clone()), (Instant::now(), compiled.clone()));
        }
    }

    /// Forgets the newest revisions of a project's agents: its settings have changed.
    pub fn forget_project(&self, project: ProjectId) {
        self.lock().newest.retain(|(of, _), _| *of != project);
    }

    fn forget(&self, project: ProjectId, name: &AgentName) {
        self.lock().newest.remove(&(project, name.clone()));
    }
}

impl Inner {
    /// The newest revision of an agent, when `who` may start it. `given`: the space has this agent from a backend.
    pub(crate) async fn startable(
        &self,
        project: ProjectId,
        name: &AgentName,
        who: &Starter,
        given: bool,
    ) -> Result<Option<Compiled>, StoreError> {
        let known = self.compiled(project, name, None).await?;
        Ok(known.filter(|known| known.agent.access.admits(who, given)))
    }
}

impl Engine {
    /// Checks and stores a configuration; gives its revision.
    pub async fn put_agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        config: Json,
    ) -> Result<u32, AgentError> {
        let catalog = self.inner.tools.catalog(project).await;
        let model = self.inner.project_settings(project).await?.default_model.clone();
        let parse = |catalog: Arc<Catalog>| {
            let (config, model) = (config.clone(), model.clone());
            async move {
                let missing = Missing::Refused;
                let inner = &self.inner;
                let agent = inner
                    .parse(project, name, &config, &catalog, &model, missing)
                    .await;
                agent.map(|agent| (agent, catalog))
            }
        };
        let (agent, catalog) = parse(catalog).await.map_err(AgentError::Invalid)?;
        let value = config.to_value();
        let problems = self.inner.tools.check_agent(project, &value).await;
        if !problems.is_empty() {
            return Err(AgentError::Invalid(problems));
        }
        // What it brings itself is there once its sources have taken it, so it is read once more.
        let adopted = self.inner.tools.adopt_agent(project, name, &value).await;
        adopted.map_err(|failure| StoreError::Unavailable(failure.message))?;
        let newer = self.inner.tools.catalog(project).await;
        let (agent, catalog) = match Arc::ptr_eq(&newer, &catalog) {
            true => (agent, catalog),
            false => parse(newer).await.map_err(AgentError::Invalid)?,
        };
        let now = self.inner.clock.now();
        let revision = self.inner.store.put_agent(project, name, config, now).await?;
        let compiled = Compiled::new(revision, agent, catalog, model);
        self.inner.agents.keep(project, name, &compiled, true);
        Ok(revision)
    }

    /// What is wrong with a configuration; nothing is stored.
    pub async fn check_agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        config: &Json,
    ) -> Result<Vec<Problem>, StoreError> {
        let catalog = self.inner.tools.catalog(project).await;
        let settings = self.inner.project_settings(project).await?;
        let model = &settings.default_model;
        let read = self
            .inner
            .parse(project, name, config, &catalog, model, Missing::Refused);
        let mut problems = read.await.err().unwrap_or_default();
        problems.extend(self.inner.tools.check_agent(project, &config.to_value()).await);
        Ok(problems)
    }

    /// The tool sources.
    pub fn sources(&self) -> &Sources {
        &self.inner.tools
    }

    /// Retires an agent, so that nothing new begins, and cancels its open runs. What it has stored is there again when an
    /// agent of its name is. False when there is none; runs that a failure left open are cancelled then too.
    pub async fn remove_agent(&self, project: ProjectId, name: &AgentName) -> Result<bool, IntakeError> {
        let removed = self.inner.store.remove_agent(project, name).await?;
        self.inner.agents.forget(project, name);
        self.inner.tools.forget_agent(project, name).await;
        self.cancel_all(project, |run| run.agent == *name).await?;
        Ok(removed)
    }

    /// Removes an agent, also a retired one, with everything that only it can reach: its goals, its plans, the memories in
    /// its own scope, its knowledge. Memories of people and of spaces are theirs: other agents recall them too. None when
    /// there is no such agent.
    pub async fn purge_agent(
        &self,
        project: ProjectId,
        name: &AgentName,
    ) -> Result<Option<Purged>, IntakeError> {
        // Its runs end first: what they store is deleted with the rest.
        self.remove_agent(project, name).await?;
        Ok(self.inner.store.purge_agent(project, name).await?)
    }

    /// Reads the tools that a request brings, which stand at `pointer`: every door's way in for them.
    pub async fn client_tools(
        &self,
        project: ProjectId,
        user: Option<EntityId>,
        tools: &Json,
        pointer: &str,
    ) -> Result<Vec<ClientTool>, AgentError> {
        let settings = self.inner.project_settings(project).await?;
        let (tools, pointer) = (tools.clone(), pointer.to_owned());
        let limits = settings.client_tools.for_key(key_of(user));
        let check = move || tool::client_tools(&tools.to_value(), &pointer, &limits);
        let checked = self.run_blocking(share_of(project, user), check).await?;
        checked.map_err(AgentError::Invalid)
    }

    /// What the tools that a request brings may be.
    pub async fn client_tool_limits(&self, project: ProjectId) -> Result<ClientToolLimits, StoreError> {
        Ok(self.inner.project_settings(project).await?.client_tools)
    }

    /// The tools that a source lists for a project have changed on this node: agents have them from the next run on.
    pub fn tools_changed(&self, project: ProjectId) {
        self.inner.agents.forget_project(project);
    }

    /// Checks a definition or a list of them, which stands at `pointer`, as they would be checked when used.
    pub async fn check_tools(
        &self,
        project: ProjectId,
        user: Option<EntityId>,
        tools: &Value,
        pointer: &str,
        profile: Profile,
    ) -> Result<Checked, AgentError> {
        let settings = self.inner.project_settings(project).await?;
        let (tools, pointer) = (tools.clone(), pointer.to_owned());
        match profile {
            Profile::Client => {
                let limits = settings.client_tools.for_key(key_of(user));
                let check = move || tool::check(&tools, &pointer, &Rules::Client(&limits));
                Ok(self.run_blocking(share_of(project, user), check).await?)
            }
            Profile::Trusted => {
                self.with_defaults(project, move |defaults| {
                    tool::check(&tools, &pointer, &Rules::Trusted(defaults))
                })
                .await
            }
        }
    }

    /// Reads something that is about to be stored with what the project offers now, off the runtime's threads.
    pub(crate) async fn with_defaults<T: Send + 'static>(
        &self,
        project: ProjectId,
        read: impl FnOnce(&Defaults<'_>) -> T + Send + 'static,
    ) -> Result<T, AgentError> {
        let settings = self.inner.project_settings(project).await?;
        let catalog = self.inner.tools.catalog(project).await;
        let read = move || {
            let defaults = Defaults {
                model: settings.default_model.clone(),
                catalog: &catalog,
                missing: Missing::Refused,
            };
            read(&defaults)
        };
        Ok(self.run_blocking(share_of(project, None), read).await?)
    }

    /// What a model of this vendor is sent of these tools; none of a vendor that is sent nothing.
    pub fn definitions(&self, vendor: Provider, tools: &Toolbox) -> Option<Json> {
        self.inner.model.definitions(vendor, &agent::offered(tools))
    }

    /// A compiled configuration: the revision asked for, or the newest.
    pub async fn agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        revision: Option<u32>,
    ) -> Result<Option<(u32, Arc<Agent>)>, StoreError> {
        let compiled = self.inner.compiled(project, name, revision).await?;
        Ok(compiled.map(|compiled| (compiled.revision, compiled.agent)))
    }

    /// The newest revision of an agent, when `who` may start it: in this space, or anywhere. To others it does not exist.
    pub async fn agent_for(
        &self,
        project: ProjectId,
        name: &AgentName,
        who: &Starter,
        space: Option<&SpaceRecord>,
    ) -> Result<Option<Arc<Agent>>, StoreError> {
        let given = space.is_some_and(|space| space.gives(name));
        let admitted = self.inner.startable(project, name, who, given).await?;
        Ok(admitted.map(|admitted| admitted.agent))
    }
}

/// The kind of key by which somebody asks: a user's is public.
fn key_of(user: Option<EntityId>) -> KeyKind {
    match user {
        Some(_) => KeyKind::Public,
        None => KeyKind::Secret,
    }
}
