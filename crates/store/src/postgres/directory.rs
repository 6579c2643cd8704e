//! Spaces, entities, agents, projects and keys: each in a module of its own, all behind one trait.

use async_trait::async_trait;
use toolgate_engine::records::Receipt;
use toolgate_engine::store::{
    AgentRecord, Directory, EntityRecord, Holdings, IdempotencyRecord, KeyRecord, MemberRecord,
    ProjectRecord, Purged, RevisionRecord, SpaceRecord, StoreError,
};
use toolgate_kernel::id::{EntityId, KeyId, ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use super::attempts::{read, write};
use super::{PostgresStore, agents, entities, holdings, idempotency, projects, spaces};

#[async_trait]
impl Directory for PostgresStore {
    async fn create_space(&self, space: SpaceRecord) -> Result<(), StoreError> {
        write!(self, db => spaces::create(db, &space))
    }
    async fn space(&self, space: SpaceId) -> Result<Option<SpaceRecord>, StoreError> {
        read!(self, db => spaces::of(db, space))
    }
    async fn spaces(
        &self,
        project: ProjectId,
        member: Option<EntityId>,
        before: Option<SpaceId>,
        limit: usize,
    ) -> Result<Vec<SpaceRecord>, StoreError> {
        read!(self, db => spaces::list(db, project, member, before, limit))
    }
    async fn holdings(&self, project: ProjectId, user: EntityId) -> Result<Holdings, StoreError> {
        read!(self, db => holdings::of(db, &self.log_sizes, project, user))
    }
    async fn amend_space(
        &self,
        before: SpaceRecord,
        title: Option<String>,
        metadata: Option<Json>,
        receipt: Option<Receipt>,
    ) -> Result<(), StoreError> {
        write!(self, db => {
            spaces::amend(db, &before, title.as_deref(), metadata.as_ref(), receipt.as_ref())
        })
    }
    async fn add_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        write!(self, db => spaces::add_member(db, space, member))
    }
    async fn put_member(
        &self,
        space: SpaceId,
        member: EntityId,
        given: MemberRecord,
    ) -> Result<(), StoreError> {
        write!(self, db => spaces::put_member(db, space, member, &given))
    }
    async fn member(&self, space: SpaceId, member: EntityId) -> Result<Option<MemberRecord>, StoreError> {
        read!(self, db => spaces::member(db, space, member))
    }
    async fn remove_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        write!(self, db => spaces::remove_member(db, space, member))
    }

    async fn put_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError> {
        write!(self, db => entities::put(db, &entity))
    }
    async fn ensure_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError> {
        write!(self, db => entities::ensure(db, &entity))
    }
    async fn entity(&self, id: EntityId) -> Result<Option<EntityRecord>, StoreError> {
        read!(self, db => entities::by_id(db, id))
    }
    async fn entity_of(&self, project: ProjectId, subject: &str) -> Result<Option<EntityRecord>, StoreError> {
        read!(self, db => entities::of(db, project, subject))
    }

    async fn put_agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        config: Json,
        now: Time,
    ) -> Result<u32, StoreError> {
        write!(self, db => agents::put(db, project, name, &config, now))
    }
    async fn agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        revision: Option<u32>,
    ) -> Result<Option<AgentRecord>, StoreError> {
        read!(self, db => agents::of(db, project, name, revision))
    }
    async fn agent_revisions(
        &self,
        project: ProjectId,
        name: &AgentName,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<RevisionRecord>, StoreError> {
        read!(self, db => agents::revisions(db, project, name, before, limit))
    }
    async fn agents(&self, project: ProjectId) -> Result<Vec<AgentRecord>, StoreError> {
        read!(self, db => agents::list(db, project))
    }
    async fn remove_agent(&self, project: ProjectId, name: &AgentName) -> Result<bool, StoreError> {
        write!(self, db => agents::remove(db, project, name))
    }
    async fn purge_agent(&self, project: ProjectId, name: &AgentName) -> Result<Option<Purged>, StoreError> {
        write!(self, db => agents::purge(db, project, name))
    }

    async fn put_project(&self, project: ProjectRecord) -> Result<(), StoreError> {
        write!(self, db => projects::put(db, &project))
    }
    async fn project(&self, id: ProjectId) -> Result<Option<ProjectRecord>, StoreError> {
        read!(self, db => projects::of(db, id))
    }
    async fn project_named(&self, name: &str) -> Result<Option<ProjectRecord>, StoreError> {
        read!(self, db => projects::named(db, name))
    }
    async fn projects(&self) -> Result<Vec<ProjectRecord>, StoreError> {
        read!(self, db => projects::list(db))
    }
    async fn remove_project(&self, id: ProjectId) -> Result<bool, StoreError> {
        write!(self, db => projects::remove(db, id))
    }

    async fn put_key(&self, key: KeyRecord) -> Result<(), StoreError> {
        write!(self, db => projects::put_key(db, &key))
    }
    async fn key(&self, hash: [u8; 32]) -> Result<Option<KeyRecord>, StoreError> {
        read!(self, db => projects::key(db, hash))
    }
    async fn keys(&self, project: ProjectId) -> Result<Vec<KeyRecord>, StoreError> {
        read!(self, db => projects::keys(db, project))
    }
    async fn remove_key(&self, project: ProjectId, id: KeyId) -> Result<bool, StoreError> {
        write!(self, db => projects::remove_key(db, project, id))
    }

    async fn idempotency(
        &self,
        project: ProjectId,
        key: &str,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        read!(self, db => idempotency::of(db, project, key))
    }
}
