//! Memories of people, spaces and agents. A backend sees, changes and deletes all of them; a user its own, and it reads
//! those of the spaces that it is a member of.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use toolgate_access::Principal;
use toolgate_engine::records::{Owner, RecordSet};
use toolgate_http::Shared;
use toolgate_http::answer::Answer;
use toolgate_http::body::Body;
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BackendOnly, BadBody, BadQuery, Changed, Contended, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::schema;
use toolgate_http::wire::AnyObject;
use toolgate_kernel::agent::entity_of;
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::name::AgentName;

use super::agent_state::{AgentRecordBody, AgentRecordList, Kept};
use crate::Resources;

/// Memories, by id: of the agent, person or space in the query; for a user without a query its own.
#[utoipa::path(
    get, path = "/v1/memories", operation_id = "list_memories", tag = "agents",
    params(
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Of this agent, also a retired one; for backends only."),
        ("user" = Option<String>, Query, description = "Of this person, by subject or entity id; for backends only."),
        ("space" = inline(Option<schema::SpaceId>), Query, description = "Of this space."),
        ("after" = Option<String>, Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500, description = "A page has 100 at most."),
    ),
    responses((status = 200, description = "A page.", body = AgentRecordList), BadQuery, Missing, BackendOnly, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    query: Query,
) -> Result<Answer<AgentRecordList>, Refusal> {
    let kept = memories(&door, &who, &query, Access::Read).await?;
    kept.list(&resources, &query).await
}

/// Changes `topic` or `content` of a memory. Another topic gives it another id.
#[utoipa::path(
    patch, path = "/v1/memories/{memory}", operation_id = "change_memory", tag = "agents",
    params(
        ("memory" = String, Path),
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Of this agent, also a retired one; for backends only."),
        ("user" = Option<String>, Query, description = "Of this person, by subject or entity id; for backends only."),
        ("space" = inline(Option<schema::SpaceId>), Query, description = "Of this space; for backends only."),
        ("if-match" = inline(Option<schema::EtagOrAny>), Header, description = "`etag` of the version to change."),
    ),
    request_body(content = Object, description = "Any of `topic`, `content`.", content_type = "application/json"),
    responses((status = 200, description = "As it is now.", body = AgentRecordBody), BadBody, Missing, BackendOnly, Changed, Contended, Refused),
)]
pub(crate) async fn change(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    At(memory): At<String>,
    query: Query,
    headers: HeaderMap,
    body: Body<AnyObject>,
) -> Result<Response, Refusal> {
    let kept = memories(&door, &who, &query, Access::Write).await?;
    kept.change(&door, &resources, memory, body.value.0, &headers)
        .await
}

/// Deletes a memory.
#[utoipa::path(
    delete, path = "/v1/memories/{memory}", operation_id = "remove_memory", tag = "agents",
    params(
        ("memory" = String, Path),
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Of this agent, also a retired one; for backends only."),
        ("user" = Option<String>, Query, description = "Of this person, by subject or entity id; for backends only."),
        ("space" = inline(Option<schema::SpaceId>), Query, description = "Of this space; for backends only."),
        ("if-match" = inline(Option<schema::EtagOrAny>), Header, description = "`etag` of the version to delete."),
    ),
    responses((status = 204, description = "Deleted."), BadQuery, Missing, BackendOnly, Changed, Contended, Refused),
)]
pub(crate) async fn remove(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    At(memory): At<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<StatusCode, Refusal> {
    let kept = memories(&door, &who, &query, Access::Write).await?;
    kept.remove(&door, &resources, &memory, &headers).await
}

/// What the caller wants to do with them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The memories that the query names, if the caller may have them.
async fn memories(door: &Shared, who: &Principal, query: &Query, access: Access) -> Result<Kept, Refusal> {
    let agent: Option<AgentName> = query.read("agent")?;
    let space: Option<SpaceId> = query.read("space")?;
    let owner = match (who.entity(), agent, query.text("user"), space) {
        (Some(me), None, None, None) => Owner::Entity(me),
        // Every member hears of them from the agent, and none may take them from the others.
        (Some(_), None, None, Some(space)) if access == Access::Read => in_space(door, who, space).await?,
        (Some(_), ..) => {
            let words =
                "a user has its own memories, without agent, user or space, and reads those of its spaces";
            return Err(Refusal::forbidden(words));
        }
        (None, Some(agent), None, None) => Owner::Entity(entity_of(who.project, &agent)),
        (None, None, Some(person), None) => {
            let person = super::entities::subject(person)?;
            Owner::Entity(door.access.known_entity(who.project, person).await?)
        }
        (None, None, None, Some(space)) => in_space(door, who, space).await?,
        (None, ..) => {
            return Err(Refusal::malformed(
                "query: expected exactly one of agent, user and space",
            ));
        }
    };
    Ok(Kept {
        set: RecordSet {
            project: who.project,
            owner,
            kind: "memory",
        },
        made_for: None,
    })
}

async fn in_space(door: &Shared, who: &Principal, space: SpaceId) -> Result<Owner, Refusal> {
    door.access.reach_space(who, space).await?;
    Ok(Owner::Space(space))
}
