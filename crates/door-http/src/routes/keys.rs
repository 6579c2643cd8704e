//! API keys. For backends only; a key is shown once, when it is made.

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolgate_access::keys;
use toolgate_engine::store::{KeyKind, KeyRecord};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, BadBody, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::wire::{Text, wire, words};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::{KeyId, ProjectId};
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

const NAME_CHARS_MAX: usize = 200;

words! {
    /// Kind of key.
    Kind {
        /// Everything in its project.
        Secret = "secret",
        /// What is meant for the user whose token comes with it.
        Public = "public",
    }
}
wire! {
    /// A new key.
    CreateKey {
        /// Kind of key.
        kind "kind": Kind,
        /// What the key is for, in the owner's words.
        name "name": Option<Text<1, NAME_CHARS_MAX>>,
    }
}

/// A key, by what may be told of it.
#[derive(Serialize, ToSchema)]
#[schema(as = Key)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyBody {
    /// Id of the key.
    #[schema(value_type = schema::KeyId)]
    id: KeyId,
    /// What it opens: `secret` or `public`.
    #[schema(value_type = KeyKindWord)]
    kind: KeyKind,
    /// The key itself: only here, only now.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Its first characters.
    hint: String,
    /// What the key is for, in the owner's words.
    name: Option<String>,
    /// When it was created.
    #[schema(value_type = schema::Time)]
    created_at: Time,
}

/// Kind of key.
#[derive(ToSchema)]
#[schema(as = KeyKind, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes the store's kinds")]
pub(crate) enum KeyKindWord {
    Secret,
    Public,
}

impl KeyBody {
    fn of(record: KeyRecord, key: Option<String>) -> Self {
        Self {
            id: record.id,
            kind: record.kind,
            key,
            hint: record.hint,
            name: record.name,
            created_at: record.created,
        }
    }
}

/// The keys of a project.
#[derive(Serialize, ToSchema)]
pub(crate) struct KeyList {
    /// All of them.
    keys: Vec<KeyBody>,
}

impl KeyList {
    pub(super) fn of(keys: Vec<KeyRecord>) -> Self {
        Self {
            keys: keys.into_iter().map(|key| KeyBody::of(key, None)).collect(),
        }
    }
}

/// The project's keys.
#[utoipa::path(
    get, path = "/v1/keys", operation_id = "list_keys", tag = "keys",
    responses((status = 200, description = "All of them.", body = KeyList), BackendOnly, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    Backend(project): Backend,
) -> Result<Answer<KeyList>, Refusal> {
    let keys = door.engine.keys(project).await?;
    Ok(ok(KeyList::of(keys)))
}

/// Makes a key and shows it once.
#[utoipa::path(
    post, path = "/v1/keys", operation_id = "create_key", tag = "keys",
    request_body = CreateKey,
    responses((status = 201, description = "Made.", body = KeyBody), BadBody, BackendOnly, Refused),
)]
pub(crate) async fn create(
    State(door): State<Shared>,
    Backend(project): Backend,
    body: Body<CreateKey>,
) -> Result<Answer<KeyBody>, Refusal> {
    create_key(&door, project, body.value).await
}

/// Makes a key of a project and shows it once.
pub(super) async fn create_key(
    door: &Shared,
    project: ProjectId,
    wanted: CreateKey,
) -> Result<Answer<KeyBody>, Refusal> {
    let kind = match wanted.kind {
        Kind::Secret => KeyKind::Secret,
        Kind::Public => KeyKind::Public,
    };
    let (key, record) = keys::mint(
        project,
        kind,
        wanted.name.map(|name| name.0),
        door.engine.clock().now(),
    );
    door.engine.put_key(record.clone()).await?;
    Ok(Answer(StatusCode::CREATED, KeyBody::of(record, Some(key))))
}

/// Removes a key. It opens nothing from now on, and streams that were opened with it end.
#[utoipa::path(
    delete, path = "/v1/keys/{key}", operation_id = "remove_key", tag = "keys",
    params(("key" = inline(schema::KeyId), Path)),
    responses((status = 204, description = "Removed."), Missing, BackendOnly, Refused),
)]
pub(crate) async fn remove(
    State(door): State<Shared>,
    Backend(project): Backend,
    At(key): At<KeyId>,
) -> Result<StatusCode, Refusal> {
    remove_key(&door, project, key).await
}

/// Removes a key of a project.
pub(super) async fn remove_key(door: &Shared, project: ProjectId, key: KeyId) -> Result<StatusCode, Refusal> {
    let removed = door.engine.remove_key(project, key).await?;
    if removed {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Refusal::not_found("key"))
    }
}
