//! Writing what a batch deletes to the archive of its project.

use serde_json::{Value, json};
use toolgate_kernel::event::{Entry, Seq};
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::time::Time;

use super::deliveries::deliveries;
use super::expired::Batch;
use super::files::file_line;
use super::tree::{Tree, store_error};
use super::{DeletionError, Deletions, Held, PORTION};
use crate::outbox;
use crate::records::Listing;
use crate::retention::ArchiveObject;
use crate::store::{LogRange, Pages, RunRecord, StoreError};
use crate::workspace::{Place, outputs_of};

/// Entries of no run that are read at once.
pub(super) const LOOSE_PAGE: usize = 50;
/// Before every entry of no run.
pub(super) const LOOSE_START: (Time, Seq) = (Time(i64::MIN), Seq(0));

impl Deletions {
    /// Writes all that the batch deletes. What has changed since it was planned stays, and is not written.
    pub(super) async fn write_batch(
        &self,
        held: &mut Held,
        batch: &Batch,
        object: &mut dyn ArchiveObject,
    ) -> Result<(), DeletionError> {
        for tree in &batch.trees {
            self.write_tree(held, tree, object).await?;
        }
        for (space, before) in &batch.loose {
            self.write_loose(held, *space, *before, object).await?;
        }
        for (space, path, version) in batch.files() {
            self.write_file(held, space, path, Some(version), object).await?;
        }
        for (id, version) in batch.deliveries() {
            let record = self.records.record(deliveries(held.project), id).await?;
            if let Some(record) = record.filter(|record| record.version == version) {
                write(
                    object,
                    &json!({"kind": outbox::KIND, "id": id, "content": record.body, "createdAt": record.created}),
                );
            }
        }
        Ok(())
    }

    /// Writes the runs with their kept outputs. The spaces of child runs go as a whole, so they are written as a whole.
    async fn write_tree(
        &self,
        held: &mut Held,
        tree: &Tree,
        object: &mut dyn ArchiveObject,
    ) -> Result<(), DeletionError> {
        self.write_run(tree.root, object).await?;
        self.write_files(held, tree.space, outputs_of(tree.root), object)
            .await?;
        for (run, space) in &tree.below {
            self.touch(held).await?;
            self.write_run(*run, object).await?;
            self.write_loose(held, *space, Time(i64::MAX), object).await?;
            self.write_files(held, *space, String::new(), object).await?;
        }
        self.touch(held).await
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

    /// Writes all files of a space whose names begin so.
    async fn write_files(
        &self,
        held: &mut Held,
        space: SpaceId,
        prefix: String,
        object: &mut dyn ArchiveObject,
    ) -> Result<(), DeletionError> {
        let place = Place {
            project: held.project,
            space,
        };
        let mut after = None;
        loop {
            let listing = Listing {
                prefix: prefix.clone(),
                after,
                limit: PORTION,
            };
            let files = self.workspace.list(place, listing).await.map_err(store_error)?;
            for file in &files {
                self.write_file(held, space, &file.path, None, object).await?;
            }
            if files.len() < PORTION {
                return Ok(());
            }
            after = files.last().map(|file| file.path.clone());
        }
    }

    /// Writes a file with its earlier versions, oldest first; nothing when it should have another version than it has.
    async fn write_file(
        &self,
        held: &mut Held,
        space: SpaceId,
        path: &str,
        version: Option<u64>,
        object: &mut dyn ArchiveObject,
    ) -> Result<(), DeletionError> {
        let place = Place {
            project: held.project,
            space,
        };
        let newest = self.file(place, path, None).await?;
        let as_planned = newest.filter(|file| version.is_none_or(|version| file.info.version == version));
        let Some(newest) = as_planned else {
            return Ok(());
        };
        for earlier in self.earlier_versions(place, path).await? {
            if let Some(file) = self.file(place, path, Some(earlier.version)).await? {
                write(object, &file_line(space, &file));
            }
        }
        write(object, &file_line(space, &newest));
        self.touch(held).await
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
