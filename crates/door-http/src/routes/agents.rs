//! Agents: configurations with revisions. For backends only.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use toolgate_access::Principal;
use toolgate_engine::intake::PostError;
use toolgate_engine::store::{AgentRecord, Purged};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, BadBody, BadQuery, Missing, Refused};
use toolgate_http::problem::{FaultBody, Refusal};
use toolgate_http::query::{At, Query};
use toolgate_http::wire::AnyObject;
use toolgate_http::{Shared, schema};
use toolgate_kernel::agent::redact;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

/// One revision of an agent. Secrets in its configuration are masked.
#[derive(Serialize, ToSchema)]
#[schema(as = Agent)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentBody {
    /// Unique in the project.
    #[schema(value_type = schema::AgentName)]
    name: AgentName,
    /// Counted from 1.
    #[schema(minimum = 1)]
    revision: u32,
    /// The configuration as it was written, secrets masked.
    #[schema(value_type = Object)]
    config: Json,
    /// When this revision was written.
    #[schema(value_type = schema::Time)]
    created_at: Time,
    /// What is valid and most likely not meant, told when it is saved: calls that nothing can ever answer, placeholders
    /// that nothing fills, misspelt keywords of schemas; each with its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, value_type = Vec<FaultBody>)]
    warnings: Vec<Problem>,
}

impl From<AgentRecord> for AgentBody {
    fn from(record: AgentRecord) -> Self {
        Self {
            config: redact(&record.config),
            name: record.name,
            revision: record.revision,
            created_at: record.created,
            warnings: Vec::new(),
        }
    }
}

/// The agents of a project.
#[derive(Serialize, ToSchema)]
pub(crate) struct AgentList {
    /// By name.
    agents: Vec<AgentBody>,
}

/// The newest revision of every agent.
#[utoipa::path(
    get, path = "/v1/agents", operation_id = "list_agents", tag = "agents",
    responses((status = 200, description = "All of them, by name.", body = AgentList), BackendOnly, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    Backend(project): Backend,
) -> Result<Answer<AgentList>, Refusal> {
    let agents = door.engine.agent_records(project).await?;
    Ok(ok(AgentList {
        agents: agents.into_iter().map(AgentBody::from).collect(),
    }))
}

/// Writes an agent's configuration; a change makes a new revision.
#[utoipa::path(
    put, path = "/v1/agents/{name}", operation_id = "put_agent", tag = "agents",
    params(("name" = inline(schema::AgentName), Path)),
    request_body(content = Object, description = "The configuration.", content_type = "application/json"),
    responses(
        (status = 200, description = "Written.", body = AgentBody),
        (status = 201, description = "Made.", body = AgentBody),
        BadBody, BackendOnly, Refused,
    ),
)]
pub(crate) async fn put(
    State(door): State<Shared>,
    Backend(project): Backend,
    At(name): At<String>,
    body: Body<AnyObject>,
) -> Result<Answer<AgentBody>, Refusal> {
    let name = AgentName::try_from(name)
        .map_err(|error| Refusal::invalid(vec![Problem::new("", error.to_string())]))?;
    let is_new = door.engine.agent_record(project, &name, None).await?.is_none();
    let revision = door.engine.put_agent(project, &name, body.value.0).await?;
    let written = door.engine.agent_record(project, &name, Some(revision)).await?;
    let written = written.ok_or_else(|| Refusal::unavailable("the agent was removed meanwhile"))?;
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let warnings = door.engine.agent_warnings(project, &name).await?;
    let written = AgentBody {
        warnings,
        ..written.into()
    };
    Ok(Answer(status, written))
}

/// The newest revision of an agent.
#[utoipa::path(
    get, path = "/v1/agents/{name}", operation_id = "get_agent", tag = "agents",
    params(("name" = inline(schema::AgentName), Path)),
    responses((status = 200, description = "The agent.", body = AgentBody), Missing, BackendOnly, Refused),
)]
pub(crate) async fn get(
    State(door): State<Shared>,
    Backend(project): Backend,
    At(name): At<AgentName>,
) -> Result<Answer<AgentBody>, Refusal> {
    let agent = door.engine.agent_record(project, &name, None).await?;
    agent
        .map(|agent| ok(agent.into()))
        .ok_or_else(|| Refusal::not_found("agent"))
}

/// A revision of an agent, without its configuration.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentRevision {
    /// Counted from 1.
    #[schema(minimum = 1)]
    revision: u32,
    /// When it was written.
    #[schema(value_type = schema::Time)]
    created_at: Time,
}

/// A page of an agent's revisions, newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentRevisionList {
    /// The revisions.
    revisions: Vec<AgentRevision>,
    /// What to give as `before` for the next page; null on the last.
    next_cursor: Option<u32>,
}

/// Largest revision that a page may begin at.
const REVISION_MAX: u32 = 1_000_000_000;

