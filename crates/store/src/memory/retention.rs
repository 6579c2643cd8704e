//! Deleting: runs, spaces, people, and entries of logs.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_engine::records::Owner;
use toolgate_engine::store::{
    Deleted, FoundEntries, LogPlace, LooseSpaces, Purged, Retention, RunRecord, SpaceRecord, StoreError,
    Trim, TrimLimit, Trimmed,
};
use toolgate_engine::usage::Day;
use toolgate_kernel::event::{Entry, Event, Seq};
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;

use super::MemoryStore;
use super::state::State;
use crate::text;

#[async_trait]
impl Retention for MemoryStore {
    async fn log_floor(&self, space: SpaceId) -> Result<Seq, StoreError> {
        Ok(self.state().floors.get(&space).copied().unwrap_or_default())
    }
    async fn log_rewrites(&self, space: SpaceId) -> Result<u64, StoreError> {
        Ok(self.state().rewrites.get(&space).copied().unwrap_or_default())
    }
    async fn was_deleted(&self, project: ProjectId, deleted: Deleted) -> Result<bool, StoreError> {
        let state = self.state();
        let deleted = state.deleted.get(&deleted);
        Ok(deleted.is_some_and(|(of, _)| *of == project))
    }
    async fn ended_trees(
        &self,
        project: ProjectId,
        before: Time,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let state = self.state();
        let has_ended = |run: &RunRecord| run.status.is_final() && run.updated <= before;
        let mut ended: Vec<RunRecord> = state
            .runs
            .values()
            .filter(|run| run.project == project && run.parent.is_none() && has_ended(run))
            .filter(|top| {
                let mut below = state.runs.values().filter(|run| run.root == top.id);
                below.all(has_ended)
            })
            .cloned()
            .collect();
        ended.sort_by_key(|run| run.updated);
        ended.truncate(limit);
        Ok(ended)
    }
    async fn run_bytes(&self, run: RunId) -> Result<u64, StoreError> {
        let state = self.state();
        let entries = state
            .log
            .values()
            .flatten()
            .filter(|entry| entry.run == Some(run));
        Ok(entries.map(|entry| text::write(&entry.events).len() as u64).sum())
    }
    async fn loose_spaces(
        &self,
        project: ProjectId,
        before: Time,
        after: SpaceId,
        count: usize,
    ) -> Result<LooseSpaces, StoreError> {
        let state = self.state();
        let spaces = state.spaces.values();
        let spaces = spaces.filter(|space| space.project == project && space.id > after);
        let looked: Vec<SpaceId> = spaces.map(|space| space.id).take(count).collect();
        let is_loose = |space: &SpaceId| {
            let log = state.log.get(space).into_iter().flatten();
            log.clone()
                .any(|entry| entry.run.is_none() && entry.time < before)
        };
        Ok(LooseSpaces {
            next: looked.last().copied().filter(|_| looked.len() >= count),
            spaces: looked.iter().copied().filter(is_loose).collect(),
        })
    }
    async fn loose_entries(
        &self,
        space: SpaceId,
        before: Time,
        after: (Time, Seq),
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let state = self.state();
        let log = state.log.get(&space).into_iter().flatten();
        let is_it = |entry: &&Arc<Entry>| {
            entry.run.is_none() && entry.time < before && (entry.time, entry.first) > after
        };
        let mut found: Vec<Entry> = log.filter(is_it).map(|entry| (**entry).clone()).collect();
        found.sort_by_key(|entry| (entry.time, entry.first));
        found.truncate(limit);
        Ok(found)
    }
    async fn remove_runs(&self, project: ProjectId, runs: Vec<RunId>, now: Time) -> Result<(), StoreError> {
        let mut state = self.state();
        let is_own = |run: &RunId| state.runs.get(run).is_none_or(|record| record.project == project);
        let own: Vec<RunId> = runs.into_iter().filter(is_own).collect();
        let is_open = |run| {
            state
                .runs
                .get(run)
                .is_some_and(|record| !record.status.is_final())
        };
        if own.iter().any(is_open) {
            return Err(StoreError::Conflict);
        }
        for run in own {
            state.runs.remove(&run);
            state.asking.remove(&run);
            state.remember_deleted(project, Deleted::Run(run), now);
        }
        Ok(())
    }
    async fn remove_space(&self, project: ProjectId, space: SpaceId, now: Time) -> Result<(), StoreError> {
        let mut state = self.state();
        let known = state.spaces.get(&space);
        if known.is_some_and(|record| record.project != project) {
            return Ok(());
        }
        state.spaces.remove(&space);
        state.members.retain(|(of, _), _| *of != space);
        state.remember_deleted(project, Deleted::Space(space), now);
        Ok(())
    }
    async fn trim_log(&self, trim: Trim, limit: TrimLimit) -> Result<Trimmed, StoreError> {
        Ok(self.state().trim(trim, limit))
    }
    async fn remove_records(
        &self,
        project: ProjectId,
        owner: Owner,
        limit: usize,
    ) -> Result<Purged, StoreError> {
        Ok(self.state().records.remove_some(project, owner, limit))
    }
    async fn remove_usage(&self, project: ProjectId, before: Day) -> Result<u64, StoreError> {
        let mut removed = 0;
        self.state().usage.retain(|(of, _, day), uses| {
            let is_kept = *of != project || *day >= before;
            removed += if is_kept { 0 } else { uses.len() as u64 };
            is_kept
        });
        Ok(removed)
    }
    async fn remove_consumption(
        &self,
        project: ProjectId,
        before: Day,
        limit: usize,
    ) -> Result<u64, StoreError> {
        Ok(self.state().consumption.remove(project, before, limit))
    }
    async fn unlink_consumption(
        &self,
        project: ProjectId,
        user: EntityId,
        limit: usize,
    ) -> Result<u64, StoreError> {
        Ok(self.state().consumption.unlink(project, user, limit))
    }
    async fn forget_nodes(&self, before: Time) -> Result<u64, StoreError> {
        let state = &mut *self.state();
        let count = state.nodes.len();
        let holds = |node| {
            let mut runs = state.runs.values();
            runs.any(|run| run.node == Some(node) && !run.status.is_final())
        };
        state.nodes.retain(|node, until| *until >= before || holds(*node));
        Ok((count - state.nodes.len()) as u64)
    }
    async fn unlink_runs(&self, project: ProjectId, user: EntityId, limit: usize) -> Result<u64, StoreError> {
        let mut state = self.state();
        let started = state.runs.values_mut();
        let started = started.filter(|run| run.project == project && run.user == Some(user));
        let mut unlinked = 0;
        for run in started.take(limit) {
            (run.user, run.title) = (None, None);
            unlinked += 1;
        }
        Ok(unlinked)
    }
    async fn remove_entity(
        &self,
        project: ProjectId,
        entity: EntityId,
        now: Time,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let known = state.entities.get(&entity).map(|known| known.project);
        if known.is_some_and(|of| of != project) {
            return Ok(false);
        }
        state.remember_deleted(project, Deleted::Entity(entity), now);
        Ok(state.entities.remove(&entity).is_some())
    }
    async fn find_entries(
        &self,
        project: ProjectId,
        text: &str,
        after: LogPlace,
        rows: usize,
    ) -> Result<FoundEntries, StoreError> {
        let state = self.state();
        let spaces = state.spaces.range(after.space..);
        let spaces = spaces.filter(|(_, record)| record.project == project);
        let entries = spaces.flat_map(|(space, _)| state.log.get(space).into_iter().flatten());
        let behind = |entry: &&Arc<Entry>| entry.space > after.space || entry.first > after.seq;
        let seen: Vec<&Arc<Entry>> = entries.filter(behind).take(rows).collect();
        let next = seen.last().filter(|_| seen.len() == rows).map(|last| LogPlace {
            space: last.space,
            seq: last.first,
        });
        let found = seen
            .iter()
            .filter(|entry| text::write(&entry.events).contains(text));
        Ok(FoundEntries {
            entries: found.map(|entry| (***entry).clone()).collect(),
            next,
        })
    }
    async fn rewrite_entry(&self, before: Entry, events: Vec<Event>) -> Result<(), StoreError> {
        let mut state = self.state();
        let log = state.log.get_mut(&before.space);
        let stored = log.and_then(|log| log.iter_mut().find(|entry| entry.first == before.first));
        match stored {
            None => Ok(()),
            Some(stored) if stored.events == before.events => {
                let space = before.space;
                *stored = Arc::new(Entry { events, ..before });
                *state.rewrites.entry(space).or_default() += 1;
                Ok(())
            }
            Some(_) => Err(StoreError::Conflict),
        }
    }
    async fn reclaim(&self, _: u32) -> Result<u32, StoreError> {
        Ok(0)
    }
}

