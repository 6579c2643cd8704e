//! Deleting what has ended long ago, in batches that are archived first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_kernel::event::{Entry, Seq};
use toolgate_kernel::id::{ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;

use super::tree::store_error;
use super::{DeletionError, Deletions, Held, PORTION, What};
use crate::outbox;
use crate::records::{Change, Listing, Owner, RecordSet};
use crate::retention::{ArchiveObject, Rules, before};
use crate::revocation::Revoked;
use crate::store::{LogRange, Pages, RunRecord, StoreError, Trim};
use crate::workspace::{FILE, FileName, Only, Place, WorkspaceError};

/// Id of the deletion of a project's old data: there is one batch at a time.
const ID: &str = "retention";
/// Most run trees of a batch.
const TREES_MAX: usize = 50;
/// Stored bytes after which no further tree or file is added to a batch.
const BATCH_BYTES: u64 = 8 << 20;
/// Spaces that are looked at for entries of no run with one batch.
const SPACES_LOOKED: usize = 5_000;
/// Entries of no run that are read at once.
const LOOSE_PAGE: usize = 50;
/// Before every entry of no run.
const LOOSE_START: (Time, Seq) = (Time(i64::MIN), Seq(0));

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

/// A run tree of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Tree {
    root: RunId,
    space: SpaceId,
    below: Vec<(RunId, SpaceId)>,
}

/// What a batch deletes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Batch {
    trees: Vec<Tree>,
    files: Vec<(SpaceId, String)>,
    deliveries: Vec<String>,
    /// Spaces with entries of no run: those that were stored before a time go. None in a batch of an earlier version.
    #[serde(default)]
    loose: Vec<(SpaceId, Time)>,
    before: Time,
    /// The object that has it all before anything is deleted; none when the project archives nothing.
    object: Option<String>,
    /// SHA-256 of the object, once it is stored.
    archived: Option<String>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.trees.is_empty() && self.files.is_empty() && self.deliveries.is_empty() && self.loose.is_empty()
    }
}

