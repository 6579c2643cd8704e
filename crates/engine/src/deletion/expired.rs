//! Deleting what has ended long ago, in batches that are archived first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolgate_kernel::id::{ProjectId, SpaceId};
use toolgate_kernel::time::Time;

use super::archive::{LOOSE_PAGE, LOOSE_START};
use super::deliveries::deliveries;
use super::files::files_of;
use super::tree::{Tree, store_error};
use super::{DeletionError, Deletions, Held, PORTION, What, unless_taken};
use crate::outbox;
use crate::records::{Change, Expected, Listing, Owner, Record};
use crate::retention::{Rules, before};
use crate::revocation::Revoked;
use crate::store::{RunRecord, StoreError, Trim};
use crate::workspace::{FILE, FileName, Only, Place, WorkspaceError, outputs_of};

/// Id of the deletion of a project's old data: there is one batch at a time.
const ID: &str = "retention";
/// Most run trees of a batch.
const TREES_MAX: usize = 50;
/// Stored bytes after which no further tree or file is added to a batch.
const BATCH_BYTES: u64 = 8 << 20;
/// Spaces that are looked at for entries of no run with one batch.
const SPACES_LOOKED: usize = 5_000;

/// How far the spaces of each project were looked at for entries of no run, on this node.
#[derive(Default)]
pub(super) struct LooseLooked(Mutex<HashMap<ProjectId, SpaceId>>);

impl LooseLooked {
    fn lock(&self) -> MutexGuard<'_, HashMap<ProjectId, SpaceId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn of(&self, project: ProjectId) -> SpaceId {
        let start = SpaceId::from_bytes([0; 16]);
        self.lock().get(&project).copied().unwrap_or(start)
    }
    /// The next look begins behind this space, or with the first one.
    fn set(&self, project: ProjectId, last: Option<SpaceId>) {
        match last {
            Some(last) => self.lock().insert(project, last),
            None => self.lock().remove(&project),
        };
    }
}

/// What a batch deletes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Batch {
    pub(super) trees: Vec<Tree>,
    files: Vec<(SpaceId, String)>,
    /// The version of each file. None in a batch of an earlier version, whose files stay until they are planned again.
    // Beside `files` and not in it: a batch is stored, and gateways of both versions read it during an upgrade.
    #[serde(default)]
    file_versions: Vec<u64>,
    deliveries: Vec<String>,
    /// The version of each delivery, as of files.
    #[serde(default)]
    delivery_versions: Vec<u64>,
    /// Spaces with entries of no run: those that were stored before a time go. None in a batch of an earlier version.
    #[serde(default)]
    pub(super) loose: Vec<(SpaceId, Time)>,
    before: Time,
    /// The rules that it was planned by. None in a batch of an earlier version.
    #[serde(default)]
    rules: Option<Rules>,
    /// The object that has it all before anything is deleted; none when the project archives nothing.
    object: Option<String>,
    /// SHA-256 of the object, once it is stored.
    archived: Option<String>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.trees.is_empty() && self.files.is_empty() && self.deliveries.is_empty() && self.loose.is_empty()
    }
    /// Files with the versions that are deleted: one that has another version by then stays.
    pub(super) fn files(&self) -> impl Iterator<Item = (SpaceId, &str, u64)> {
        let versions = self.file_versions.iter();
        let files = self.files.iter().zip(versions);
        files.map(|((space, path), version)| (*space, path.as_str(), *version))
    }
    /// Deliveries with the versions that are deleted, as of files.
    pub(super) fn deliveries(&self) -> impl Iterator<Item = (&str, u64)> {
        let versions = self.delivery_versions.iter();
        let deliveries = self.deliveries.iter().zip(versions);
        deliveries.map(|(id, version)| (id.as_str(), *version))
    }
    fn is_waiting(&self) -> bool {
        self.object.is_some() && self.archived.is_none()
    }
    /// Whether rules delete all of it, no matter how much time has passed since it was planned.
    fn is_due_by(&self, rules: Rules) -> bool {
        let Some(planned) = self.rules else {
            return false;
        };
        let is_due = |planned: Option<Duration>, kept: Option<Duration>| {
            let both = planned.zip(kept);
            both.is_some_and(|(planned, kept)| kept <= planned)
        };
        let has_runs = !(self.trees.is_empty() && self.loose.is_empty());
        (!has_runs || is_due(planned.runs, rules.runs))
            && (self.files.is_empty() || is_due(planned.files, rules.files))
            && (self.deliveries.is_empty() || is_due(planned.deliveries, rules.deliveries))
    }
}

