//! The servers of a project at one moment, and the tools that they offer; kept in memory, read again when something has
//! changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_egress::Secrets;
use toolgate_engine::record_index::INDEX;
use toolgate_engine::records::Records;
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::schema::{Profile, Validator};
use toolgate_kernel::tool::{Listed, SourceTool, ToolList};

use crate::config::{Approve, ServerConfig};
use crate::given_values::given_values;
use crate::index::{self, Catalog, Read, State, StoredTool, catalog_id, record_set};
use crate::review::fitted;
use crate::settings::{McpResolver, McpSettings};
use crate::source::SOURCE;

/// How long what was read counts: a change by another node is seen within this.
const KNOWN_FOR: Duration = Duration::from_millis(500);
/// Projects whose servers are kept.
const PROJECTS_MAX: usize = 1_000;

/// Who configured a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The operator, in the settings file.
    Settings,
    /// A secret key of the project, over HTTP.
    Project,
    /// The author of an agent; the server is that agent's alone.
    Agent(String),
}

/// A server and who configured it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Configured {
    /// What it is called; the names of its tools begin with it.
    pub name: String,
    pub config: Arc<ServerConfig>,
    /// As it was written.
    pub written: Arc<Value>,
    pub origin: Origin,
}

/// Which tool of which server a definition stands for: the tool's configuration in what a run has pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PinnedTool {
    /// The server, `<agent>/<server>` for one of an agent.
    pub server: String,
    /// The server's own name for the tool.
    pub tool: String,
    /// Hash of the definition that was accepted.
    pub hash: String,
}

impl PinnedTool {
    /// What the definition of a tool says of its server; none if it is no tool of an MCP server.
    pub fn of(tool: &SourceTool) -> Option<Self> {
        let config = tool.config.as_ref().filter(|_| tool.source == SOURCE)?;
        config.read().ok()
    }
}

/// The servers of a project at one moment.
pub(crate) struct Snapshot {
    pub read: Read,
    pub settings: Arc<McpSettings>,
    /// By key: the name, or `<agent>/<server>`.
    pub servers: BTreeMap<String, Configured>,
    pub catalogs: BTreeMap<String, Arc<Catalog>>,
    /// What each server was given, and may repeat.
    pub secrets: BTreeMap<String, Secrets>,
    /// What agents may use.
    pub list: Arc<ToolList>,
}

/// Reads servers from the store, and remembers them.
pub(crate) struct Cache {
    records: Arc<dyn Records>,
    resolver: Arc<dyn McpResolver>,
    projects: Mutex<HashMap<ProjectId, Arc<Slot>>>,
}

/// One project's snapshot. Whoever finds it out of date reads it, and others wait for that.
type Slot = tokio::sync::Mutex<Option<Kept>>;

struct Kept {
    read_at: Instant,
    snapshot: Arc<Snapshot>,
}

impl Cache {
    pub fn new(records: Arc<dyn Records>, resolver: Arc<dyn McpResolver>) -> Self {
        Self {
            records,
            resolver,
            projects: Mutex::default(),
        }
    }

    /// The servers of a project as they were at most [`KNOWN_FOR`] ago.
    pub async fn snapshot(&self, project: ProjectId) -> Result<Arc<Snapshot>, StoreError> {
        let settings = self.resolver.mcp_settings(project).await?;
        let slot = self.slot(project);
        let mut kept = slot.lock().await;
        let read_at = Instant::now();
        let known = kept.as_ref().map(|kept| kept.snapshot.clone());
        let same_settings = |known: &Arc<Snapshot>| Arc::ptr_eq(&known.settings, &settings);
        let fresh = kept
            .as_ref()
            .is_some_and(|kept| kept.read_at.elapsed() < KNOWN_FOR);
        if let Some(known) = known.clone().filter(|known| fresh && same_settings(known)) {
            return Ok(known);
        }
        let read = index::read(self.records.record(record_set(project), INDEX).await?)?;
        let same = |known: &Arc<Snapshot>| known.read.version == read.version && same_settings(known);
        let snapshot = match known.clone().filter(same) {
            Some(known) => known,
            None => Arc::new(self.read(project, read, settings, known.as_deref()).await?),
        };
        *kept = Some(Kept {
            read_at,
            snapshot: snapshot.clone(),
        });
        Ok(snapshot)
    }

    /// This node has changed the servers of a project.
    pub async fn changed(&self, project: ProjectId) {
        *self.slot(project).lock().await = None;
    }

    async fn read(
        &self,
        project: ProjectId,
        read: Read,
        settings: Arc<McpSettings>,
        known: Option<&Snapshot>,
    ) -> Result<Snapshot, StoreError> {
        let servers = configured(&read, &settings);
        let mut catalogs = BTreeMap::new();
        for (key, revision) in read
            .index
            .catalogs
            .iter()
            .filter(|(key, _)| servers.contains_key(*key))
        {
            let same = known.filter(|known| known.read.index.catalogs.get(key) == Some(revision));
            if let Some(catalog) = same.and_then(|known| known.catalogs.get(key)) {
                catalogs.insert(key.clone(), catalog.clone());
                continue;
            }
            if let Some(record) = self.records.record(record_set(project), &catalog_id(key)).await? {
                catalogs.insert(key.clone(), Arc::new(Catalog::of(&record)?));
            }
        }
        let secrets = servers.iter();
        let secrets = secrets
            .map(|(key, server)| {
                (
                    key.clone(),
                    settings.secrets.with_values(given_values(&server.config)),
                )
            })
            .collect();
        let list = listed(&servers, &catalogs);
        // The same list is the same `Arc`, so that agents are not read again.
        let list = match known.filter(|known| *known.list == list) {
            Some(known) => known.list.clone(),
            None => Arc::new(list),
        };
        Ok(Snapshot {
            read,
            settings,
            servers,
            catalogs,
            secrets,
            list,
        })
    }

