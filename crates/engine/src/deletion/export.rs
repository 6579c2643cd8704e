//! What is stored of a person, as JSON lines, in the order in which it is deleted.

use std::collections::VecDeque;

use serde_json::{Value, json};
use toolgate_kernel::event::Event;
use toolgate_kernel::id::SpaceId;

use super::entity::{LOOKED_AT_ONCE, MADE_FOR_PEOPLE};
use super::files::file_line;
use super::tree::store_error;
use super::{Deletions, PORTION};
use crate::records::{Listing, Owner, Record, RecordSet};
use crate::store::{EntityRecord, LogPlace, StoreError};
use crate::workspace::Place;

/// Kinds of records that are kept for a person.
const KINDS: [&str; 4] = ["memory", "goal", "plan", "notification"];

/// An export under way: a few lines at a time, so that little of it is in memory.
pub struct Export {
    entity: EntityRecord,
    next: Option<Step>,
}

enum Step {
    Entity,
    Spaces(Option<SpaceId>),
    Files(Files),
    Records(usize, Option<String>),
    /// Records of others that name the person: a kind, the sets of it that are left, and how far the first one was read.
    Named(usize, Option<Vec<RecordSet>>, Option<String>),
    Words(LogPlace),
}

/// Files of spaces of the person's own, a version at a time: each may be large.
struct Files {
    /// Spaces that are left.
    spaces: Vec<SpaceId>,
    /// The file that was read last in the last of them.
    after: Option<String>,
    /// Versions of that file that are left.
    versions: VecDeque<u64>,
    /// The space behind which memberships go on; none when these were the last.
    before: Option<SpaceId>,
}

impl Export {
    /// All that is stored of a person.
    pub fn of(entity: EntityRecord) -> Self {
        Self {
            entity,
            next: Some(Step::Entity),
        }
    }
}

