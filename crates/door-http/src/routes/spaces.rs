//! Spaces and who takes part in them.

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolgate_access::Principal;
use toolgate_access::SUBJECT_CHARS_MAX;
use toolgate_engine::store::{Holdings, MemberRecord, SpaceRecord};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::MaybeBody;
use toolgate_http::caller::{Backend, Caller};
use toolgate_http::describe::{BackendOnly, BadBody, BadQuery, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::ui_message::{Messages, earlier};
use toolgate_http::wire::{AnyObject, List, Text, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::agent::GROUP_CHARS_MAX;
use toolgate_kernel::history::Earlier;
use toolgate_kernel::id::{EntityId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;
use uuid::Uuid;

use super::agents;
use super::entities::{EntityBody, Grants, texts};

/// Most members that a space is made with.
const MEMBERS_MAX: usize = 100;
const TITLE_CHARS_MAX: usize = 200;

wire! {
    /// A new space.
    CreateSpace {
        /// Its name for people.
        title "title": Option<Text<1, TITLE_CHARS_MAX>>,
        /// The agent that answers when a message names none.
        agent "agent": Option<AgentName>,
        /// Whatever the project attaches.
        metadata "metadata": Option<AnyObject>,
        /// What was said before, elsewhere: the past of the space, marked as told by the client.
        history "history": Option<Messages>,
        /// Who takes part: entity ids, or subjects. For backends only; a user is the one member of its space.
        members "members": Option<List<Text<1, SUBJECT_CHARS_MAX>, 0, MEMBERS_MAX>>,
    }
}

wire! {
    /// What a member is and may do in a space. What is left out is taken away, unless all of it is.
    PutMember {
        /// The project's word for what it is there, for tools that name their approvers by role.
        role "role": Option<Text<1, GROUP_CHARS_MAX>>,
        /// Permissions that it has there, beside those of its entity.
        grants "grants": Option<Grants>,
    }
}

/// A member of a space.
#[derive(Serialize, ToSchema)]
#[schema(as = Member)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemberBody {
    /// Who it is.
    entity: EntityBody,
    /// The project's word for what it is there.
    role: Option<String>,
    /// Permissions that it has there, beside those of its entity.
    grants: Vec<String>,
}

/// A shared conversation.
#[derive(Serialize, ToSchema)]
#[schema(as = Space)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpaceBody {
    /// Id of the space.
    #[schema(value_type = schema::SpaceId)]
    id: SpaceId,
    /// Its name for people.
    title: Option<String>,
    /// The agent that answers when a message names none.
    #[schema(value_type = Option<schema::AgentName>)]
    agent: Option<AgentName>,
    /// Whatever the project attached.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Json>,
    /// Who takes part, in the order they joined.
    #[schema(value_type = Vec<schema::EntityId>)]
    members: Vec<EntityId>,
    /// When it was created.
    #[schema(value_type = schema::Time)]
    created_at: Time,
}

impl From<SpaceRecord> for SpaceBody {
    fn from(record: SpaceRecord) -> Self {
        Self {
            id: record.id,
            title: record.title,
            agent: record.agent,
            metadata: record.metadata,
            members: record.members,
            created_at: record.created,
        }
    }
}

/// A page of spaces, newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpaceList {
    /// The spaces.
    spaces: Vec<SpaceBody>,
    /// What to give as `before` for the next page; null on the last.
    #[schema(value_type = Option<schema::SpaceId>)]
    next_cursor: Option<SpaceId>,
}

/// Makes a space. A user who makes one is its member.
#[utoipa::path(
    post, path = "/v1/spaces", operation_id = "create_space", tag = "spaces",
    request_body = Option<CreateSpace>,
    responses((status = 201, description = "Made.", body = SpaceBody), BadBody, Missing, BackendOnly, Refused),
)]
pub(crate) async fn create(
    State(door): State<Shared>,
    Caller(who): Caller,
    MaybeBody(body): MaybeBody<CreateSpace>,
) -> Result<Answer<SpaceBody>, Refusal> {
    if body.members.is_some() && who.user.is_some() {
        return Err(Refusal::forbidden("naming members needs a secret key"));
    }
    if let Some(agent) = &body.agent {
        agents::exists(&door, &who, agent).await?;
    }
    let metadata = body.metadata.map(|metadata| metadata.0);
    door.settings
        .content
        .check_metadata(metadata.as_ref(), "/metadata")?;
    let past = body.history.map_or(Vec::new(), |history| earlier(&history.0));
    let bytes: usize = past.iter().map(Earlier::bytes).sum();
    let adds = Holdings {
        spaces: 1,
        bytes: bytes.max(1) as u64,
        open_runs: 0,
    };
    let reserved = door.engine.reserve(who.project, who.entity(), adds).await?;
    let mut members: Vec<EntityId> = who.entity().into_iter().collect();
    for named in body.members.into_iter().flat_map(|list| list.0) {
        let entity = door.access.entity(who.project, &named.0).await?;
        if !members.contains(&entity) {
            members.push(entity);
        }
    }
    let space = SpaceRecord {
        id: SpaceId::new(Uuid::now_v7()),
        project: who.project,
        title: body.title.map(|title| title.0),
        agent: body.agent,
        metadata,
        by_backend: who.user.is_none(),
        members,
        created: door.engine.clock().now(),
    };
    door.engine.create_space(space.clone()).await?;
    // A crash in between leaves a space that nobody was told of.
    door.engine.tell_past(&space, past).await?;
    reserved.keep();
    Ok(Answer(StatusCode::CREATED, space.into()))
}