/// An agent's revisions, newest first, also of one that was removed.
#[utoipa::path(
    get, path = "/v1/agents/{name}/revisions", operation_id = "list_agent_revisions", tag = "agents",
    params(
        ("name" = inline(schema::AgentName), Path),
        ("before" = Option<u32>, Query, maximum = 1_000_000_000, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses(
        (status = 200, description = "A page.", body = AgentRevisionList),
        BadQuery, Missing, BackendOnly, Refused,
    ),
)]
pub(crate) async fn revisions(
    State(door): State<Shared>,
    Backend(project): Backend,
    At(name): At<AgentName>,
    query: Query,
) -> Result<Answer<AgentRevisionList>, Refusal> {
    let limit = query.limit()?;
    let before = query.whole("before", 0..=REVISION_MAX.into())?;
    let before = before.map(|before| before as u32);
    let found = door.engine.agent_revisions(project, &name, before, limit).await?;
    if found.is_empty() && before.is_none() {
        return Err(Refusal::not_found("agent"));
    }
    let next_cursor = found
        .last()
        .filter(|_| found.len() == limit)
        .map(|last| last.revision);
    let revisions = found.into_iter().map(|found| AgentRevision {
        revision: found.revision,
        created_at: found.created,
    });
    Ok(ok(AgentRevisionList {
        revisions: revisions.collect(),
        next_cursor,
    }))
}

/// One revision of an agent, also of one that was removed.
#[utoipa::path(
    get, path = "/v1/agents/{name}/revisions/{revision}", operation_id = "get_agent_revision", tag = "agents",
    params(("name" = inline(schema::AgentName), Path), ("revision" = u32, Path, minimum = 1)),
    responses((status = 200, description = "The revision.", body = AgentBody), Missing, BackendOnly, Refused),
)]
pub(crate) async fn revision(
    State(door): State<Shared>,
    Backend(project): Backend,
    At((name, revision)): At<(AgentName, u32)>,
) -> Result<Answer<AgentBody>, Refusal> {
    let agent = door.engine.agent_record(project, &name, Some(revision)).await?;
    agent
        .map(|agent| ok(agent.into()))
        .ok_or_else(|| Refusal::not_found("revision"))
}

/// Removes an agent and cancels its open runs. It is retired: its goals, memories and plans are kept, the plans paused,
/// until an agent of its name is stored again. With `purge` everything that only this agent can reach is deleted, also of an
/// agent that was removed before; memories in the scope of a person or a space are theirs, and stay.
#[utoipa::path(
    delete, path = "/v1/agents/{name}", operation_id = "remove_agent", tag = "agents",
    params(
        ("name" = inline(schema::AgentName), Path),
        ("purge" = Option<bool>, Query, description = "Delete what the agent has stored as well."),
    ),
    responses(
        (status = 200, description = "Removed and purged.", body = PurgedBody),
        (status = 204, description = "Removed."),
        BadQuery, Missing, BackendOnly, Refused,
    ),
)]
pub(crate) async fn remove(
    State(door): State<Shared>,
    Backend(project): Backend,
    At(name): At<AgentName>,
    query: Query,
) -> Result<Response, Refusal> {
    let missing = || Refusal::not_found("agent");
    if query.flag("purge")? {
        let purged = door.engine.purge_agent(project, &name).await?;
        let deleted = DeletedRecords::of(&purged.ok_or_else(missing)?);
        return Ok(ok(PurgedBody { name, deleted }).into_response());
    }
    match door.engine.remove_agent(project, &name).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(missing()),
    }
}

/// An agent that was purged.
#[derive(Serialize, ToSchema)]
#[schema(as = PurgedAgent)]
pub(crate) struct PurgedBody {
    /// Name of the agent.
    #[schema(value_type = schema::AgentName)]
    name: AgentName,
    /// What was deleted with it.
    deleted: DeletedRecords,
}

/// How many records of an agent were deleted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeletedRecords {
    /// Its goals.
    goals: u64,
    /// Memories in its own scope.
    memories: u64,
    /// Its plans.
    plans: u64,
    /// Parts of documents that only it could search; a document has one for about 4,000 characters.
    knowledge_parts: u64,
}

impl DeletedRecords {
    fn of(purged: &Purged) -> Self {
        let count = |kind| purged.get(kind).copied().unwrap_or_default();
        Self {
            goals: count("goal"),
            memories: count("memory"),
            plans: count("plan"),
            knowledge_parts: count("knowledge"),
        }
    }
}

/// Refuses unless the project has this agent, and `who` may start it.
pub(crate) async fn exists(door: &Shared, who: &Principal, agent: &AgentName) -> Result<(), Refusal> {
    match door
        .engine
        .agent_for(who.project, agent, &who.starter(), None)
        .await?
    {
        Some(_) => Ok(()),
        None => Err(PostError::NoAgent(agent.clone()).into()),
    }
}