impl Deletions {
    /// Archives and deletes a batch of what is too old in a project. False when there is nothing.
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
        tracing::info!(%project, ?removed, "deleted what is older than the project keeps");
        Ok(true)
    }

    async fn plan_batch(&self, project: ProjectId, rules: Rules, now: Time) -> Result<Batch, DeletionError> {
        let mut batch = Batch {
            trees: Vec::new(),
            files: Vec::new(),
            deliveries: Vec::new(),
            loose: Vec::new(),
            before: rules.runs.map_or(Time(i64::MIN), |kept| before(now, kept)),
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
            let is_old = |record: &crate::records::Record| record.due.is_none() && record.created < oldest;
            batch.deliveries = found.into_iter().filter(is_old).map(|record| record.id).collect();
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
                let mut pages = Pages::of_run(run.id, LogRange::default());
                while let Some(page) = pages.next(&**store).await? {
                    *bytes += page.bytes as u64;
                }
            }
            batch.trees.push(Tree {
                root: top.id,
                space: top.space,
                below: below.iter().map(|run| (run.id, run.space)).collect(),
            });
        }
        Ok(())
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
                    *bytes += file.bytes;
                    batch.files.push((space, file.path.clone()));
                }
                if files.len() < PORTION {
                    break;
                }
                after = files.last().map(|file| file.path.clone());
            }
        }
        Ok(())
    }

    /// Archives the batch unless that was done, notes it, and only then deletes.
    pub(super) async fn erase_expired(&self, held: &mut Held, mut batch: Batch) -> Result<(), DeletionError> {
        if let Some(name) = batch.object.clone().filter(|_| batch.archived.is_none()) {
            let archive = self.rules.archive(held.project).await?;
            let Some(archive) = archive else {
                let why = format!("{name} is to be archived, and the project has no archive any more");
                return Err(StoreError::Unavailable(why).into());
            };
            let mut object = archive.begin(&name);
            self.write_batch(held, &batch, &mut *object).await?;
            let stored = object.finish().await;
            let stored = stored.map_err(|error| StoreError::Unavailable(error.to_string()))?;
            metrics::counter!("toolgate_archive_bytes_total").increment(stored.bytes);
            tracing::info!(project = %held.project, object = name, hash = stored.hash, bytes = stored.bytes, "archived");
            batch.archived = Some(stored.hash);
            held.plan.what = What::Expired(Box::new(batch.clone()));
            let version = held.version;
            match self.store_plan(held, Some(version)).await {
                Err(StoreError::Conflict) => return Err(DeletionError::UnderWay),
                noted => noted?,
            }
        }
        for tree in &batch.trees {
            self.erase_tree(held, tree.root, tree.space, &tree.below).await?;
        }
        for (space, before) in &batch.loose {
            self.trim(held, Trim::Loose(*space, *before)).await?;
            self.engine.inner.revoke(Revoked::Words(*space));
        }
        for (space, path) in &batch.files {
            self.delete_file(held, *space, path).await?;
        }
        if !batch.deliveries.is_empty() {
            let changes = batch.deliveries.iter().cloned().map(Change::Remove).collect();
            let (set, now) = (deliveries(held.project), self.engine.inner.clock.now());
            self.records.change_records(set, Vec::new(), changes, now).await?;
            held.plan.count(outbox::KIND, batch.deliveries.len() as u64);
        }
        Ok(())
    }

    async fn delete_file(&self, held: &mut Held, space: SpaceId, path: &str) -> Result<(), DeletionError> {
        let Ok(name) = path.parse::<FileName>() else {
            return Ok(());
        };
        let place = Place {
            project: held.project,
            space,
        };
        let now = self.engine.inner.clock.now();
        match self.workspace.delete(place, &name, Only::Always, now, None).await {
            Ok(()) => held.plan.count(FILE, 1),
            Err(WorkspaceError::Missing(_)) => {}
            Err(error) => return Err(store_error(error).into()),
        }
        self.touch(held).await
    }

    async fn write_batch(
        &self,
        held: &mut Held,
        batch: &Batch,
        object: &mut dyn ArchiveObject,
    ) -> Result<(), DeletionError> {
        for tree in &batch.trees {
            let runs = std::iter::once(tree.root).chain(tree.below.iter().map(|(run, _)| *run));
            for run in runs {
                self.write_run(run, object).await?;
                self.touch(held).await?;
            }
        }
        for (space, before) in &batch.loose {
            self.write_loose(held, *space, *before, object).await?;
        }
        for (space, path) in &batch.files {
            let set = RecordSet {
                project: held.project,
                owner: Owner::Space(*space),
                kind: FILE,
            };
            if let Some(file) = self.records.record(set, path).await? {
                let data = STANDARD.encode(file.data.unwrap_or_default());
                write(
                    object,
                    &json!({"kind": "file", "spaceId": space, "path": path, "content": file.body,
                        "updatedAt": file.updated, "data": data}),
                );
            }
        }
        for id in &batch.deliveries {
            if let Some(record) = self.records.record(deliveries(held.project), id).await? {
                write(
                    object,
                    &json!({"kind": outbox::KIND, "id": id, "content": record.body, "createdAt": record.created}),
                );
            }
        }
        Ok(())
    }

    async fn write_loose(
        &self,
        held: &mut Held,
        space: SpaceId,
        before: Time,
        object: &mut dyn ArchiveObject,
    ) -> Result<(), DeletionError> {
        let mut after = LOOSE_START;
        loop {
            let store = &self.engine.inner.store;
            let page = store.loose_entries(space, before, after, LOOSE_PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = (last.time, last.first);
            page.iter().for_each(|entry| write(object, &entry_line(entry)));
            self.touch(held).await?;
        }
    }

    async fn write_run(&self, run: RunId, object: &mut dyn ArchiveObject) -> Result<(), StoreError> {
        let store = &self.engine.inner.store;
        let Some(record) = store.run(run).await? else {
            return Ok(());
        };
        write(object, &run_line(&record));
        let mut pages = Pages::of_run(run, LogRange::default());
        while let Some(page) = pages.next(&**store).await? {
            let entries = page.entries.iter();
            entries.for_each(|entry| write(object, &entry_line(entry)));
        }
        Ok(())
    }
}

fn entry_line(entry: &Entry) -> Value {
    json!({"kind": "entry", "spaceId": entry.space, "runId": entry.run, "seq": entry.first, "time": entry.time,
        "events": entry.events})
}

fn run_line(record: &RunRecord) -> Value {
    json!({
        "kind": "run",
        "id": record.id,
        "spaceId": record.space,
        "agent": record.agent,
        "revision": record.revision,
        "rootId": record.root,
        "parent": record.parent,
        "userId": record.user,
        "title": record.title,
        "tool": record.tool,
        "status": record.status.as_str(),
        "tokens": record.tokens,
        "createdAt": record.created,
        "updatedAt": record.updated,
    })
}

fn write(object: &mut dyn ArchiveObject, line: &Value) {
    let mut text = serde_json::to_vec(line).expect("a line has text keys");
    text.push(b'\n');
    object.write(&text);
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

fn deliveries(project: ProjectId) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Project,
        kind: outbox::KIND,
    }
}
