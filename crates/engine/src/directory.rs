//! What doors read and write in a project's directory: spaces, entities, agents, keys. Whether the caller may is the
//! door's question to `toolgate_access`, asked before.

use toolgate_kernel::event::Told;
use toolgate_kernel::history::{Earlier, newest_within};
use toolgate_kernel::id::{EntityId, KeyId, ProjectId, SpaceId};
use toolgate_kernel::name::AgentName;

use crate::Engine;
use crate::revocation::Revoked;
use crate::store::{
    AgentRecord, Append, EntityRecord, KeyRecord, MemberRecord, RevisionRecord, RunWrite, SpaceRecord,
    StoreError,
};

impl Engine {
    /// Makes a space; `Exists` when the id is taken.
    pub async fn create_space(&self, space: SpaceRecord) -> Result<(), StoreError> {
        self.inner.store.create_space(space).await
    }
    /// Stores what a client says was said before a space that was just made. It is the conversation of the only member, and
    /// goes with them.
    pub async fn tell_past(&self, space: &SpaceRecord, turns: Vec<Earlier>) -> Result<(), StoreError> {
        let turns = newest_within(turns, self.inner.settings.history_bytes_max);
        if turns.is_empty() {
            return Ok(());
        }
        let from = match space.members[..] {
            [only] => Some(only),
            _ => None,
        };
        let append = Append {
            space: space.id,
            run: RunWrite::None,
            events: vec![Told { turns, from }.into()],
            usage: Vec::new(),
            consumption: Vec::new(),
            wakes: Vec::new(),
            time: self.inner.clock.now(),
            idempotency: Vec::new(),
            above: None,
        };
        self.inner.store.append(append).await.map(|_| ())
    }
    /// A project's spaces, newest first, older than `before`; only those of `member` when given.
    pub async fn spaces(
        &self,
        project: ProjectId,
        member: Option<EntityId>,
        before: Option<SpaceId>,
        limit: usize,
    ) -> Result<Vec<SpaceRecord>, StoreError> {
        self.inner.store.spaces(project, member, before, limit).await
    }
    /// A space's row.
    pub async fn space(&self, space: SpaceId) -> Result<Option<SpaceRecord>, StoreError> {
        self.inner.store.space(space).await
    }
    /// Adds a member to a space; nothing when it is one.
    pub async fn add_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        self.inner.store.add_member(space, member).await
    }
    /// Adds a member to a space, or changes its role and grants there. What it follows there is looked at again: it may
    /// see less than before.
    pub async fn put_member(
        &self,
        space: SpaceId,
        member: EntityId,
        given: MemberRecord,
    ) -> Result<(), StoreError> {
        self.inner.store.put_member(space, member, given).await?;
        self.inner.revoke(Revoked::Member { space, member });
        Ok(())
    }
    /// Removes a member from a space; nothing when it is none. What it follows there ends, calls that it asked for are
    /// cancelled, what it has claimed is offered again, and its consents are revoked.
    pub async fn remove_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        // First: a consent without its member does not count, and must not when the member comes back.
        self.revoke_consents_of(space, member).await?;
        self.inner.store.remove_member(space, member).await?;
        // A yes that was under way. One that is stored later still looks at who gave it.
        self.revoke_consents_of(space, member).await?;
        self.inner.revoke(Revoked::Member { space, member });
        self.end_work_of(space, member).await
    }
    /// Makes an entity, or changes the one with its subject; gives the stored row.
    pub async fn put_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError> {
        self.inner.store.put_entity(entity).await
    }
    /// An entity by its id.
    pub async fn entity(&self, entity: EntityId) -> Result<Option<EntityRecord>, StoreError> {
        self.inner.store.entity(entity).await
    }
    /// An entity by its subject.
    pub async fn entity_of(
        &self,
        project: ProjectId,
        subject: &str,
    ) -> Result<Option<EntityRecord>, StoreError> {
        self.inner.store.entity_of(project, subject).await
    }
    /// The newest revision of every agent as it was written, by name.
    pub async fn agent_records(&self, project: ProjectId) -> Result<Vec<AgentRecord>, StoreError> {
        self.inner.store.agents(project).await
    }
    /// One revision of an agent as it was written, also of a removed one; without a number the newest, none when the
    /// agent was removed.
    pub async fn agent_record(
        &self,
        project: ProjectId,
        name: &AgentName,
        revision: Option<u32>,
    ) -> Result<Option<AgentRecord>, StoreError> {
        self.inner.store.agent(project, name, revision).await
    }
    /// An agent's revisions, newest first, older than `before`; also those of a removed agent.
    pub async fn agent_revisions(
        &self,
        project: ProjectId,
        name: &AgentName,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<RevisionRecord>, StoreError> {
        self.inner
            .store
            .agent_revisions(project, name, before, limit)
            .await
    }
    /// A project's keys.
    pub async fn keys(&self, project: ProjectId) -> Result<Vec<KeyRecord>, StoreError> {
        self.inner.store.keys(project).await
    }
    /// Stores a key; `Exists` when its hash is there.
    pub async fn put_key(&self, key: KeyRecord) -> Result<(), StoreError> {
        self.inner.store.put_key(key).await
    }
    /// Removes a key; false when there is none. What is followed with it ends.
    pub async fn remove_key(&self, project: ProjectId, key: KeyId) -> Result<bool, StoreError> {
        let removed = self.inner.store.remove_key(project, key).await?;
        self.inner.revoke(Revoked::Key(key));
        Ok(removed)
    }
}
