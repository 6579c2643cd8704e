//! Curators of a project: who may sign its plugins. For backends.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::{Backend, Operator};
use toolgate_http::describe::{BackendOnly, BadBody, Contended, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::wire::{AnyObject, List, Text, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::time::Time;
use toolgate_package::CuratorKey;
use toolgate_plugins::{Curator, CuratorsOf, Key, NewCurator, NewKey, Revoke};
use utoipa::ToSchema;

use super::plugin_bodies::RevocationBody;
use super::plugins::refused;
use crate::Resources;

const NAME_CHARS_MAX: usize = 200;
const KEYS_MAX: usize = 32;

wire! {
    /// A curator. Keys are added, or get other dates; those that are left out stay as they are.
    PutCurator {
        /// Name for people.
        name "name": Option<Text<1, NAME_CHARS_MAX>>,
        /// `{publicKey, id?, notBefore?, expires?}`: a PEM text, an id (else made from the key), and moments between which
        /// packages that it has signed can be installed. A moment that is left out stays; `null` takes it away.
        keys "keys": Option<List<AnyObject, 0, KEYS_MAX>>,
    }
}

/// Somebody who may sign plugins for the project.
#[derive(Serialize, ToSchema)]
#[schema(as = Curator)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CuratorBody {
    /// The curator's id, which stands in what it signs.
    id: String,
    /// Name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Its public keys, by id; those that were revoked long ago are counted in `retiredKeys`.
    keys: Vec<CuratorKeyBody>,
    /// Keys that were revoked long ago. They are kept as hashes, and never count again.
    retired_keys: usize,
    /// When it was added.
    #[schema(value_type = schema::Time)]
    added_at: Time,
    /// Set when nothing that it has signed may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<RevocationBody>,
}

/// A public key of a curator.
#[derive(Serialize, ToSchema)]
#[schema(as = CuratorKey)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CuratorKeyBody {
    /// The key's id.
    id: String,
    /// Algorithm of its signatures.
    algorithm: String,
    /// The key as PEM.
    public_key: String,
    /// When it begins to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    not_before: Option<Time>,
    /// From when on nothing more is installed by it. What was installed before goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    expires: Option<Time>,
    /// When it was added.
    #[schema(value_type = schema::Time)]
    added_at: Time,
    /// Set when nothing that it has signed may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<RevocationBody>,
}

/// The curators of a project.
#[derive(Serialize, ToSchema)]
pub(crate) struct CuratorList {
    /// By id, revoked ones included.
    curators: Vec<CuratorBody>,
}

impl CuratorBody {
    fn of(id: &str, curator: &Curator) -> Self {
        Self {
            id: id.to_owned(),
            name: curator.name.clone(),
            keys: curator
                .keys
                .iter()
                .map(|(id, key)| CuratorKeyBody::of(id, key))
                .collect(),
            retired_keys: curator.retired.len(),
            added_at: curator.added_at,
            revoked: curator.revoked.as_ref().map(RevocationBody::of),
        }
    }
}

impl CuratorKeyBody {
    fn of(id: &str, key: &Key) -> Self {
        Self {
            id: id.to_owned(),
            algorithm: key.algorithm.clone(),
            public_key: key.public_key.clone(),
            not_before: key.not_before,
            expires: key.expires,
            added_at: key.added_at,
            revoked: key.revoked.as_ref().map(RevocationBody::of),
        }
    }
}

/// Who may sign plugins for the project.
#[utoipa::path(
    get, path = "/v1/curators", operation_id = "list_curators", tag = "plugins",
    responses((status = 200, description = "All of them, by id.", body = CuratorList), BackendOnly, Refused),
)]
pub(crate) async fn list(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
) -> Result<Answer<CuratorList>, Refusal> {
    let (index, _) = resources.plugins.index(project).await?;
    let curators = index
        .curators
        .iter()
        .map(|(id, curator)| CuratorBody::of(id, curator));
    Ok(ok(CuratorList {
        curators: curators.collect(),
    }))
}

/// A curator.
#[utoipa::path(
    get, path = "/v1/curators/{curator}", operation_id = "get_curator", tag = "plugins",
    params(("curator" = String, Path)),
    responses((status = 200, description = "The curator.", body = CuratorBody), Missing, BackendOnly, Refused),
)]
pub(crate) async fn get(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(id): At<String>,
) -> Result<Answer<CuratorBody>, Refusal> {
    let (index, _) = resources.plugins.index(project).await?;
    let curator = index
        .curators
        .get(&id)
        .ok_or_else(|| Refusal::not_found("curator"))?;
    Ok(ok(CuratorBody::of(&id, curator)))
}