impl Deletions {
    /// Archives and deletes a batch of what is too old in a project. False when there is nothing, or nothing of it was deleted
    /// because it changed meanwhile.
    pub(crate) async fn expire(
        &self,
        project: ProjectId,
        rules: Rules,
        now: Time,
    ) -> Result<bool, DeletionError> {
        let batch = self.plan_batch(project, rules, now).await?;
        if batch.is_empty() {
            return Ok(false);
        }
        let removed = self
            .delete(project, ID.to_owned(), What::Expired(Box::new(batch)))
            .await?;
        let count = |kind: &str| removed.get(kind).copied().unwrap_or_default();
        metrics::counter!("toolgate_retention_runs_total").increment(count("runs"));
        metrics::counter!("toolgate_retention_bytes_total").increment(count("bytes"));
        let is_some = removed.values().any(|count| *count > 0);
        if is_some {
            tracing::info!(%project, ?removed, "deleted what is older than the project keeps");
        }
        Ok(is_some)
    }

    async fn plan_batch(&self, project: ProjectId, rules: Rules, now: Time) -> Result<Batch, DeletionError> {
        let mut batch = Batch {
            trees: Vec::new(),
            files: Vec::new(),
            file_versions: Vec::new(),
            deliveries: Vec::new(),
            delivery_versions: Vec::new(),
            loose: Vec::new(),
            before: rules.runs.map_or(Time(i64::MIN), |kept| before(now, kept)),
            rules: Some(rules),
            object: None,
            archived: None,
        };
        let mut bytes = 0;
        if rules.runs.is_some() {
            self.plan_trees(project, &mut batch, &mut bytes).await?;
            self.plan_loose(project, &mut batch, &mut bytes).await?;
        }
        if let Some(kept) = rules.files {
            self.plan_files(project, before(now, kept), &mut batch, &mut bytes)
                .await?;
        }
        if let Some(kept) = rules.deliveries {
            let oldest = before(now, kept);
            let listing = Listing {
                limit: PORTION,
                ..Listing::default()
            };
            let found = self.records.list_records(deliveries(project), listing).await?;
            let is_old = |record: &Record| record.due.is_none() && record.created < oldest;
            for record in found.into_iter().filter(is_old) {
                batch.delivery_versions.push(record.version);
                batch.deliveries.push(record.id);
            }
        }
        if self.rules.archive(project).await?.is_some() {
            batch.object = Some(object_name(project, &batch));
        }
        Ok(batch)
    }

    async fn plan_trees(
        &self,
        project: ProjectId,
        batch: &mut Batch,
        bytes: &mut u64,
    ) -> Result<(), DeletionError> {
        let store = &self.engine.inner.store;
        for top in store.ended_trees(project, batch.before, TREES_MAX).await? {
            if *bytes >= BATCH_BYTES {
                break;
            }
            let below = self.runs_below(&top).await?;
            for run in std::iter::once(&top).chain(&below) {
                *bytes += store.run_bytes(run.id).await?;
            }
            *bytes += self.output_bytes(&top).await?;
            for run in &below {
                let place = Place {
                    project,
                    space: run.space,
                };
                *bytes += self.records.records_size(files_of(place)).await?.1;
            }
            batch.trees.push(Tree::of(&top, &below));
        }
        Ok(())
    }

    /// Bytes of a run's outputs that were kept as files of its space.
    async fn output_bytes(&self, run: &RunRecord) -> Result<u64, StoreError> {
        let place = Place {
            project: run.project,
            space: run.space,
        };
        let listing = Listing {
            prefix: outputs_of(run.id),
            after: None,
            limit: usize::MAX,
        };
        let outputs = self.workspace.list(place, listing).await.map_err(store_error)?;
        Ok(outputs.iter().map(|file| file.bytes).sum())
    }

    /// Adds entries of no run: those of the batch's own spaces, and of some spaces more, each time of others.
    async fn plan_loose(
        &self,
        project: ProjectId,
        batch: &mut Batch,
        bytes: &mut u64,
    ) -> Result<(), DeletionError> {
        let from = self.loose_looked.of(project);
        let store = &self.engine.inner.store;
        let looked = store
            .loose_spaces(project, batch.before, from, SPACES_LOOKED)
            .await?;
        let mut spaces: Vec<SpaceId> = batch.trees.iter().map(|tree| tree.space).collect();
        spaces.extend(&looked.spaces);
        spaces.sort();
        spaces.dedup();
        for space in spaces {
            if *bytes >= BATCH_BYTES {
                // The same spaces are looked at again for what is left.
                return Ok(());
            }
            if let Some(before) = self.loose_portion(space, batch.before, bytes).await? {
                batch.loose.push((space, before));
            }
        }
        if *bytes < BATCH_BYTES {
            self.loose_looked.set(project, looked.next);
        }
        Ok(())
    }

    /// The time before which entries of no run go with this batch; none when the space has none.
    async fn loose_portion(
        &self,
        space: SpaceId,
        before: Time,
        bytes: &mut u64,
    ) -> Result<Option<Time>, DeletionError> {
        let (store, mut after) = (&self.engine.inner.store, LOOSE_START);
        loop {
            let page = store.loose_entries(space, before, after, LOOSE_PAGE).await?;
            let Some(last) = page.last() else {
                return Ok((after != LOOSE_START).then_some(before));
            };
            after = (last.time, last.first);
            for entry in &page {
                let written = serde_json::to_vec(&entry.events).expect("events are JSON");
                *bytes += written.len() as u64;
            }
            if *bytes >= BATCH_BYTES {
                // Those of the same moment as well: the time is what the batch goes by.
                return Ok(Some(Time(after.0.0 + 1)));
            }
        }
    }

