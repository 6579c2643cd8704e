//! Resolves the settings of projects, for the engine and for the tools: from the gateway's settings, the settings file's
//! section of the project, and what was stored for it over HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use toolgate_archive::{FolderArchive, S3Archive};
use toolgate_egress::Egress;
use toolgate_engine::clock::SystemClock;
use toolgate_engine::project::{ProjectSettings, Projects};
use toolgate_engine::retention::{Archive, RetentionRules, Rules};
use toolgate_engine::store::{Directory, StoreError};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_plugins::{PluginResolver, PluginSettings};
use toolgate_sources::{McpResolver, McpSettings};
use toolgate_tools::{OutboundResolver, OutboundSettings};

use crate::settings::{ArchivePlace, DEFAULT_PROJECT, ProjectOverlay, Settings};

/// How long a change of a project's settings by another node may stay unseen here.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// Projects whose settings are remembered.
const KNOWN_MAX: usize = 10_000;

/// Resolves settings, and remembers them for a moment.
pub struct ProjectResolver {
    gateway: Settings,
    directory: Arc<dyn Directory>,
    /// What archives are reached with.
    egress: Egress,
    known: Mutex<HashMap<ProjectId, Known>>,
}

/// What is remembered of a project.
#[derive(Clone)]
struct Known {
    read: Instant,
    /// What was stored for it, and its name: the same again is resolved to the same.
    stored: Option<Json>,
    name: String,
    resolved: Arc<Resolved>,
}

/// The settings of one project, for each who goes by them.
struct Resolved {
    mcp: Arc<McpSettings>,
    engine: Arc<ProjectSettings>,
    outbound: Arc<OutboundSettings>,
    plugins: Arc<PluginSettings>,
    rules: Rules,
    archive: ArchivePlace,
}

impl ProjectResolver {
    /// Over the gateway's settings. An error names the setting of the file that is wrong.
    pub fn new(gateway: &Settings, directory: Arc<dyn Directory>) -> anyhow::Result<Self> {
        resolve(DEFAULT_PROJECT, gateway)?;
        for name in gateway.projects.keys() {
            resolve(name, &gateway.of_project(name, None))
                .map_err(|error| error.context(format!("project {name}")))?;
        }
        Ok(Self {
            gateway: gateway.clone(),
            directory,
            egress: Egress::new(),
            known: Mutex::default(),
        })
    }

    async fn resolved(&self, project: ProjectId) -> Result<Arc<Resolved>, StoreError> {
        let known = self.lock().get(&project).cloned();
        if let Some(known) = &known
            && known.read.elapsed() < KNOWN_FOR
        {
            return Ok(known.resolved.clone());
        }
        let read = Instant::now();
        let record = self.directory.project(project).await?;
        let stored = record.as_ref().and_then(|record| record.settings.clone());
        let name = record.map(|record| record.name).unwrap_or_default();
        let same = known.filter(|known| known.stored == stored && known.name == name);
        let resolved = match same {
            Some(known) => known.resolved,
            None => Arc::new(self.resolve(project, &name, stored.as_ref())?),
        };
        let mut known = self.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        let new = Known {
            read,
            stored,
            name,
            resolved: resolved.clone(),
        };
        known.insert(project, new);
        Ok(resolved)
    }

    fn resolve(&self, project: ProjectId, name: &str, stored: Option<&Json>) -> Result<Resolved, StoreError> {
        let broken = |why: String| StoreError::Corrupt(format!("the settings of {project}: {why}"));
        let stored = stored.map(ProjectOverlay::read).transpose();
        let stored = stored.map_err(|problems| broken(format!("{} problems", problems.len())))?;
        let resolved = resolve(name, &self.gateway.of_project(name, stored));
        resolved.map_err(|error| broken(error.to_string()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ProjectId, Known>> {
        self.known.lock().expect("no panic holds the settings")
    }
}

fn resolve(name: &str, settings: &Settings) -> anyhow::Result<Resolved> {
    let outbound = settings.outbound_settings()?;
    let mcp = settings.mcp_settings(name, outbound.allow.clone(), outbound.secrets.clone())?;
    Ok(Resolved {
        mcp: Arc::new(mcp),
        plugins: Arc::new(settings.plugin_settings(outbound.allow.clone())),
        engine: Arc::new(ProjectSettings {
            default_model: settings.model.spec(),
            client_tools: settings.client_tools.limits()?,
            conflict: settings.client_tools.conflict.into(),
            budgets: settings.budgets.limits()?,
            prices: Arc::new(settings.prices.table()?),
        }),
        outbound: Arc::new(outbound),
        rules: settings.retention.rules(),
        archive: settings.retention.place()?,
    })
}

#[async_trait]
impl Projects for ProjectResolver {
    async fn settings(&self, project: ProjectId) -> Result<Arc<ProjectSettings>, StoreError> {
        Ok(self.resolved(project).await?.engine.clone())
    }
    fn check(&self, settings: &Json) -> Vec<Problem> {
        let overlay = match ProjectOverlay::read(settings) {
            Ok(overlay) => overlay,
            Err(problems) => return problems,
        };
        // As a project of no name: the same sections, whoever has them.
        match resolve("", &self.gateway.of_project("", Some(overlay))) {
            Ok(_) => Vec::new(),
            Err(error) => vec![Problem::new("", format!("{error:#}"))],
        }
    }
    fn changed(&self, project: ProjectId) {
        self.lock().remove(&project);
    }
}

#[async_trait]
impl OutboundResolver for ProjectResolver {
    async fn outbound_settings(&self, project: ProjectId) -> Result<Arc<OutboundSettings>, StoreError> {
        Ok(self.resolved(project).await?.outbound.clone())
    }
}

#[async_trait]
impl McpResolver for ProjectResolver {
    async fn mcp_settings(&self, project: ProjectId) -> Result<Arc<McpSettings>, StoreError> {
        Ok(self.resolved(project).await?.mcp.clone())
    }
}

#[async_trait]
impl PluginResolver for ProjectResolver {
    async fn plugin_settings(&self, project: ProjectId) -> Result<Arc<PluginSettings>, StoreError> {
        Ok(self.resolved(project).await?.plugins.clone())
    }
}

#[async_trait]
impl RetentionRules for ProjectResolver {
    async fn rules(&self, project: ProjectId) -> Result<Rules, StoreError> {
        Ok(self.resolved(project).await?.rules)
    }
    async fn archive(&self, project: ProjectId) -> Result<Option<Arc<dyn Archive>>, StoreError> {
        Ok(match &self.resolved(project).await?.archive {
            ArchivePlace::None => None,
            ArchivePlace::Folder(folder) => Some(Arc::new(FolderArchive::new(folder.clone()))),
            ArchivePlace::Bucket(settings) => {
                let (settings, clock) = ((**settings).clone(), Arc::new(SystemClock));
                Some(Arc::new(S3Archive::new(settings, &self.egress, clock)))
            }
        })
    }
}
