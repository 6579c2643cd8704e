//! What agents have stored with their tools: goals, memories, plans. A backend sees and deletes all of it, also that of a
//! retired agent; a user the plans that were made for it.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_access::Principal;
use toolgate_engine::records::{Change, Expected, Listing, Owner, Record, RecordSet};
use toolgate_engine::store::StoreError;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::{Backend, Caller};
use toolgate_http::describe::{BackendOnly, BadQuery, Contended, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::{Shared, schema};
use toolgate_kernel::agent::entity_of;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use crate::Resources;

/// Most records of a page: a memory may have 8,000 characters, a plan 10,000.
const PAGE_MAX: usize = 100;

/// Something that an agent has stored.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentRecordBody {
    /// Unique among what its agent has of this kind.
    id: String,
    /// When a plan is due next.
    #[schema(value_type = Option<schema::Time>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<Time>,
    /// When it was created.
    #[schema(value_type = schema::Time)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = schema::Time)]
    updated_at: Time,
    /// A goal has `description`, `priority`, `isLongTerm`, `isCompleted`; a memory `topic`, `content`; a plan `message`,
    /// `schedule`, `status`, `space`, `askedBy?`, `runs`, `last?`, `paused?`, `reason?`.
    #[schema(value_type = Object)]
    #[serde(flatten)]
    content: Map<String, Value>,
}

impl From<Record> for AgentRecordBody {
    fn from(record: Record) -> Self {
        Self {
            id: record.id,
            next_at: record.due,
            created_at: record.created,
            updated_at: record.updated,
            content: match record.body.to_value() {
                Value::Object(content) => content,
                _ => Map::new(),
            },
        }
    }
}

/// A page of records, by id.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentRecordList {
    /// The records.
    records: Vec<AgentRecordBody>,
    /// What to give as `after` for the next page; null on the last. A page may be empty and not the last.
    next_cursor: Option<String>,
}

/// The goals of an agent, by id.
#[utoipa::path(
    get, path = "/v1/goals", operation_id = "list_goals", tag = "agents",
    params(
        ("agent" = inline(schema::AgentName), Query, description = "The agent, also a retired one."),
        ("after" = Option<String>, Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500, description = "A page has 100 at most."),
    ),
    responses((status = 200, description = "A page.", body = AgentRecordList), BadQuery, BackendOnly, Refused),
)]
pub(crate) async fn goals(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    query: Query,
) -> Result<Answer<AgentRecordList>, Refusal> {
    Kept::of(&Principal::backend(project), &query, "goal")?
        .list(&resources, &query)
        .await
}

/// The memories of an agent, by id.
#[utoipa::path(
    get, path = "/v1/memories", operation_id = "list_memories", tag = "agents",
    params(
        ("agent" = inline(schema::AgentName), Query, description = "The agent, also a retired one."),
        ("after" = Option<String>, Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500, description = "A page has 100 at most."),
    ),
    responses((status = 200, description = "A page.", body = AgentRecordList), BadQuery, BackendOnly, Refused),
)]
pub(crate) async fn memories(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    query: Query,
) -> Result<Answer<AgentRecordList>, Refusal> {
    Kept::of(&Principal::backend(project), &query, "memory")?
        .list(&resources, &query)
        .await
}

/// The plans of an agent, by id: for a user those that were made for it.
#[utoipa::path(
    get, path = "/v1/plans", operation_id = "list_plans", tag = "agents",
    params(
        ("agent" = inline(schema::AgentName), Query, description = "The agent, also a retired one."),
        ("after" = Option<String>, Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500, description = "A page has 100 at most."),
    ),
    responses((status = 200, description = "A page.", body = AgentRecordList), BadQuery, Refused),
)]
pub(crate) async fn plans(
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    query: Query,
) -> Result<Answer<AgentRecordList>, Refusal> {
    Kept::of(&who, &query, "plan")?.list(&resources, &query).await
}

/// Deletes a goal of an agent.
#[utoipa::path(
    delete, path = "/v1/goals/{goal}", operation_id = "remove_goal", tag = "agents",
    params(
        ("goal" = String, Path),
        ("agent" = inline(schema::AgentName), Query, description = "The agent, also a retired one."),
    ),
    responses((status = 204, description = "Deleted."), BadQuery, Missing, BackendOnly, Contended, Refused),
)]
pub(crate) async fn remove_goal(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(goal): At<String>,
    query: Query,
) -> Result<StatusCode, Refusal> {
    Kept::of(&Principal::backend(project), &query, "goal")?
        .remove(&door, &resources, &goal)
        .await
}