/// Spaces, newest first: a backend's all, a user's those it is a member of.
#[utoipa::path(
    get, path = "/v1/spaces", operation_id = "list_spaces", tag = "spaces",
    params(
        ("before" = inline(Option<schema::SpaceId>), Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page.", body = SpaceList), BadQuery, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    Caller(who): Caller,
    query: Query,
) -> Result<Answer<SpaceList>, Refusal> {
    let limit = query.limit()?;
    let before = query.read("before")?;
    let spaces = door
        .engine
        .spaces(who.project, who.entity(), before, limit)
        .await?;
    let next_cursor = spaces
        .last()
        .filter(|_| spaces.len() == limit)
        .map(|space| space.id);
    Ok(ok(SpaceList {
        spaces: spaces.into_iter().map(SpaceBody::from).collect(),
        next_cursor,
    }))
}

/// A space.
#[utoipa::path(
    get, path = "/v1/spaces/{space}", operation_id = "get_space", tag = "spaces",
    params(("space" = inline(schema::SpaceId), Path)),
    responses((status = 200, description = "The space.", body = SpaceBody), Missing, Refused),
)]
pub(crate) async fn get(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(space): At<SpaceId>,
) -> Result<Answer<SpaceBody>, Refusal> {
    Ok(ok(door.access.space(&who, space).await?.into()))
}

/// Lets an entity take part: named by its id, or by its subject, which makes one that is new. With a body it also says
/// what the member is and may do there, in place of what was said before.
#[utoipa::path(
    put, path = "/v1/spaces/{space}/members/{entity}", operation_id = "add_member", tag = "spaces",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("entity" = String, Path, min_length = 1, max_length = 256),
    ),
    request_body = Option<PutMember>,
    responses((status = 204, description = "It takes part."), BadBody, Missing, BackendOnly, Refused),
)]
pub(crate) async fn add_member(
    State(door): State<Shared>,
    Backend(project): Backend,
    At((space, entity)): At<(SpaceId, String)>,
    MaybeBody(body): MaybeBody<PutMember>,
) -> Result<StatusCode, Refusal> {
    let backend = Principal::backend(project);
    door.access.reach_space(&backend, space).await?;
    let entity = door
        .access
        .entity(project, super::entities::subject(&entity)?)
        .await?;
    match body {
        PutMember {
            role: None,
            grants: None,
        } => door.engine.add_member(space, entity).await?,
        PutMember { role, grants } => {
            let given = MemberRecord {
                role: role.map(|role| role.0),
                grants: texts(grants),
            };
            door.engine.put_member(space, entity, given).await?;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// A member, and what it is and may do in the space.
#[utoipa::path(
    get, path = "/v1/spaces/{space}/members/{entity}", operation_id = "get_member", tag = "spaces",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("entity" = String, Path, min_length = 1, max_length = 256),
    ),
    responses((status = 200, description = "The member.", body = MemberBody), Missing, BackendOnly, Refused),
)]
pub(crate) async fn member(
    State(door): State<Shared>,
    Backend(project): Backend,
    At((space, entity)): At<(SpaceId, String)>,
) -> Result<Answer<MemberBody>, Refusal> {
    let backend = Principal::backend(project);
    door.access.reach_space(&backend, space).await?;
    let named = super::entities::subject(&entity)?;
    let entity = door.access.entity_record(project, named).await?;
    let given = door.access.member(space, entity.id).await?;
    let MemberRecord { role, grants } = given.ok_or_else(|| Refusal::not_found("member"))?;
    Ok(ok(MemberBody {
        entity: entity.into(),
        role,
        grants,
    }))
}

/// Takes an entity out. Its open streams end.
#[utoipa::path(
    delete, path = "/v1/spaces/{space}/members/{entity}", operation_id = "remove_member", tag = "spaces",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("entity" = String, Path, min_length = 1, max_length = 256),
    ),
    responses((status = 204, description = "It takes no part."), Missing, BackendOnly, Refused),
)]
pub(crate) async fn remove_member(
    State(door): State<Shared>,
    Backend(project): Backend,
    At((space, entity)): At<(SpaceId, String)>,
) -> Result<StatusCode, Refusal> {
    let backend = Principal::backend(project);
    door.access.reach_space(&backend, space).await?;
    let entity = door
        .access
        .known_entity(project, super::entities::subject(&entity)?)
        .await?;
    door.engine.remove_member(space, entity).await?;
    Ok(StatusCode::NO_CONTENT)
}
