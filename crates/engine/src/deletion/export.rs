//! What is stored of a person, as JSON lines, in the order in which it is deleted.

use serde_json::{Value, json};
use toolgate_kernel::event::Event;
use toolgate_kernel::id::SpaceId;

use super::entity::LOOKED_AT_ONCE;
use super::{Deletions, PORTION};
use crate::records::{Listing, Owner, RecordSet};
use crate::store::{EntityRecord, LogPlace, StoreError};

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
    Records(usize, Option<String>),
    Words(LogPlace),
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
            Step::Records(kind, after) => self.export_records(entity, kind, after).await?,
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
        let next = match spaces.last().filter(|_| spaces.len() == PORTION) {
            Some(last) => Step::Spaces(Some(last.id)),
            None => Step::Records(0, None),
        };
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

    async fn export_records(
        &self,
        entity: &EntityRecord,
        number: usize,
        after: Option<String>,
    ) -> Result<(Vec<Value>, Option<Step>), StoreError> {
        let Some(kind) = KINDS.get(number).copied() else {
            return Ok((Vec::new(), Some(Step::Words(LogPlace::start()))));
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
        let lines = page.iter().map(|record| {
            json!({
                "kind": kind,
                "id": record.id,
                "content": record.body,
                "createdAt": record.created,
                "updatedAt": record.updated,
            })
        });
        Ok((lines.collect(), Some(next)))
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
            for (seq, event) in entry.placed() {
                let is_theirs = match event {
                    Event::Said(e) => e.message.from == Some(entity.id),
                    event => event.without_person(entity.id).is_some(),
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