impl Deletions {
    /// The next lines of an export, which may be none yet; nothing more at the end.
    pub async fn export(&self, export: &mut Export) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(step) = export.next.take() else {
            return Ok(None);
        };
        let entity = &export.entity;
        let (lines, next) = match step {
            Step::Entity => (vec![entity_line(entity)], Some(Step::Spaces(None))),
            Step::Spaces(before) => self.export_spaces(entity, before).await?,
            Step::Files(files) => self.export_files(entity, files).await?,
            Step::Records(kind, after) => self.export_records(entity, kind, after).await?,
            Step::Named(kind, sets, after) => self.export_named(entity, kind, sets, after).await?,
            Step::Words(after) => self.export_words(entity, after).await?,
        };
        export.next = next;
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, &line).expect("a line has text keys");
            text.push(b'\n');
        }
        Ok(Some(text))
    }

    async fn export_spaces(
        &self,
        entity: &EntityRecord,
        before: Option<SpaceId>,
    ) -> Result<(Vec<Value>, Option<Step>), StoreError> {
        let store = &self.engine.inner.store;
        let spaces = store
            .spaces(entity.project, Some(entity.id), before, PORTION)
            .await?;
        let own = spaces.iter().filter(|space| space.members == [entity.id]);
        let next = Step::Files(Files {
            spaces: own.map(|space| space.id).collect(),
            after: None,
            versions: VecDeque::new(),
            before: spaces
                .last()
                .filter(|_| spaces.len() == PORTION)
                .map(|last| last.id),
        });
        let lines = spaces.iter().map(|space| {
            json!({
                "kind": "membership",
                "spaceId": space.id,
                "title": space.title,
                "ownSpace": space.members == [entity.id],
                "createdAt": space.created,
            })
        });
        Ok((lines.collect(), Some(next)))
    }

    async fn export_files(
        &self,
        entity: &EntityRecord,
        mut files: Files,
    ) -> Result<(Vec<Value>, Option<Step>), StoreError> {
        let Some(space) = files.spaces.last().copied() else {
            let next = match files.before {
                Some(before) => Step::Spaces(Some(before)),
                None => Step::Records(0, None),
            };
            return Ok((Vec::new(), Some(next)));
        };
        let place = Place {
            project: entity.project,
            space,
        };
        let mut lines = Vec::new();
        if let (Some(path), Some(version)) = (&files.after, files.versions.pop_front()) {
            let file = self.file(place, path, Some(version)).await?;
            lines.extend(file.map(|file| file_line(space, &file)));
            return Ok((lines, Some(Step::Files(files))));
        }
        let listing = Listing {
            prefix: String::new(),
            after: files.after.take(),
            limit: 1,
        };
        let found = self.workspace.list(place, listing).await.map_err(store_error)?;
        match found.into_iter().next() {
            Some(file) => {
                let earlier = self.earlier_versions(place, &file.path).await?;
                files.versions = earlier.iter().map(|earlier| earlier.version).collect();
                files.versions.push_back(file.version);
                files.after = Some(file.path);
            }
            None => {
                files.spaces.pop();
            }
        }
        Ok((lines, Some(Step::Files(files))))
    }

    async fn export_records(
        &self,
        entity: &EntityRecord,
        number: usize,
        after: Option<String>,
    ) -> Result<(Vec<Value>, Option<Step>), StoreError> {
        let Some(kind) = KINDS.get(number).copied() else {
            return Ok((Vec::new(), Some(Step::Named(0, None, None))));
        };
        let set = RecordSet {
            project: entity.project,
            owner: Owner::Entity(entity.id),
            kind,
        };
        let listing = Listing {
            prefix: String::new(),
            after,
            limit: PORTION,
        };
        let page = self.records.list_records(set, listing).await?;
        let next = match page.last().filter(|_| page.len() == PORTION) {
            Some(last) => Step::Records(number, Some(last.id.clone())),
            None => Step::Records(number + 1, None),
        };
        let lines = page.iter().map(|record| record_line(kind, record));
        Ok((lines.collect(), Some(next)))
    }

    async fn export_named(
        &self,
        entity: &EntityRecord,
        number: usize,
        sets: Option<Vec<RecordSet>>,
        after: Option<String>,
    ) -> Result<(Vec<Value>, Option<Step>), StoreError> {
        let Some(kind) = MADE_FOR_PEOPLE.get(number).copied() else {
            return Ok((Vec::new(), Some(Step::Words(LogPlace::start()))));
        };
        let mut sets = match sets {
            Some(sets) => sets,
            None => {
                let mut sets = self.records.record_sets(kind).await?;
                // Those of the person were exported with the rest of theirs.
                let own = Owner::Entity(entity.id);
                sets.retain(|set| set.project == entity.project && set.owner != own);
                sets
            }
        };
        let Some(set) = sets.last().copied() else {
            return Ok((Vec::new(), Some(Step::Named(number + 1, None, None))));
        };
        let listing = Listing {
            prefix: String::new(),
            after,
            limit: PORTION,
        };
        let page = self.records.list_records(set, listing).await?;
        let after = page.last().filter(|_| page.len() == PORTION);
        let after = after.map(|last| last.id.clone());
        if after.is_none() {
            sets.pop();
        }
        let name = entity.id.to_string();
        let named = page.iter().filter(|record| record.body.as_str().contains(&name));
        let lines = named.map(|record| record_line(kind, record)).collect();
        Ok((lines, Some(Step::Named(number, Some(sets), after))))
    }

    async fn export_words(
        &self,
        entity: &EntityRecord,
        after: LogPlace,
    ) -> Result<(Vec<Value>, Option<Step>), StoreError> {
        let store = &self.engine.inner.store;
        let name = entity.id.to_string();
        let found = store
            .find_entries(entity.project, &name, after, LOOKED_AT_ONCE)
            .await?;
        let mut lines = Vec::new();
        for entry in &found.entries {
            // What a deletion would change, so that nothing is deleted unseen.
            let after = entry.without_person(entity.id);
            for ((seq, event), after) in entry.placed().zip(after.iter().flatten()) {
                let is_theirs = match event {
                    Event::Said(e) => e.message.from == Some(entity.id),
                    event => event != after,
                };
                if is_theirs {
                    lines.push(json!({
                        "kind": "event",
                        "spaceId": entry.space,
                        "runId": entry.run,
                        "seq": seq,
                        "time": entry.time,
                        "event": event,
                    }));
                }
            }
        }
        Ok((lines, found.next.map(Step::Words)))
    }
}

fn record_line(kind: &str, record: &Record) -> Value {
    json!({
        "kind": kind,
        "id": record.id,
        "content": record.body,
        "createdAt": record.created,
        "updatedAt": record.updated,
    })
}

fn entity_line(entity: &EntityRecord) -> Value {
    json!({
        "kind": "entity",
        "id": entity.id,
        "subject": entity.subject,
        "entityKind": entity.kind,
        "name": entity.name,
        "metadata": entity.metadata,
        "grants": entity.grants,
        "createdAt": entity.created,
    })
}
