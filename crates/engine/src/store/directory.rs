//! Who and what there is: spaces, entities, agents, projects and keys; and answers that were given before.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use toolgate_kernel::id::{EntityId, KeyId, ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use super::StoreError;
use crate::post::default_agent;
use crate::records::Receipt;

/// Rows that no run depends on for its state.
#[async_trait]
pub trait Directory: Send + Sync {
    /// Makes a space; `Exists` when the id is there, and `EntityDeleted` when a member was deleted.
    async fn create_space(&self, space: SpaceRecord) -> Result<(), StoreError>;
    /// A space's row.
    async fn space(&self, space: SpaceId) -> Result<Option<SpaceRecord>, StoreError>;
    /// A project's spaces, newest first, older than `before`; only those with `member` when given.
    async fn spaces(
        &self,
        project: ProjectId,
        member: Option<EntityId>,
        before: Option<SpaceId>,
        limit: usize,
    ) -> Result<Vec<SpaceRecord>, StoreError>;
    /// What a user has in the spaces of a project that it made itself: those that no backend made, and whose first
    /// member it is.
    async fn holdings(&self, project: ProjectId, user: EntityId) -> Result<Holdings, StoreError>;
    /// Gives a space another title and metadata; `Conflict` when these are no longer as in `before`. A receipt is kept
    /// with the change; `Exists` when it is there already, and then so is the change.
    async fn amend_space(
        &self,
        before: SpaceRecord,
        title: Option<String>,
        metadata: Option<Json>,
        receipt: Option<Receipt>,
    ) -> Result<(), StoreError>;
    /// Adds a member; nothing when it is one, and `EntityDeleted` when it was deleted.
    async fn add_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError>;
    /// Adds a member, or changes its role and grants; nothing when there is no such space, and `EntityDeleted` when the member was
    /// deleted.
    async fn put_member(
        &self,
        space: SpaceId,
        member: EntityId,
        given: MemberRecord,
    ) -> Result<(), StoreError>;
    /// What a member was given in a space; none when it is no member.
    async fn member(&self, space: SpaceId, member: EntityId) -> Result<Option<MemberRecord>, StoreError>;
    /// Takes a member out; nothing when it is none.
    async fn remove_member(&self, space: SpaceId, member: EntityId) -> Result<(), StoreError>;
    /// Makes an entity, or changes name, kind, metadata and grants of the one with its subject; gives the stored row.
    async fn put_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError>;
    /// Creates an entity unless its subject has one, which stays as it is; gives the one that is stored.
    async fn ensure_entity(&self, entity: EntityRecord) -> Result<EntityRecord, StoreError>;
    /// An entity by id.
    async fn entity(&self, id: EntityId) -> Result<Option<EntityRecord>, StoreError>;
    /// An entity by its subject.
    async fn entity_of(&self, project: ProjectId, subject: &str) -> Result<Option<EntityRecord>, StoreError>;
    /// Stores the next revision and gives its number; the same config as the newest revision makes none.
    /// A removed agent's numbers go on where they ended.
    async fn put_agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        config: Json,
        now: Time,
    ) -> Result<u32, StoreError>;
    /// One revision, also of a removed agent; without a number the newest, none when it was removed.
    async fn agent(
        &self,
        project: ProjectId,
        name: &AgentName,
        revision: Option<u32>,
    ) -> Result<Option<AgentRecord>, StoreError>;
    /// An agent's revisions, newest first, older than `before`; also those of a removed agent.
    async fn agent_revisions(
        &self,
        project: ProjectId,
        name: &AgentName,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<RevisionRecord>, StoreError>;
    /// The newest revision of every agent, by name.
    async fn agents(&self, project: ProjectId) -> Result<Vec<AgentRecord>, StoreError>;
    /// Retires an agent: it is gone, and the records that its entity owns are kept for when it is stored again. Runs under
    /// way keep their revision. False when there is none.
    async fn remove_agent(&self, project: ProjectId, name: &AgentName) -> Result<bool, StoreError>;
    /// Removes an agent, also a retired one, with all records that its entity owns, and says how many those were. None when
    /// there is no such agent.
    async fn purge_agent(&self, project: ProjectId, name: &AgentName) -> Result<Option<Purged>, StoreError>;
    /// Creates a project, or changes the secret, identity provider and settings of the one with its id; `Exists` when another
    /// one has its name.
    async fn put_project(&self, project: ProjectRecord) -> Result<(), StoreError>;
    /// A project by id.
    async fn project(&self, id: ProjectId) -> Result<Option<ProjectRecord>, StoreError>;
    /// A project by name.
    async fn project_named(&self, name: &str) -> Result<Option<ProjectRecord>, StoreError>;
    /// Every project, by name.
    async fn projects(&self) -> Result<Vec<ProjectRecord>, StoreError>;
    /// Removes a project with everything that belongs to it, in one write. False when there is none.
    async fn remove_project(&self, id: ProjectId) -> Result<bool, StoreError>;
    /// Stores a key; `Exists` when its hash is there.
    async fn put_key(&self, key: KeyRecord) -> Result<(), StoreError>;
    /// A key by its hash.
    async fn key(&self, hash: [u8; 32]) -> Result<Option<KeyRecord>, StoreError>;
    /// A project's keys.
    async fn keys(&self, project: ProjectId) -> Result<Vec<KeyRecord>, StoreError>;
    /// Removes a key. False when there is none.
    async fn remove_key(&self, project: ProjectId, id: KeyId) -> Result<bool, StoreError>;
    /// The answer that was given before.
    async fn idempotency(
        &self,
        project: ProjectId,
        key: &str,
    ) -> Result<Option<IdempotencyRecord>, StoreError>;
}