/// Deletes a memory of an agent.
#[utoipa::path(
    delete, path = "/v1/memories/{memory}", operation_id = "remove_memory", tag = "agents",
    params(
        ("memory" = String, Path),
        ("agent" = inline(schema::AgentName), Query, description = "The agent, also a retired one."),
    ),
    responses((status = 204, description = "Deleted."), BadQuery, Missing, BackendOnly, Contended, Refused),
)]
pub(crate) async fn remove_memory(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(memory): At<String>,
    query: Query,
) -> Result<StatusCode, Refusal> {
    Kept::of(&Principal::backend(project), &query, "memory")?
        .remove(&door, &resources, &memory)
        .await
}

/// Deletes a plan of an agent, which then starts no more runs. A user may delete those that were made for it.
#[utoipa::path(
    delete, path = "/v1/plans/{plan}", operation_id = "remove_plan", tag = "agents",
    params(
        ("plan" = String, Path),
        ("agent" = inline(schema::AgentName), Query, description = "The agent, also a retired one."),
    ),
    responses((status = 204, description = "Deleted."), BadQuery, Missing, Contended, Refused),
)]
pub(crate) async fn remove_plan(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    At(plan): At<String>,
    query: Query,
) -> Result<StatusCode, Refusal> {
    Kept::of(&who, &query, "plan")?
        .remove(&door, &resources, &plan)
        .await
}

/// What an agent has of one kind, as far as the caller may see it.
struct Kept {
    set: RecordSet,
    /// Only what was made for this entity, for a user.
    made_for: Option<String>,
}

impl Kept {
    fn of(who: &Principal, query: &Query, kind: &'static str) -> Result<Self, Refusal> {
        let agent: Option<AgentName> = query.read("agent")?;
        let agent =
            agent.ok_or_else(|| Refusal::malformed("query agent: is missing, expected an agent's name"))?;
        Ok(Self {
            set: RecordSet {
                project: who.project,
                owner: Owner::Entity(entity_of(who.project, &agent)),
                kind,
            },
            made_for: who.entity().map(|entity| entity.to_string()),
        })
    }

    fn shows(&self, record: &AgentRecordBody) -> bool {
        let made_for = self.made_for.as_deref();
        made_for.is_none_or(|user| record.content.get("askedBy").and_then(Value::as_str) == Some(user))
    }

    async fn list(&self, resources: &Resources, query: &Query) -> Result<Answer<AgentRecordList>, Refusal> {
        let limit = match &self.made_for {
            None => query.limit()?.min(PAGE_MAX),
            // All that an agent may have is on one page: the cursor would be the id of somebody else's plan.
            Some(_) => PAGE_MAX,
        };
        let listing = Listing {
            after: query.text("after").map(str::to_owned),
            limit,
            ..Listing::default()
        };
        let found = resources.records.list_records(self.set, listing).await?;
        let last = found.last().filter(|_| found.len() == limit);
        let next_cursor = last.map(|record| record.id.clone());
        let records = found.into_iter().map(AgentRecordBody::from);
        Ok(ok(AgentRecordList {
            records: records.filter(|record| self.shows(record)).collect(),
            next_cursor: next_cursor.filter(|_| self.made_for.is_none()),
        }))
    }

    async fn remove(&self, door: &Shared, resources: &Resources, id: &str) -> Result<StatusCode, Refusal> {
        let missing = || Refusal::not_found(self.set.kind);
        let record = resources
            .records
            .record(self.set, id)
            .await?
            .ok_or_else(missing)?;
        let unchanged = Expected {
            id: id.to_owned(),
            version: Some(record.version),
        };
        if !self.shows(&record.into()) {
            return Err(missing());
        }
        let changes = vec![Change::Remove(id.to_owned())];
        let now = door.engine.clock().now();
        let removed = resources
            .records
            .change_records(self.set, vec![unchanged], changes, now);
        match removed.await {
            Ok(()) => Ok(StatusCode::NO_CONTENT),
            Err(StoreError::Conflict) => Err(Refusal::contended()),
            Err(error) => Err(error.into()),
        }
    }
}