    async fn plan_files(
        &self,
        project: ProjectId,
        oldest: Time,
        batch: &mut Batch,
        bytes: &mut u64,
    ) -> Result<(), DeletionError> {
        let sets = self.records.record_sets(FILE).await?;
        for set in sets.into_iter().filter(|set| set.project == project) {
            let Owner::Space(space) = set.owner else { continue };
            let place = Place { project, space };
            let mut after = None;
            loop {
                let listing = Listing {
                    prefix: String::new(),
                    after,
                    limit: PORTION,
                };
                let files = self.workspace.list(place, listing).await.map_err(store_error)?;
                for file in files.iter().filter(|file| file.updated_at < oldest) {
                    if *bytes >= BATCH_BYTES || batch.files.len() >= PORTION {
                        return Ok(());
                    }
                    *bytes += file.bytes + self.earlier_bytes(place, &file.path).await?;
                    batch.files.push((space, file.path.clone()));
                    batch.file_versions.push(file.version);
                }
                if files.len() < PORTION {
                    break;
                }
                after = files.last().map(|file| file.path.clone());
            }
        }
        Ok(())
    }

    /// Archives the batch unless that was done, notes it, and only then deletes. False when nothing was deleted, because the
    /// batch waited for its archive and the operator has changed the rules or the archive since: it is planned anew.
    pub(super) async fn erase_expired(
        &self,
        held: &mut Held,
        mut batch: Batch,
    ) -> Result<bool, DeletionError> {
        if let Some(name) = batch.object.clone().filter(|_| batch.is_waiting()) {
            let archive = self.rules.archive(held.project).await?;
            let is_due = batch.is_due_by(self.rules.rules(held.project).await?);
            let Some(archive) = archive.filter(|_| is_due) else {
                tracing::info!(project = %held.project, object = name, "what was to be archived is planned anew");
                return Ok(false);
            };
            let mut object = archive.begin(&name);
            self.write_batch(held, &batch, &mut *object).await?;
            let stored = object.finish().await;
            let stored = stored.map_err(|error| StoreError::Unavailable(error.to_string()))?;
            metrics::counter!("toolgate_archive_bytes_total").increment(stored.bytes);
            tracing::info!(project = %held.project, object = name, hash = stored.hash, bytes = stored.bytes, "archived");
            batch.archived = Some(stored.hash);
            held.plan.what = What::Expired(Box::new(batch.clone()));
            self.note(held).await?;
        }
        for tree in &batch.trees {
            self.erase_tree(held, tree).await?;
        }
        for (space, before) in &batch.loose {
            self.trim(held, Trim::Loose(*space, *before)).await?;
            self.engine.inner.revoke(Revoked::Words(*space));
        }
        for (space, path, version) in batch.files() {
            self.delete_file(held, space, path, version).await?;
        }
        for (id, version) in batch.deliveries() {
            self.remove_delivery(held, id, version).await?;
        }
        Ok(true)
    }

    /// Deletes a file, unless it has changed since it was planned.
    async fn delete_file(
        &self,
        held: &mut Held,
        space: SpaceId,
        path: &str,
        version: u64,
    ) -> Result<(), DeletionError> {
        let Ok(name) = path.parse::<FileName>() else {
            return Ok(());
        };
        let place = Place {
            project: held.project,
            space,
        };
        let (now, only) = (self.engine.inner.clock.now(), Only::Version(version));
        match self.workspace.delete(place, &name, only, now, None).await {
            Ok(()) => held.plan.count(FILE, 1),
            Err(WorkspaceError::Missing(_) | WorkspaceError::Changed(_)) => {}
            Err(error) => return Err(store_error(error).into()),
        }
        self.touch(held).await
    }

    /// Removes a delivery, unless it was tried again since it was planned.
    async fn remove_delivery(&self, held: &mut Held, id: &str, version: u64) -> Result<(), DeletionError> {
        let unchanged = Expected {
            id: id.to_owned(),
            version: Some(version),
        };
        let changes = vec![Change::Remove(id.to_owned())];
        let (set, now) = (deliveries(held.project), self.engine.inner.clock.now());
        let removed = self
            .records
            .change_records(set, vec![unchanged], changes, now)
            .await;
        held.plan.count(outbox::KIND, unless_taken(removed)?.into());
        self.touch(held).await
    }
}

/// The same for the same batch: a batch that is archived again after a crash replaces its own object.
fn object_name(project: ProjectId, batch: &Batch) -> String {
    let content = serde_json::to_vec(batch).expect("a batch has text keys");
    let digest = <sha2::Sha256 as sha2::Digest>::digest(content);
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let first = batch.trees.first().map(|tree| tree.root.to_string());
    let loose = batch.loose.first().map(|(space, _)| space.to_string());
    format!(
        "{project}/{}-{digest}.jsonl.gz",
        first.or(loose).unwrap_or_else(|| "records".into())
    )
}