/// Adds a curator, or adds keys to one. A revoked curator is trusted again by a new key; its old keys stay revoked.
#[utoipa::path(
    put, path = "/v1/curators/{curator}", operation_id = "put_curator", tag = "plugins",
    params(("curator" = String, Path)),
    request_body = PutCurator,
    responses(
        (status = 200, description = "As it is now.", body = CuratorBody),
        BadBody, BackendOnly, Contended, Refused,
    ),
)]
pub(crate) async fn put(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(id): At<String>,
    body: Body<PutCurator>,
) -> Result<Answer<CuratorBody>, Refusal> {
    let (_, settings) = resources.plugins.index(project).await?;
    match settings.curators {
        CuratorsOf::Project => write(&door, &resources, project, &id, body.value).await,
        CuratorsOf::Operator => Err(Refusal::forbidden(
            "only the operator adds curators here, with PUT /v1/projects/{project}/curators/{curator}; the setting \
             plugins.curators changes that",
        )),
    }
}

/// Adds a curator of a project, or adds keys to one, also where the project may not do so itself.
#[utoipa::path(
    put, path = "/v1/projects/{project}/curators/{curator}", operation_id = "put_project_curator", tag = "projects",
    params(("project" = String, Path, description = "The project's name."), ("curator" = String, Path)),
    request_body = PutCurator,
    responses(
        (status = 200, description = "As it is now.", body = CuratorBody),
        BadBody, Missing, BackendOnly, Contended, Refused,
    ),
)]
pub(crate) async fn put_for_project(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    _: Operator,
    At((project, id)): At<(String, String)>,
    body: Body<PutCurator>,
) -> Result<Answer<CuratorBody>, Refusal> {
    let project = door.engine.project_named(&project).await?;
    let project = project.ok_or_else(|| Refusal::not_found("project"))?;
    write(&door, &resources, project.id, &id, body.value).await
}

async fn write(
    door: &Shared,
    resources: &Resources,
    project: ProjectId,
    id: &str,
    body: PutCurator,
) -> Result<Answer<CuratorBody>, Refusal> {
    let (mut keys, mut problems) = (Vec::new(), Vec::<Problem>::new());
    for (number, key) in body.keys.into_iter().flat_map(|keys| keys.0).enumerate() {
        match new_key(key.0.to_value(), &format!("/keys/{number}")) {
            Ok(key) => keys.push(key),
            Err(more) => problems.extend(more),
        }
    }
    if !problems.is_empty() {
        return Err(Refusal::invalid(problems));
    }
    let written = NewCurator {
        name: body.name.map(|name| name.0),
        keys,
    };
    let curator = resources.plugins.put_curator(project, id, written).await;
    let curator = curator.map_err(refused)?;
    door.engine.tools_changed(project);
    Ok(ok(CuratorBody::of(id, &curator)))
}

/// A key as it is written; a date that is `null` is taken away.
fn new_key(mut written: Value, pointer: &str) -> Result<NewKey, Vec<Problem>> {
    let mut cleared = |name: &str| {
        let members = written.as_object_mut();
        members.is_some_and(|members| {
            let is_null = members.get(name).is_some_and(Value::is_null);
            is_null && members.remove(name).is_some()
        })
    };
    let (clear_not_before, clear_expires) = (cleared("notBefore"), cleared("expires"));
    Ok(NewKey {
        key: CuratorKey::read(&written, pointer)?,
        clear_not_before,
        clear_expires,
    })
}

/// Revokes a curator with all its keys: nothing that it has signed runs from now on. It stays in the list.
#[utoipa::path(
    delete, path = "/v1/curators/{curator}", operation_id = "revoke_curator", tag = "plugins",
    params(("curator" = String, Path)),
    responses((status = 204, description = "Revoked."), Missing, BackendOnly, Contended, Refused),
)]
pub(crate) async fn revoke(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(id): At<String>,
) -> Result<StatusCode, Refusal> {
    let revoked = resources
        .plugins
        .revoke(project, &Revoke::Curator(id), None)
        .await;
    revoked.map_err(refused)?;
    door.engine.tools_changed(project);
    Ok(StatusCode::NO_CONTENT)
}

/// Revokes a key of a curator: nothing that it has signed runs from now on. It stays in the list.
#[utoipa::path(
    delete, path = "/v1/curators/{curator}/keys/{key}", operation_id = "revoke_curator_key", tag = "plugins",
    params(("curator" = String, Path), ("key" = String, Path)),
    responses((status = 204, description = "Revoked."), Missing, BackendOnly, Contended, Refused),
)]
pub(crate) async fn revoke_key(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At((curator, key)): At<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let revoked = resources
        .plugins
        .revoke(project, &Revoke::Key { curator, key }, None)
        .await;
    revoked.map_err(refused)?;
    door.engine.tools_changed(project);
    Ok(StatusCode::NO_CONTENT)
}