impl State {
    /// Whether everything that was ever in a space was deleted.
    pub(super) fn is_emptied(&self, space: &SpaceRecord) -> bool {
        let had_log = self.floors.get(&space.id).is_some_and(|floor| floor.0 > 0);
        let has_log = self.log.get(&space.id).is_some_and(|log| !log.is_empty());
        let has_runs = self.runs.values().any(|run| run.space == space.id);
        let owner = Owner::Space(space.id);
        had_log && !has_log && !has_runs && !self.records.has_owned(space.project, owner)
    }

    fn remember_deleted(&mut self, project: ProjectId, deleted: Deleted, now: Time) {
        let oldest = crate::deleted_known_since(now);
        self.deleted.retain(|_, (_, time)| *time >= oldest);
        self.deleted.insert(deleted, (project, now));
    }

    fn trim(&mut self, trim: Trim, limit: TrimLimit) -> Trimmed {
        let space = match trim {
            Trim::Space(space) | Trim::Loose(space, _) => Some(space),
            Trim::Run(run) => {
                let has_run = |log: &Vec<Arc<Entry>>| log.iter().any(|entry| entry.run == Some(run));
                let found = self.log.iter().find(|(_, log)| has_run(log));
                found.map(|(space, _)| *space)
            }
        };
        let mut trimmed = Trimmed::default();
        let Some(space) = space else { return trimmed };
        let (mut last, log) = (None, self.log.entry(space).or_default());
        log.retain(|entry| {
            let is_it = match trim {
                Trim::Run(run) => entry.run == Some(run),
                Trim::Space(_) => true,
                Trim::Loose(_, before) => entry.run.is_none() && entry.time < before,
            };
            if !is_it {
                return true;
            }
            let is_full = trimmed.entries >= limit.entries as u64 || trimmed.bytes >= limit.bytes as u64;
            trimmed.more |= is_full;
            if !is_full {
                trimmed.entries += 1;
                trimmed.bytes += text::write(&entry.events).len() as u64;
                last = Some(entry.last());
            }
            is_full
        });
        if log.is_empty() {
            self.log.remove(&space);
        }
        match (trim, last) {
            (Trim::Space(_), _) if !trimmed.more => {
                self.floors.remove(&space);
                self.rewrites.remove(&space);
            }
            (_, Some(last)) => {
                *self.rewrites.entry(space).or_default() += 1;
                let floor = self.floors.entry(space).or_default();
                *floor = last.max(*floor);
            }
            (_, None) => {}
        }
        trimmed
    }
}
