//! The store in plain maps behind one lock: what the seam means, without a database in the way.

mod leases;
mod records;
mod state;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use toolgate_engine::records::{Amendment, Found, Listing, Owner, Receipt, Record, Records, Shelf};
use toolgate_engine::store::{
    AgentRecord, Append, CommitListener, EntityRecord, Family, IdempotencyRecord, KeyRecord, LogRange,
    ProjectRecord, RunFilter, RunRecord, SpaceRecord, Store, StoreError,
};
use toolgate_engine::usage::{Day, UsageRecord};
use toolgate_kernel::agent::entity_of;
use toolgate_kernel::event::Entry;
use toolgate_kernel::id::{EntityId, KeyId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use crate::listeners::Listeners;
use state::{Agent, State};

/// A store that forgets everything with the process.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    listeners: Listeners,
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no store method panics with the lock")
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn listen(&self, listener: Arc<dyn CommitListener>) {
        self.listeners.add(listener);
    }

    async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError> {
        crate::check(&append);
        let mut state = self.state();
        let entry = state.append(append)?;
        // Told under the lock: the order of commits is the order of news.
        self.listeners.tell(std::slice::from_ref(&entry));
        Ok(entry)
    }
    async fn run_log(&self, run: RunId) -> Result<Vec<Entry>, StoreError> {
        let state = self.state();
        let Some(row) = state.runs.get(&run) else {
            return Ok(Vec::new());
        };
        let log = state.log.get(&row.space).into_iter().flatten();
        Ok(log
            .filter(|entry| entry.run == Some(run))
            .map(|entry| (**entry).clone())
            .collect())
    }
    async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<Vec<Entry>, StoreError> {
        let state = self.state();
        let log = state.log.get(&space).into_iter().flatten();
        let within = log
            .filter(|entry| entry.last() > range.after)
            .filter(|entry| range.before.is_none_or(|before| entry.first < before));
        Ok(within.take(range.limit).map(|entry| (**entry).clone()).collect())
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.state().runs.get(&run).cloned())
    }
    async fn runs(&self, project: ProjectId, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        let state = self.state();
        let fits = |run: &&RunRecord| {
            run.project == project
                && filter.space.is_none_or(|space| run.space == space)
                && filter.status.is_none_or(|status| run.status == status)
                && filter
                    .parent
                    .is_none_or(|parent| run.parent.is_some_and(|call| call.run == parent))
                && filter.before.is_none_or(|before| run.id < before)
        };
        let runs = state.runs.values().rev();
        Ok(runs.filter(fits).take(filter.limit).cloned().collect())
    }
    async fn family(&self, root: RunId) -> Result<Family, StoreError> {
        Ok(self.state().family(root))
    }
    async fn claimable(&self, now: Time, limit: usize) -> Result<Vec<RunId>, StoreError> {
        Ok(self.state().claimable(now, limit))
    }
    async fn claim(&self, run: RunId, node: NodeId, now: Time) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.state().claim(run, node, now))
    }
    async fn release(&self, run: RunId, epoch: u64) -> Result<(), StoreError> {
        self.state().release(run, epoch);
        Ok(())
    }
    async fn heartbeat(&self, node: NodeId, until: Time) -> Result<(), StoreError> {
        self.state().nodes.insert(node, until);
        Ok(())
    }
    async fn next_wake(&self) -> Result<Option<Time>, StoreError> {
        let state = self.state();
        let open = state.runs.values().filter(|row| !row.status.is_final());
        Ok(open.filter_map(|row| row.wake_at).min())
    }

    async fn create_space(&self, space: SpaceRecord) -> Result<(), StoreError> {
        self.state().create_space(space)
    }
    async fn space(&self, space: SpaceId) -> Result<Option<SpaceRecord>, StoreError> {
        Ok(self.state().spaces.get(&space).cloned())
    }
    async fn spaces(
        &self,
        project: ProjectId,
        member: Option<EntityId>,
        before: Option<SpaceId>,
        limit: usize,
    ) -> Result<Vec<SpaceRecord>, StoreError> {
        let state = self.state();
        let fits = |space: &&SpaceRecord| {
            space.project == project
                && member.is_none_or(|member| space.members.contains(&member))
                && before.is_none_or(|before| space.id < before)
        };
        Ok(state
            .spaces
            .values()
            .rev()
            .filter(fits)
            .take(limit)
            .cloned()
            .collect())
    }
    async fn amend_space(
        &self,
        before: SpaceRecord,
        title: Option<String>,
        metadata: Option<Json>,
        receipt: Option<Receipt>,
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        state.records.check_receipt(before.project, receipt.as_ref())?;
        let same =
            |space: &&mut SpaceRecord| space.title == before.title && space.metadata == before.metadata;
        let space = state.spaces.get_mut(&before.id).filter(same);
        let space = space.ok_or(StoreError::Conflict)?;
        (space.title, space.metadata) = (title, metadata);
        state.records.keep_receipt(before.project, receipt);
        Ok(())
    }
    async fn add_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        if let Some(space) = self.state().spaces.get_mut(&space)
            && !space.members.contains(&member)
        {
            space.members.push(member);
        }
        Ok(())
    }
    async fn remove_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        if let Some(space) = self.state().spaces.get_mut(&space) {
            space.members.retain(|&other| other != member);
        }
        Ok(())
    }

    async fn put_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError> {
        self.state().put_entity(entity)
    }
    async fn entity(&self, id: EntityId) -> Result<Option<EntityRecord>, StoreError> {
        Ok(self.state().entities.get(&id).cloned())
    }
    async fn entity_of(&self, project: ProjectId, subject: &str) -> Result<Option<EntityRecord>, StoreError> {
        let state = self.state();
        let mut entities = state.entities.values();
        Ok(entities
            .find(|entity| entity.project == project && entity.subject == subject)
            .cloned())
    }

    async fn put_agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        config: Json,
        now: Time,
    ) -> Result<u32, StoreError> {
        let mut state = self.state();
        let agent = state.agents.entry((project, name.clone())).or_default();
        let was_removed = agent.removed;
        let revision = agent.put(project, name, config, now);
        if was_removed {
            // A run that outlived the agent may have kept something meanwhile.
            let owner = Owner::Entity(entity_of(project, name));
            state.records.remove_owned(project, owner);
        }
        Ok(revision)
    }
    async fn agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        revision: Option<u32>,
    ) -> Result<Option<AgentRecord>, StoreError> {
        let state = self.state();
        let Some(agent) = state.agents.get(&(project, name.clone())) else {
            return Ok(None);
        };
        let found = match revision {
            Some(revision) => agent.revisions.iter().find(|record| record.revision == revision),
            None => agent.newest(),
        };
        Ok(found.cloned())
    }
    async fn agents(&self, project: ProjectId) -> Result<Vec<AgentRecord>, StoreError> {
        let state = self.state();
        let newest = state.agents.values().filter_map(Agent::newest);
        Ok(newest
            .filter(|record| record.project == project)
            .cloned()
            .collect())
    }
    async fn remove_agent(&self, project: ProjectId, name: &AgentName) -> Result<bool, StoreError> {
        let mut state = self.state();
        let agent = state.agents.get_mut(&(project, name.clone()));
        let removed = agent.is_some_and(|agent| !std::mem::replace(&mut agent.removed, true));
        if removed {
            let owner = Owner::Entity(entity_of(project, name));
            state.records.remove_owned(project, owner);
        }
        Ok(removed)
    }

    async fn put_project(&self, project: ProjectRecord) -> Result<(), StoreError> {
        self.state().put_project(project)
    }
    async fn project(&self, id: ProjectId) -> Result<Option<ProjectRecord>, StoreError> {
        Ok(self.state().projects.get(&id).cloned())
    }
    async fn project_named(&self, name: &str) -> Result<Option<ProjectRecord>, StoreError> {
        Ok(self
            .state()
            .projects
            .values()
            .find(|project| project.name == name)
            .cloned())
    }

    async fn put_key(&self, key: KeyRecord) -> Result<(), StoreError> {
        let mut state = self.state();
        if state
            .keys
            .values()
            .any(|other| other.hash == key.hash || other.id == key.id)
        {
            return Err(StoreError::Exists);
        }
        state.keys.insert(key.id, key);
        Ok(())
    }
    async fn key(&self, hash: [u8; 32]) -> Result<Option<KeyRecord>, StoreError> {
        Ok(self.state().keys.values().find(|key| key.hash == hash).cloned())
    }
    async fn keys(&self, project: ProjectId) -> Result<Vec<KeyRecord>, StoreError> {
        let state = self.state();
        Ok(state
            .keys
            .values()
            .filter(|key| key.project == project)
            .cloned()
            .collect())
    }
    async fn remove_key(&self, project: ProjectId, id: KeyId) -> Result<bool, StoreError> {
        let mut state = self.state();
        let ours = state.keys.get(&id).is_some_and(|key| key.project == project);
        Ok(ours && state.keys.remove(&id).is_some())
    }

    async fn idempotency(
        &self,
        project: ProjectId,
        key: &str,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        Ok(self.state().answers.get(&(project, key.to_owned())).cloned())
    }

    async fn usage(
        &self,
        project: ProjectId,
        tool: &str,
        since: Day,
    ) -> Result<Vec<UsageRecord>, StoreError> {
        let state = self.state();
        let mut sum: BTreeMap<_, u64> = BTreeMap::new();
        let of_tool = (project, tool.into(), since)..=(project, tool.into(), Day(i64::MAX));
        for ((code, latency), calls) in state.usage.range(of_tool).flat_map(|(_, of_day)| of_day) {
            *sum.entry((*code, *latency)).or_default() += calls;
        }
        let record = |((code, latency), calls)| UsageRecord { code, latency, calls };
        Ok(sum.into_iter().map(record).collect())
    }

    async fn ready(&self) -> Result<(), StoreError> {
        Ok(())
    }
    async fn close(&self) {}
}

