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

use super::{SqliteStore, agents, entities, holdings, idempotency, projects, spaces};

#[async_trait]
impl Directory for SqliteStore {
    async fn create_space(&self, space: SpaceRecord) -> Result<(), StoreError> {
        self.writer.write(move |db| spaces::create(db, &space)).await
    }
    async fn space(&self, space: SpaceId) -> Result<Option<SpaceRecord>, StoreError> {
        self.readers.short(|db| spaces::get(db, space))
    }
    async fn spaces(
        &self,
        project: ProjectId,
        member: Option<EntityId>,
        before: Option<SpaceId>,
        limit: usize,
    ) -> Result<Vec<SpaceRecord>, StoreError> {
        self.readers
            .long(move |db| spaces::list(db, project, member, before, limit))
            .await
    }
    async fn holdings(&self, project: ProjectId, user: EntityId) -> Result<Holdings, StoreError> {
        let sizes = self.log_sizes.clone();
        self.readers
            .long(move |db| holdings::of(db, &sizes, project, user))
            .await
    }
    async fn amend_space(
        &self,
        before: SpaceRecord,
        title: Option<String>,
        metadata: Option<Json>,
        receipt: Option<Receipt>,
    ) -> Result<(), StoreError> {
        self.writer
            .write(move |db| {
                spaces::amend(db, &before, title.as_deref(), metadata.as_ref(), receipt.as_ref())
            })
            .await
    }
    async fn add_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        self.writer
            .write(move |db| spaces::add_member(db, space, member))
            .await
    }
    async fn put_member(
        &self,
        space: SpaceId,
        member: EntityId,
        given: MemberRecord,
    ) -> Result<(), StoreError> {
        self.writer
            .write(move |db| spaces::put_member(db, space, member, &given))
            .await
    }
    async fn member(&self, space: SpaceId, member: EntityId) -> Result<Option<MemberRecord>, StoreError> {
        self.readers.short(|db| spaces::member(db, space, member))
    }
    async fn remove_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError> {
        self.writer
            .write(move |db| spaces::remove_member(db, space, member))
            .await
    }

    async fn put_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError> {
        self.writer.write(move |db| entities::put(db, &entity)).await
    }
    async fn ensure_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError> {
        self.writer.write(move |db| entities::ensure(db, &entity)).await
    }
    async fn entity(&self, id: EntityId) -> Result<Option<EntityRecord>, StoreError> {
        self.readers.short(|db| entities::get(db, id))
    }
    async fn entity_of(&self, project: ProjectId, subject: &str) -> Result<Option<EntityRecord>, StoreError> {
        self.readers.short(|db| entities::of(db, project, subject))
    }

    async fn put_agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        config: Json,
        now: Time,
    ) -> Result<u32, StoreError> {
        let name = name.clone();
        self.writer
            .write(move |db| agents::put(db, project, &name, &config, now))
            .await
    }
    async fn agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        revision: Option<u32>,
    ) -> Result<Option<AgentRecord>, StoreError> {
        self.readers.short(|db| agents::get(db, project, name, revision))
    }
    async fn agent_revisions(
        &self,
        project: ProjectId,
        name: &AgentName,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<RevisionRecord>, StoreError> {
        let name = name.clone();
        self.readers
            .long(move |db| agents::revisions(db, project, &name, before, limit))
            .await
    }
    async fn agents(&self, project: ProjectId) -> Result<Vec<AgentRecord>, StoreError> {
        self.readers.long(move |db| agents::list(db, project)).await
    }
    async fn remove_agent(&self, project: ProjectId, name: &AgentName) -> Result<bool, StoreError> {
        let name = name.clone();
        self.writer
            .write(move |db| agents::remove(db, project, &name))
            .await
    }
    async fn purge_agent(&self, project: ProjectId, name: &AgentName) -> Result<Option<Purged>, StoreError> {
        let name = name.clone();
        self.writer
            .write(move |db| agents::purge(db, project, &name))
            .await
    }

    async fn put_project(&self, project: ProjectRecord) -> Result<(), StoreError> {
        self.writer.write(move |db| projects::put(db, &project)).await
    }
    async fn project(&self, id: ProjectId) -> Result<Option<ProjectRecord>, StoreError> {
        self.readers.short(|db| projects::get(db, id))
    }
    async fn project_named(&self, name: &str) -> Result<Option<ProjectRecord>, StoreError> {
        self.readers.short(|db| projects::named(db, name))
    }
    async fn projects(&self) -> Result<Vec<ProjectRecord>, StoreError> {
        self.readers.long(projects::list).await
    }
    async fn remove_project(&self, id: ProjectId) -> Result<bool, StoreError> {
        self.writer.write(move |db| projects::remove(db, id)).await
    }

    async fn put_key(&self, key: KeyRecord) -> Result<(), StoreError> {
        self.writer.write(move |db| projects::put_key(db, &key)).await
    }
    async fn key(&self, hash: [u8; 32]) -> Result<Option<KeyRecord>, StoreError> {
        self.readers.short(|db| projects::key(db, hash))
    }
    async fn keys(&self, project: ProjectId) -> Result<Vec<KeyRecord>, StoreError> {
        self.readers.long(move |db| projects::keys(db, project)).await
    }
    async fn remove_key(&self, project: ProjectId, id: KeyId) -> Result<bool, StoreError> {
        self.writer
            .write(move |db| projects::remove_key(db, project, id))
            .await
    }

    async fn idempotency(
        &self,
        project: ProjectId,
        key: &str,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        self.readers.short(|db| idempotency::get(db, project, key))
    }
}