    fn slot(&self, project: ProjectId) -> Arc<Slot> {
        let mut projects = self.projects.lock().expect("no panic holds the projects");
        if projects.len() >= PROJECTS_MAX && !projects.contains_key(&project) {
            projects.clear();
        }
        projects.entry(project).or_default().clone()
    }
}

/// All servers of a project. The operator's win over others of the same name; one whose configuration no longer reads is
/// left out.
fn configured(read: &Read, settings: &McpSettings) -> BTreeMap<String, Configured> {
    let stored = read.index.servers.iter().map(|(key, stored)| {
        let (name, origin) = match key.split_once('/') {
            Some((agent, name)) => (name, Origin::Agent(agent.to_owned())),
            None => (key.as_str(), Origin::Project),
        };
        (key, name, &stored.config, origin)
    });
    let set = settings.servers.iter();
    let set = set.map(|(name, written)| (name, name.as_str(), written, Origin::Settings));
    let mut servers = BTreeMap::new();
    for (key, name, written, origin) in stored.chain(set) {
        match ServerConfig::read(written, "") {
            Ok(config) => {
                let server = Configured {
                    name: name.to_owned(),
                    config: Arc::new(config),
                    written: Arc::new(written.clone()),
                    origin,
                };
                servers.insert(key.clone(), server);
            }
            Err(problems) => {
                let first = problems
                    .first()
                    .map(|problem| format!("{} {}", problem.pointer, problem.message));
                tracing::warn!(server = key, problem = first, "an MCP server is left out");
            }
        }
    }
    servers
}

/// The accepted tools. Those of an agent's servers stand under a name that no model accepts, so nobody else gets them by
/// their name.
fn listed(servers: &BTreeMap<String, Configured>, catalogs: &BTreeMap<String, Arc<Catalog>>) -> ToolList {
    let mut list = ToolList::new();
    for (key, server) in servers {
        let Some(catalog) = catalogs.get(key) else {
            continue;
        };
        if catalog.fingerprint != server.config.fingerprint() {
            continue;
        }
        for (original, tool) in &catalog.tools {
            if let Some(definition) = offered(server, original, tool) {
                let name = match &server.origin {
                    Origin::Agent(agent) => format!("{agent}/{}", tool.name),
                    Origin::Settings | Origin::Project => tool.name.clone(),
                };
                let pinned = PinnedTool {
                    server: key.clone(),
                    tool: original.clone(),
                    hash: tool.hash.clone(),
                };
                let pinned = serde_json::to_value(pinned).expect("texts are JSON");
                list.insert(name, Listed::new(definition).with_config(Json::from(pinned)));
            }
        }
    }
    list
}

/// The definition that agents are offered; none if the tool is not.
fn offered(server: &Configured, original: &str, tool: &StoredTool) -> Option<Value> {
    let config = &server.config;
    let wanted = config
        .tools
        .as_ref()
        .is_none_or(|wanted| wanted.contains(original));
    if tool.gone || tool.state != State::Accepted || !wanted {
        return None;
    }
    let listed: toolgate_mcp::Listed = serde_json::from_value(tool.definition.clone()).ok()?;
    let fitted = fitted(&server.name, &listed).0?;
    let hints = Hints::of(listed.annotations.as_ref());
    let mut definition = json!({
        "description": fitted.description,
        "parameters": fitted.parameters,
        "timeout": config.timeout.as_secs(),
    });
    if config.trust_annotations && hints.may_run_again() {
        definition["retry"] = "safe".into();
    }
    let asks = match config.approve {
        Approve::None => false,
        Approve::Destructive => hints.may_destroy(),
        Approve::All => true,
    };
    if asks {
        definition["approval"] = "always".into();
    }
    // A schema that cannot be used is as good as none.
    let schema = listed.output_schema.filter(|schema| {
        let schema = Json::from(schema);
        Validator::compile(&schema, Profile::Trusted, "/outputSchema").is_ok()
    });
    if let Some(schema) = schema {
        definition["outputSchema"] = schema;
    }
    Some(definition)
}

/// What a server claims of a tool's effects, with the defaults of the protocol: it may do anything.
struct Hints {
    read_only: bool,
    destructive: bool,
    idempotent: bool,
}

impl Hints {
    fn of(annotations: Option<&Value>) -> Self {
        let hint = |name: &str, default: bool| {
            let hint = annotations.and_then(|annotations| annotations.get(name)?.as_bool());
            hint.unwrap_or(default)
        };
        Self {
            read_only: hint("readOnlyHint", false),
            destructive: hint("destructiveHint", true),
            idempotent: hint("idempotentHint", false),
        }
    }
    fn may_run_again(&self) -> bool {
        self.read_only || self.idempotent
    }
    fn may_destroy(&self) -> bool {
        !self.read_only && self.destructive
    }
}
