//! Changes of what is stored: servers that are added and removed, what they list, and what is decided about it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolgate_engine::record_index::INDEX;
use toolgate_engine::records::{Amendment, Change};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_mcp::About;

use crate::error::ServerError;
use crate::index::{self, Catalog, Read, StoredServer, catalog_id, record_set};
use crate::review;
use crate::servers::Inner;
use crate::settings::McpSettings;
use crate::snapshot::{Configured, Origin, Snapshot};
use crate::supervisor::Spec;

impl Inner {
    /// Adds servers and removes those that are stale, in one change. Says how many were removed.
    pub async fn store(
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
            let amendment = match index == read.index {
                true => Amendment::default(),
                false => read.replaced_by(&index, changes),
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
        index::read(self.updater.records().record(record_set(project), INDEX).await?)
    }

    async fn changed(&self, project: ProjectId) -> Result<(), StoreError> {
        self.cache.changed(project).await;
        let snapshot = self.cache.snapshot(project).await?;
        self.pool
            .retain(project, |key| snapshot.servers.contains_key(key));
        self.logs
            .retain(project, |key| snapshot.servers.contains_key(key));
        Ok(())
    }

    /// Reads the catalog of a server, decides, and stores what comes of it.
    pub async fn change_catalog(
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
            let amendment = read.replaced_by(&index, vec![after.put(key)]);
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
