//! What is kept in memory: the tools of each project, and the packages that were used last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use toolgate_engine::record_index::INDEX;
use toolgate_engine::records::Records;
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::tool::{Listed, ToolList};
use toolgate_package::Package;

use crate::index::{self, Read, package_id, record_set};
use crate::settings::{PluginResolver, PluginSettings};
use crate::source::PinnedTool;

/// How long what was read counts. A running call looks as often, so a change by another node is seen within twice this.
pub(crate) const KNOWN_FOR: Duration = Duration::from_millis(500);
/// Projects whose tools are kept.
const PROJECTS_MAX: usize = 1_000;
/// Bytes of packages that are kept.
const PACKAGES_BYTES_MAX: u64 = 64 << 20;

/// The plugins of a project at one moment.
pub(crate) struct Snapshot {
    pub read: Read,
    /// The settings that decided which packages may run.
    pub settings: Arc<PluginSettings>,
    /// The tools of the plugins that run.
    pub list: Arc<ToolList>,
}

/// Reads plugins from the store, and remembers them.
pub(crate) struct Cache {
    records: Arc<dyn Records>,
    resolver: Arc<dyn PluginResolver>,
    projects: Mutex<HashMap<ProjectId, Arc<Slot>>>,
    packages: Mutex<Packages>,
    /// Counts the changes by this node, so that running calls look at once whether they may go on.
    changes: watch::Sender<u64>,
}

/// One project's snapshot. Whoever finds it out of date reads it, and others wait for that.
type Slot = tokio::sync::Mutex<Option<Kept>>;

struct Kept {
    read_at: Instant,
    snapshot: Arc<Snapshot>,
}

impl Cache {
    pub fn new(records: Arc<dyn Records>, resolver: Arc<dyn PluginResolver>) -> Self {
        Self {
            records,
            resolver,
            projects: Mutex::default(),
            packages: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// The plugins of a project as they were at most [`KNOWN_FOR`] ago. Reads one record per [`KNOWN_FOR`] while nothing
    /// changes.
    pub async fn snapshot(&self, project: ProjectId) -> Result<Arc<Snapshot>, StoreError> {
        let settings = self.resolver.plugin_settings(project).await?;
        let slot = self.slot(project);
        let mut kept = slot.lock().await;
        let same_rules = |snapshot: &Snapshot| same_rules(&snapshot.settings, &settings);
        let known = kept.as_mut().filter(|kept| same_rules(&kept.snapshot));
        let read_at = Instant::now();
        if let Some(known) = &known
            && known.read_at.elapsed() < KNOWN_FOR
        {
            return Ok(known.snapshot.clone());
        }
        let record = self.records.record(record_set(project), INDEX).await?;
        let version = record.as_ref().map_or(0, |record| record.version);
        if let Some(known) = known
            && known.snapshot.read.version == version
        {
            known.read_at = read_at;
            return Ok(known.snapshot.clone());
        }
        let read = index::read(record)?;
        let list = self.tools(project, &read, &settings).await?;
        let snapshot = Arc::new(Snapshot {
            read,
            settings,
            list: Arc::new(list),
        });
        *kept = Some(Kept {
            read_at,
            snapshot: snapshot.clone(),
        });
        Ok(snapshot)
    }

    /// The tools of the plugins that may run.
    async fn tools(
        &self,
        project: ProjectId,
        read: &Read,
        settings: &PluginSettings,
    ) -> Result<ToolList, StoreError> {
        let mut list = ToolList::new();
        for (plugin, installed) in &read.index.plugins {
            let Ok((hash, stored, trust)) = read.index.running(plugin, settings) else {
                continue;
            };
            let Some(package) = self.package(project, hash).await? else {
                tracing::error!(plugin, hash, "the package of an installed plugin is not stored");
                continue;
            };
            for tool in package.tools() {
                let pinned = PinnedTool {
                    plugin: plugin.clone(),
                    version: stored.version.clone(),
                    package: hash.to_owned(),
                    data: Some(installed.data.clone()),
                    trust,
                };
                let listed = Listed::new(offered(&tool.definition)).with_config(pinned.to_json());
                list.insert(tool.name.to_string(), listed);
            }
        }
        Ok(list)
    }

    /// A stored package. None if it is not stored.
    pub async fn package(&self, project: ProjectId, hash: &str) -> Result<Option<Arc<Package>>, StoreError> {
        if let Some(known) = self.packages().get(project, hash) {
            return Ok(Some(known));
        }
        let record = self
            .records
            .record(record_set(project), &package_id(hash))
            .await?;
        let Some(record) = record else {
            return Ok(None);
        };
        let bytes = record.body.as_str().len() as u64;
        let parse = move || Package::parse(record.body.as_str().as_bytes());
        let parsed = tokio::task::spawn_blocking(parse).await;
        let package = parsed.ok().and_then(Result::ok);
        let package = package.filter(|package| package.hash().to_string() == hash);
        let broken = || StoreError::Corrupt(format!("the package {hash}"));
        let package = Arc::new(package.ok_or_else(broken)?);
        self.packages().keep(project, hash, package.clone(), bytes);
        Ok(Some(package))
    }

    /// This node has changed the plugins of a project.
    pub async fn changed(&self, project: ProjectId) {
        *self.slot(project).lock().await = None;
        self.changes.send_modify(|count| *count += 1);
    }

    /// Fires for each change that this node makes.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn slot(&self, project: ProjectId) -> Arc<Slot> {
        let mut projects = self.projects.lock().expect("no panic holds the projects");
        if projects.len() >= PROJECTS_MAX && !projects.contains_key(&project) {
            projects.clear();
        }
        projects.entry(project).or_default().clone()
    }

    fn packages(&self) -> MutexGuard<'_, Packages> {
        self.packages.lock().expect("no panic holds the packages")
    }
}

/// Whether the same packages may run by both settings.
fn same_rules(one: &PluginSettings, other: &PluginSettings) -> bool {
    (one.mode, one.tools_only_signatures) == (other.mode, other.tools_only_signatures)
}

/// What agents are offered of a tool's definition. Who may see its inputs and outputs is for the author of an agent to
/// say, not for the author of a plugin.
fn offered(definition: &serde_json::Value) -> serde_json::Value {
    let mut definition = definition.clone();
    if let Some(members) = definition.as_object_mut() {
        members.remove("name");
        members.remove("visibility");
    }
    definition
}

/// The packages that were used last, bounded in bytes.
#[derive(Default)]
struct Packages {
    kept: HashMap<(ProjectId, String), KeptPackage>,
    bytes: u64,
    uses: u64,
}

struct KeptPackage {
    package: Arc<Package>,
    bytes: u64,
    used: u64,
}

impl Packages {
    fn get(&mut self, project: ProjectId, hash: &str) -> Option<Arc<Package>> {
        self.uses += 1;
        let kept = self.kept.get_mut(&(project, hash.to_owned()))?;
        kept.used = self.uses;
        Some(kept.package.clone())
    }

    fn keep(&mut self, project: ProjectId, hash: &str, package: Arc<Package>, bytes: u64) {
        self.uses += 1;
        let kept = KeptPackage {
            package,
            bytes,
            used: self.uses,
        };
        self.bytes += bytes;
        if let Some(before) = self.kept.insert((project, hash.to_owned()), kept) {
            self.bytes -= before.bytes;
        }
        while self.bytes > PACKAGES_BYTES_MAX {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            if let Some(gone) = self.kept.remove(&oldest) {
                self.bytes -= gone.bytes;
            }
        }
    }
}
