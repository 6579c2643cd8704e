//! Deleting people.

use toolgate_kernel::event::{Entry, Seq};
use toolgate_kernel::id::{EntityId, SpaceId};

use super::{DeletionError, Deletions, Held, PORTION, What};
use crate::records::{Change, Listing, Owner};
use crate::revocation::Revoked;
use crate::store::{LogPlace, RunFilter, StoreError};
use crate::{consents, push_configs};

/// Entries that are looked through at once.
pub(super) const LOOKED_AT_ONCE: usize = 2_000;
/// Kinds of records that are kept for others but were made for a person, whom they name: plans of agents, where the
/// changes of their runs are posted to, and consents that they gave or that were given for them.
pub(super) const MADE_FOR_PEOPLE: [&str; 3] = ["plan", push_configs::KIND, consents::KIND];

impl Deletions {
    /// Removes the entity first: a token of the same subject is another person from then on, and nothing begins for this one any
    /// more, so what is left to delete has an end. Then goes what was theirs alone, and then their words elsewhere.
    pub(super) async fn erase_entity(
        &self,
        held: &mut Held,
        entity: EntityId,
        looked: Option<(SpaceId, Seq)>,
    ) -> Result<(), DeletionError> {
        let inner = &self.engine.inner;
        let now = inner.clock.now();
        let was_there = inner.store.remove_entity(held.project, entity, now).await?;
        held.plan.count("entities", was_there.into());
        inner.revoke(Revoked::Entity(entity));
        self.leave_spaces(held, entity).await?;
        self.erase_calls(held, entity).await?;
        self.remove_records(held, Owner::Entity(entity)).await?;
        for kind in MADE_FOR_PEOPLE {
            self.remove_naming(held, kind, entity).await?;
        }
        self.remove_words(held, entity, looked).await?;
        // After the words: a run that is read from its log stores the consents that its decisions are.
        self.remove_naming(held, consents::KIND, entity).await?;
        loop {
            let store = &inner.store;
            let runs = store.unlink_runs(held.project, entity, PORTION).await?;
            let sums = store.unlink_consumption(held.project, entity, PORTION).await?;
            if runs.max(sums) < PORTION as u64 {
                break;
            }
            self.touch(held).await?;
        }
        inner.revoke(Revoked::Entity(entity));
        Ok(())
    }

    /// Deletes spaces that only this person is a member of, and takes the person out of the others.
    async fn leave_spaces(&self, held: &mut Held, entity: EntityId) -> Result<(), DeletionError> {
        if let Some(space) = held.plan.space_begun {
            // While its row is there nothing of it is gone, and who is a member now decides below.
            if self.engine.inner.store.space(space).await?.is_none() {
                self.erase_begun(held, space).await?;
            }
            held.plan.space_begun = None;
        }
        loop {
            let store = &self.engine.inner.store;
            let spaces = store.spaces(held.project, Some(entity), None, PORTION).await?;
            let is_last = spaces.is_empty();
            for space in spaces {
                match space.members == [entity] {
                    true => {
                        // Noted first: once its row is gone, nothing would find the rest of it after a crash.
                        held.plan.space_begun = Some(space.id);
                        self.note(held).await?;
                        self.erase_begun(held, space.id).await?;
                    }
                    false => {
                        self.engine.remove_member(space.id, entity).await?;
                        held.plan.count("memberships", 1);
                    }
                }
                self.touch(held).await?;
            }
            // Of all of them at once: reading all deliveries of a project takes long. What is noted meanwhile still names the spaces.
            let erased = held.plan.spaces_erased.clone();
            if !erased.is_empty() {
                self.remove_deliveries_of_spaces(held, &erased).await?;
                held.plan.spaces_erased.clear();
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Deletes a space whose deletion was noted, and remembers that its deliveries are left. The next note has both.
    async fn erase_begun(&self, held: &mut Held, space: SpaceId) -> Result<(), DeletionError> {
        self.erase_space(held, space).await?;
        held.plan.spaces_erased.push(space);
        held.plan.space_begun = None;
        Ok(())
    }

    /// Deletes the calls of tools that the person asked for: input and output were theirs.
    async fn erase_calls(&self, held: &mut Held, entity: EntityId) -> Result<(), DeletionError> {
        let mut before = None;
        loop {
            let filter = RunFilter {
                user: Some(entity),
                before,
                limit: PORTION,
                ..RunFilter::default()
            };
            let page = self.engine.inner.store.runs(held.project, filter).await?;
            before = page.next;
            for call in page.runs.iter().filter(|run| run.tool.is_some()) {
                self.end_and_erase(held, call).await?;
            }
            self.touch(held).await?;
            if before.is_none() {
                return Ok(());
            }
        }
    }

    /// Removes records of a kind, of any owner in the project, that name the person.
    async fn remove_naming(
        &self,
        held: &mut Held,
        kind: &'static str,
        entity: EntityId,
    ) -> Result<(), DeletionError> {
        let (name, project) = (entity.to_string(), held.project);
        let sets = self.records.record_sets(kind).await?;
        for set in sets.into_iter().filter(|set| set.project == project) {
            let mut after = None;
            loop {
                let listing = Listing {
                    prefix: String::new(),
                    after,
                    limit: PORTION,
                };
                let page = self.records.list_records(set, listing).await?;
                let (is_last, last) = (page.len() < PORTION, page.last().map(|record| record.id.clone()));
                let named = page
                    .into_iter()
                    .filter(|record| record.body.as_str().contains(&name));
                let changes: Vec<Change> = named.map(|record| Change::Remove(record.id)).collect();
                if !changes.is_empty() {
                    held.plan.count(kind, changes.len() as u64);
                    let now = self.engine.inner.clock.now();
                    self.records.change_records(set, Vec::new(), changes, now).await?;
                }
                self.touch(held).await?;
                if is_last {
                    break;
                }
                after = last;
            }
        }
        Ok(())
    }

    /// Takes the person's words out of all logs of the project. Events keep their places.
    async fn remove_words(
        &self,
        held: &mut Held,
        entity: EntityId,
        looked: Option<(SpaceId, Seq)>,
    ) -> Result<(), DeletionError> {
        let name = entity.to_string();
        let mut after = looked.map_or_else(LogPlace::start, |(space, seq)| LogPlace { space, seq });
        loop {
            let store = &self.engine.inner.store;
            let found = store
                .find_entries(held.project, &name, after, LOOKED_AT_ONCE)
                .await?;
            let mut is_whole = true;
            for entry in found.entries {
                is_whole &= self.rewrite(held, entry, entity).await?;
            }
            match found.next {
                // Somebody else has rewritten one of them: they are read again.
                _ if !is_whole => {}
                Some(next) => after = next,
                None => return Ok(()),
            }
            if let What::Entity { looked, .. } = &mut held.plan.what {
                *looked = Some((after.space, after.seq));
            }
            self.touch(held).await?;
        }
    }

    /// False when the entry is no longer as it was read.
    async fn rewrite(&self, held: &mut Held, entry: Entry, entity: EntityId) -> Result<bool, DeletionError> {
        let Some(events) = entry.without_person(entity) else {
            return Ok(true);
        };
        let space = entry.space;
        let changed = entry.events.iter().zip(&events).filter(|(old, new)| old != new);
        let count = changed.count() as u64;
        match self.engine.inner.store.rewrite_entry(entry, events).await {
            Ok(()) => {
                held.plan.count("messages", count);
                self.engine.inner.revoke(Revoked::Words(space));
                Ok(true)
            }
            Err(StoreError::Conflict) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
