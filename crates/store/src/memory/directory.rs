//! Spaces, entities, agents, projects and keys.

use async_trait::async_trait;
use toolgate_engine::records::{Owner, Receipt, RecordSet};
use toolgate_engine::store::{
    AgentRecord, Directory, EntityRecord, Holdings, IdempotencyRecord, KeyRecord, MemberRecord,
    ProjectRecord, Purged, RevisionRecord, SpaceRecord, StoreError,
};
use toolgate_engine::workspace::FILE;
use toolgate_kernel::agent::entity_of;
use toolgate_kernel::id::{EntityId, KeyId, ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use super::MemoryStore;
use super::state::Agent;
use crate::text;

#[async_trait]
impl Directory for MemoryStore {
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
    async fn holdings(&self, project: ProjectId, user: EntityId) -> Result<Holdings, StoreError> {
        let state = self.state();
        let own = |space: &&SpaceRecord| {
            space.project == project && !space.by_backend && space.members.first() == Some(&user)
        };
        let mut holdings = Holdings::default();
        for space in state.spaces.values().filter(own) {
            let files = RecordSet {
                project,
                owner: Owner::Space(space.id),
                kind: FILE,
            };
            let log = state.log.get(&space.id).into_iter().flatten();
            let log: usize = log.map(|entry| text::write(&entry.events).len()).sum();
            let runs = state.runs.values();
            let open = runs.filter(|run| run.space == space.id && !run.status.is_final());
            holdings.spaces += u64::from(!state.is_emptied(space));
            holdings.bytes += log as u64 + state.records.size(files).1;
            holdings.open_runs += open.count() as u64;
        }
        Ok(holdings)
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
        let mut state = self.state();
        state.check_people(&[member])?;
        if let Some(space) = state.spaces.get_mut(&space)
            && !space.members.contains(&member)
        {
            space.members.push(member);
        }
        Ok(())
    }
    async fn put_member(
        &self,
        space: SpaceId,
        member: EntityId,
        given: MemberRecord,
    ) -> Result<(), StoreError> {
        self.add_member(space, member).await?;
        let mut state = self.state();
        if state.spaces.contains_key(&space) {
            state.members.insert((space, member), given);
        }
        Ok(())
    }
    async fn member(&self, space: SpaceId, member: EntityId) -> Result<Option<MemberRecord>, StoreError> {
        let state = self.state();
        let is_member = |space: &SpaceRecord| space.members.contains(&member);
        if !state.spaces.get(&space).is_some_and(is_member) {
            return Ok(None);
        }
        Ok(Some(
            state.members.get(&(space, member)).cloned().unwrap_or_default(),
        ))
    }
    async fn remove_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        let mut state = self.state();
        state.members.remove(&(space, member));
        if let Some(space) = state.spaces.get_mut(&space) {
            space.members.retain(|&other| other != member);
        }
        Ok(())
    }

    async fn put_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError> {
        self.state().put_entity(entity)
    }
    async fn ensure_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError> {
        let mut state = self.state();
        let same = |old: &&EntityRecord| old.project == entity.project && old.subject == entity.subject;
        match state.entities.values().find(same).cloned() {
            Some(known) => Ok(known),
            None => state.put_entity(entity),
        }
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
        let was_purged = agent.purged;
        let revision = agent.put(project, name, config, now);
        if was_purged {
            // A run that outlived the agent may have stored records after the purge.
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
    async fn agent_revisions(
        &self,
        project: ProjectId,
        name: &AgentName,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<RevisionRecord>, StoreError> {
        let state = self.state();
        let agent = state.agents.get(&(project, name.clone()));
        let revisions = agent.into_iter().flat_map(|agent| agent.revisions.iter().rev());
        let older = revisions.filter(|record| before.is_none_or(|before| record.revision < before));
        let revision = |record: &AgentRecord| RevisionRecord {
            revision: record.revision,
            created: record.created,
        };
        Ok(older.take(limit).map(revision).collect())
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
        Ok(agent.is_some_and(|agent| !std::mem::replace(&mut agent.removed, true)))
    }
    async fn purge_agent(&self, project: ProjectId, name: &AgentName) -> Result<Option<Purged>, StoreError> {
        let mut state = self.state();
        let agent = state.agents.get_mut(&(project, name.clone()));
        let purged = agent.is_some_and(|agent| {
            agent.removed = true;
            !std::mem::replace(&mut agent.purged, true)
        });
        let owner = Owner::Entity(entity_of(project, name));
        let records = state.records.remove_owned(project, owner);
        Ok(purged.then_some(records))
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
    async fn projects(&self) -> Result<Vec<ProjectRecord>, StoreError> {
        let mut projects: Vec<_> = self.state().projects.values().cloned().collect();
        projects.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(projects)
    }
    async fn remove_project(&self, id: ProjectId) -> Result<bool, StoreError> {
        Ok(self.state().remove_project(id))
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
}