/// Records that were deleted with their owner, by kind.
pub type Purged = BTreeMap<String, u64>;

/// A space's row.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceRecord {
    /// The space's id.
    pub id: SpaceId,
    /// The project that owns it.
    pub project: ProjectId,
    /// Its name for people.
    pub title: Option<String>,
    /// The agent that answers when a message names none.
    pub agent: Option<AgentName>,
    /// Whatever the project attached.
    pub metadata: Option<Json>,
    /// Whether a backend made it, and so gave it its agent.
    pub by_backend: bool,
    /// Who takes part, in the order they joined.
    pub members: Vec<EntityId>,
    /// When it was created.
    pub created: Time,
}

impl SpaceRecord {
    /// The agent that answers when a message names none.
    pub fn own_agent(&self) -> AgentName {
        self.agent.clone().unwrap_or_else(default_agent)
    }

    /// Whether the space has this agent from a backend, so that its members may start it here.
    pub fn gives(&self, agent: &AgentName) -> bool {
        self.by_backend && *agent == self.own_agent()
    }
}

/// What a member of a space was given there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberRecord {
    /// The project's word for what it is there.
    pub role: Option<String>,
    /// Permissions that it has there, beside those of its entity.
    pub grants: Vec<String>,
}

/// What a user has in the spaces that it made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holdings {
    /// The spaces.
    pub spaces: u64,
    /// Bytes of their logs and files.
    pub bytes: u64,
    /// Runs in them that have not ended.
    pub open_runs: u64,
}

impl Holdings {
    pub(crate) fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }
    pub(crate) fn minus(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }
    fn each(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            spaces: with(self.spaces, other.spaces),
            bytes: with(self.bytes, other.bytes),
            open_runs: with(self.open_runs, other.open_runs),
        }
    }
}

/// An entity's row.
#[derive(Debug, Clone, PartialEq)]
pub struct EntityRecord {
    /// The entity's id.
    pub id: EntityId,
    /// The project that owns it.
    pub project: ProjectId,
    /// The project's own name for it: a JWT's `sub`. Unique in the project.
    pub subject: String,
    /// `person`, `agent`, `device` or the project's own word.
    pub kind: String,
    /// Its name for people.
    pub name: Option<String>,
    /// Whatever the project attached.
    pub metadata: Option<Json>,
    /// Permissions that it has in every space.
    pub grants: Vec<String>,
    /// When it was created.
    pub created: Time,
}

/// One revision of an agent's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRecord {
    /// The project that owns it.
    pub project: ProjectId,
    /// Unique in the project.
    pub name: AgentName,
    /// Counted from 1.
    pub revision: u32,
    /// The configuration as it was written, secrets included: never shown as it is.
    pub config: Json,
    /// When it was stored.
    pub created: Time,
}

/// A revision of an agent, without its configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct RevisionRecord {
    /// Counted from 1.
    pub revision: u32,
    /// When it was stored.
    pub created: Time,
}

/// A service that signs the tokens of a project's users.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IdentityProvider {
    /// Address of its published keys.
    pub jwks_url: String,
    /// What `iss` of a token must be, if that matters. Some providers sign for many tenants with the same keys.
    pub issuer: Option<String>,
    /// What `aud` of a token must name, if that matters: most providers sign for many applications.
    pub audience: Option<String>,
}

/// A project's row.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectRecord {
    /// The project's id.
    pub id: ProjectId,
    /// Unique among projects.
    pub name: String,
    /// What signs its users' tokens (HS256).
    pub jwt_secret: Option<String>,
    /// Who else signs its users' tokens (RS256, ES256, EdDSA).
    pub identity_provider: Option<IdentityProvider>,
    /// Settings that were given over HTTP, secrets included: never shown as they are.
    pub settings: Option<Json>,
    /// When it was created.
    pub created: Time,
}

/// Kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Everything in its project.
    Secret,
    /// What is meant for the user whose token comes with it.
    Public,
}

/// An API key's row; the key itself is nowhere.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRecord {
    /// Names it to people.
    pub id: KeyId,
    /// The project that owns it.
    pub project: ProjectId,
    /// Kind of key.
    pub kind: KeyKind,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    /// The first characters, for people to tell it from others.
    pub hint: String,
    /// What the key is for, in its owner's words.
    pub name: Option<String>,
    /// When it was created.
    pub created: Time,
}

/// The answer to a request that may be sent again.
#[derive(Debug, Clone, PartialEq)]
pub struct IdempotencyRecord {
    /// The project that owns it.
    pub project: ProjectId,
    /// The key that the client chose, with the operation it was used for.
    pub key: String,
    /// SHA-256 of the request: the same key with another request is an error.
    pub request: [u8; 32],
    /// What to answer: ids only.
    pub answer: Json,
    /// When; forgotten after a day.
    pub time: Time,
}
