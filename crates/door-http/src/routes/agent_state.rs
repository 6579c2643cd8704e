//! Goals and plans that agents have stored with their tools. A backend sees, changes and deletes all of them, also those
//! of a retired agent; a user the plans that were made for it. The memories are in `memories`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::ETAG;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_access::{AccessError, Principal};
use toolgate_engine::records::{Change, Expected, Listing, Owner, Record, RecordSet};
use toolgate_engine::state_editor::{Edit, EditError};
use toolgate_engine::store::StoreError;
use toolgate_engine::workspace::Only;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::{Backend, Caller};
use toolgate_http::describe::{BackendOnly, BadBody, BadQuery, Changed, Contended, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::wire::AnyObject;
use toolgate_http::{Shared, schema};
use toolgate_kernel::agent::entity_of;
use toolgate_kernel::id::{EntityId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use crate::Resources;
use crate::precondition::{etag, only};

/// Most records of a page: a memory may have 8,000 characters, a plan 10,000.
const PAGE_MAX: usize = 100;

/// Something that an agent has stored.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentRecordBody {
    /// Unique among what its agent has of this kind.
    id: String,
    /// Higher with each change; in quotes it is the `etag` that `if-match` takes.
    #[schema(minimum = 1)]
    version: u64,
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
            version: record.version,
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
        ("if-match" = inline(Option<schema::EtagOrAny>), Header, description = "`etag` of the version to delete."),
    ),
    responses((status = 204, description = "Deleted."), BadQuery, Missing, BackendOnly, Changed, Contended, Refused),
)]
pub(crate) async fn remove_goal(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(goal): At<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<StatusCode, Refusal> {
    Kept::of(&Principal::backend(project), &query, "goal")?
        .remove(&door, &resources, &goal, &headers)
        .await
}

/// Changes members of a goal; the others stay as they are.
#[utoipa::path(
    patch, path = "/v1/goals/{goal}", operation_id = "change_goal", tag = "agents",
    params(
        ("goal" = String, Path),
        ("agent" = inline(schema::AgentName), Query, description = "The agent, also a retired one."),
        ("if-match" = inline(Option<schema::EtagOrAny>), Header, description = "`etag` of the version to change."),
    ),
    request_body(content = Object, description = "Any of `description`, `priority`, `isLongTerm`, `isCompleted`.", content_type = "application/json"),
    responses((status = 200, description = "As it is now.", body = AgentRecordBody), BadBody, Missing, BackendOnly, Changed, Contended, Refused),
)]
pub(crate) async fn change_goal(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(goal): At<String>,
    query: Query,
    headers: HeaderMap,
    body: Body<AnyObject>,
) -> Result<Response, Refusal> {
    Kept::of(&Principal::backend(project), &query, "goal")?
        .change(&door, &resources, goal, body.value.0, &headers)
        .await
}

/// Changes members of a plan; the others stay as they are. A user may set the time of those that were made for it in a
/// space that it is a member of, and cancel them.
#[utoipa::path(
    patch, path = "/v1/plans/{plan}", operation_id = "change_plan", tag = "agents",
    params(
        ("plan" = String, Path),
        ("agent" = inline(schema::AgentName), Query, description = "The agent, also a retired one."),
        ("if-match" = inline(Option<schema::EtagOrAny>), Header, description = "`etag` of the version to change."),
    ),
    request_body(content = Object, description = "`message`, one of `inSeconds`, `at`, `everySeconds` and `cron` with `timeZone`, or `status: \"cancelled\"`. Only a backend may change the `message`.", content_type = "application/json"),
    responses((status = 200, description = "As it is now.", body = AgentRecordBody), BadBody, Missing, BackendOnly, Changed, Contended, Refused),
)]
pub(crate) async fn change_plan(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    At(plan): At<String>,
    query: Query,
    headers: HeaderMap,
    body: Body<AnyObject>,
) -> Result<Response, Refusal> {
    let kept = Kept::of(&who, &query, "plan")?;
    if who.entity().is_some() {
        kept.reach_plan(&door, &resources, &who, &plan).await?;
        refuse_message(&body.value.0)?;
    }
    kept.change(&door, &resources, plan, body.value.0, &headers).await
}

