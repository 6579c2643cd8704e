//! Entities: the lasting participants of a project.

use axum::extract::State;
use serde::Serialize;
use toolgate_access::SUBJECT_CHARS_MAX;
use toolgate_engine::store::EntityRecord;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::{Backend, Caller};
use toolgate_http::describe::{BackendOnly, BadBody, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::wire::{AnyObject, List, Text, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::EntityId;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;
use uuid::Uuid;

const NAME_CHARS_MAX: usize = 200;
const KIND_CHARS_MAX: usize = 64;
const GRANTS_MAX: usize = 256;
const GRANT_CHARS_MAX: usize = 256;

/// Permissions that an entity, or a member of a space, has.
pub(crate) type Grants = List<Text<1, GRANT_CHARS_MAX>, 0, GRANTS_MAX>;

wire! {
    /// What is known of an entity. What is left out is taken away.
    PutEntity {
        /// `person`, `agent`, `device` or the project's own word; `person` unless said otherwise.
        kind "kind": Option<Text<1, KIND_CHARS_MAX>>,
        /// Its name for people.
        name "name": Option<Text<1, NAME_CHARS_MAX>>,
        /// Whatever the project attaches.
        metadata "metadata": Option<AnyObject>,
        /// Permissions that it has in every space, for tools that need those of the person.
        grants "grants": Option<Grants>,
    }
}

/// A lasting participant.
#[derive(Serialize, ToSchema)]
#[schema(as = Entity)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntityBody {
    /// Id of the entity.
    #[schema(value_type = schema::EntityId)]
    id: EntityId,
    /// The project's own name for it: a token's `sub`.
    subject: String,
    /// `person`, `agent`, `device` or the project's own word.
    kind: String,
    /// Its name for people.
    name: Option<String>,
    /// Whatever the project attached.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Json>,
    /// Permissions that it has in every space.
    grants: Vec<String>,
    /// When it was created.
    #[schema(value_type = schema::Time)]
    created_at: Time,
}

impl From<EntityRecord> for EntityBody {
    fn from(record: EntityRecord) -> Self {
        Self {
            id: record.id,
            subject: record.subject,
            kind: record.kind,
            name: record.name,
            metadata: record.metadata,
            grants: record.grants,
            created_at: record.created,
        }
    }
}

/// Makes an entity, or changes what is known of it.
#[utoipa::path(
    put, path = "/v1/entities/{subject}", operation_id = "put_entity", tag = "entities",
    params(("subject" = String, Path, min_length = 1, max_length = 256)),
    request_body = PutEntity,
    responses((status = 200, description = "The entity.", body = EntityBody), BadBody, Missing, BackendOnly, Refused),
)]
pub(crate) async fn put(
    State(door): State<Shared>,
    Backend(project): Backend,
    At(named): At<String>,
    body: Body<PutEntity>,
) -> Result<Answer<EntityBody>, Refusal> {
    let metadata = body.value.metadata.map(|metadata| metadata.0);
    door.settings
        .content
        .check_metadata(metadata.as_ref(), "/metadata")?;
    let entity = EntityRecord {
        id: EntityId::new(Uuid::now_v7()),
        project,
        subject: subject(&named)?.to_owned(),
        kind: body.value.kind.map_or("person".into(), |kind| kind.0),
        name: body.value.name.map(|name| name.0),
        metadata,
        grants: texts(body.value.grants),
        created: door.engine.clock().now(),
    };
    Ok(ok(door.engine.put_entity(entity).await?.into()))
}

/// An entity, by its subject; a backend may name it by its id, too. A user sees itself only.
#[utoipa::path(
    get, path = "/v1/entities/{subject}", operation_id = "get_entity", tag = "entities",
    params(("subject" = String, Path, min_length = 1, max_length = 256)),
    responses((status = 200, description = "The entity.", body = EntityBody), Missing, Refused),
)]
pub(crate) async fn get(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(named): At<String>,
) -> Result<Answer<EntityBody>, Refusal> {
    let named = subject(&named)?;
    if who.user.is_none() {
        return Ok(ok(door.access.entity_record(who.project, named).await?.into()));
    }
    let entity = door.engine.entity_of(who.project, named).await?;
    let seen = entity.filter(|entity| who.entity().is_none_or(|me| me == entity.id));
    seen.map(|entity| ok(entity.into()))
        .ok_or_else(|| Refusal::not_found("entity"))
}

/// The permissions of a body.
pub(crate) fn texts(grants: Option<Grants>) -> Vec<String> {
    let grants = grants.into_iter().flat_map(|list| list.0);
    grants.map(|grant| grant.0).collect()
}

/// A subject that stands in the path.
pub(crate) fn subject(text: &str) -> Result<&str, Refusal> {
    if (1..=SUBJECT_CHARS_MAX).contains(&text.chars().count()) {
        return Ok(text);
    }
    Err(Refusal::missing(format!(
        "a subject has 1 to {SUBJECT_CHARS_MAX} characters"
    )))
}