#[async_trait]
impl Records for MemoryStore {
    async fn record(&self, shelf: Shelf, id: &str) -> Result<Option<Record>, StoreError> {
        Ok(self.state().records.get(shelf, id))
    }
    async fn list_records(&self, shelf: Shelf, listing: Listing) -> Result<Vec<Record>, StoreError> {
        Ok(self.state().records.list(shelf, &listing))
    }
    async fn shelf_size(&self, shelf: Shelf) -> Result<(u64, u64), StoreError> {
        Ok(self.state().records.size(shelf))
    }
    async fn list_data(&self, shelf: Shelf, listing: Listing) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        Ok(self.state().records.list_data(shelf, &listing))
    }
    async fn amend_shelf(&self, shelf: Shelf, amendment: Amendment, now: Time) -> Result<(), StoreError> {
        self.state().records.amend(shelf, amendment, now)
    }
    async fn receipt(&self, project: ProjectId, key: &str) -> Result<Option<Json>, StoreError> {
        Ok(self.state().records.receipt(project, key))
    }
    async fn find_records(&self, shelf: Shelf, words: &str, limit: usize) -> Result<Vec<Found>, StoreError> {
        Ok(self.state().records.find(shelf, words, limit))
    }
    async fn due_records(
        &self,
        kind: &'static str,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Shelf, Record)>, StoreError> {
        Ok(self.state().records.due(kind, now, limit))
    }
    async fn next_due(&self, kind: &'static str) -> Result<Option<Time>, StoreError> {
        Ok(self.state().records.next_due(kind))
    }
}