/// Deletes a plan of an agent, which then starts no more runs. A user may delete those that were made for it.
#[utoipa::path(
    delete, path = "/v1/plans/{plan}", operation_id = "remove_plan", tag = "agents",
    params(
        ("plan" = String, Path),
        ("agent" = inline(schema::AgentName), Query, description = "The agent, also a retired one."),
        ("if-match" = inline(Option<schema::EtagOrAny>), Header, description = "`etag` of the version to delete."),
    ),
    responses((status = 204, description = "Deleted."), BadQuery, Missing, Changed, Contended, Refused),
)]
pub(crate) async fn remove_plan(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    At(plan): At<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<StatusCode, Refusal> {
    Kept::of(&who, &query, "plan")?
        .remove(&door, &resources, &plan, &headers)
        .await
}

/// What a plan says is the agent's, and said to it in the space: a user does not write it.
fn refuse_message(changes: &Json) -> Result<(), Refusal> {
    match changes.to_value().get("message") {
        None => Ok(()),
        Some(_) => Err(Refusal::forbidden(
            "the message of a plan is changed by backends only; a user may change its time or cancel it",
        )),
    }
}

/// What somebody has of one kind, as far as the caller may see it.
pub(super) struct Kept {
    pub set: RecordSet,
    /// Only what was made for this entity, for a user.
    pub made_for: Option<EntityId>,
}

impl Kept {
    /// What the agent in the query has.
    pub fn of(who: &Principal, query: &Query, kind: &'static str) -> Result<Self, Refusal> {
        let agent: Option<AgentName> = query.read("agent")?;
        let agent =
            agent.ok_or_else(|| Refusal::malformed("query agent: is missing, expected an agent's name"))?;
        Ok(Self {
            set: RecordSet {
                project: who.project,
                owner: Owner::Entity(entity_of(who.project, &agent)),
                kind,
            },
            made_for: who.entity(),
        })
    }

    fn shows(&self, record: &AgentRecordBody) -> bool {
        let made_for = self.made_for.map(|user| user.to_string());
        made_for
            .is_none_or(|user| record.content.get("askedBy").and_then(Value::as_str) == Some(user.as_str()))
    }

    /// Fails unless the plan shows itself to the user, who is still a member of its space: it speaks there.
    async fn reach_plan(
        &self,
        door: &Shared,
        resources: &Resources,
        who: &Principal,
        id: &str,
    ) -> Result<(), Refusal> {
        let missing = || Refusal::not_found(self.set.kind);
        let record = resources.records.record(self.set, id).await?;
        let record = record.map(AgentRecordBody::from);
        let record = record.filter(|record| self.shows(record)).ok_or_else(missing)?;
        let space = record.content.get("space").and_then(Value::as_str);
        let space: SpaceId = space.and_then(|id| id.parse().ok()).ok_or_else(missing)?;
        match door.access.reach_space(who, space).await {
            Err(AccessError::NotFound(_)) => Err(missing()),
            reached => Ok(reached?),
        }
    }

    pub async fn list(
        &self,
        resources: &Resources,
        query: &Query,
    ) -> Result<Answer<AgentRecordList>, Refusal> {
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

    pub async fn change(
        &self,
        door: &Shared,
        resources: &Resources,
        id: String,
        changes: Json,
        headers: &HeaderMap,
    ) -> Result<Response, Refusal> {
        let edit = Edit {
            set: self.set,
            id,
            changes,
            only: only(headers)?,
            made_for: self.made_for,
        };
        let changed = resources.state.change(edit, door.engine.clock().now()).await;
        let record = changed.map_err(|error| match error {
            EditError::Missing => Refusal::not_found(self.set.kind),
            error => error.into(),
        })?;
        let tag = etag(record.version);
        Ok(([(ETAG, tag)], ok(AgentRecordBody::from(record))).into_response())
    }

    pub async fn remove(
        &self,
        door: &Shared,
        resources: &Resources,
        id: &str,
        headers: &HeaderMap,
    ) -> Result<StatusCode, Refusal> {
        let missing = || Refusal::not_found(self.set.kind);
        let record = resources
            .records
            .record(self.set, id)
            .await?
            .ok_or_else(missing)?;
        let version = record.version;
        if !self.shows(&record.into()) {
            return Err(missing());
        }
        match only(headers)? {
            Only::Always | Only::Existing => {}
            Only::Version(expected) if expected == version => {}
            Only::Version(_) | Only::New => return Err(EditError::Changed(version).into()),
        }
        let unchanged = Expected {
            id: id.to_owned(),
            version: Some(version),
        };
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
