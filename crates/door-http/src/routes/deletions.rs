//! Deleting runs, spaces and people for good, and giving out before what is stored of a person.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;
use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use serde::Serialize;
use toolgate_access::{AccessError, Principal};
use toolgate_engine::deletion::{DeletionError, Export, Removed};
use toolgate_engine::store::Deleted;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, Contended, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::{ProjectId, RunId, SpaceId};
use utoipa::ToSchema;

use super::entities::subject;
use crate::Resources;

/// What was deleted.
#[derive(Serialize, ToSchema)]
#[schema(as = DeletionReport)]
pub(crate) struct Report {
    /// How much was removed, by kind: `runs`, `entries` and `bytes` of logs, `spaces`, `memberships`, `messages`, and kinds
    /// of records such as `file`, `memory`, `plan`. Empty when it was deleted before.
    removed: BTreeMap<String, u64>,
}

impl Report {
    fn of(removed: Removed) -> Answer<Self> {
        ok(Self { removed })
    }
}

/// Deletes a run with all runs below it: events, pinned outputs and push configurations. Every run of the tree must have
/// ended. What was deleted before stays so.
#[utoipa::path(
    delete, path = "/v1/runs/{run}", operation_id = "delete_run", tag = "runs",
    params(("run" = inline(schema::RunId), Path)),
    responses((status = 200, description = "Deleted.", body = Report), Missing, BackendOnly, Contended, Refused),
)]
pub(crate) async fn run(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(run): At<RunId>,
) -> Result<Answer<Report>, Refusal> {
    let record = match door.access.run(&Principal::backend(project), run).await {
        Ok(record) => record,
        Err(missing) => return deleted_before(&resources, project, Deleted::Run(run), missing).await,
    };
    let removed = resources.deletions.delete_run(&record).await;
    removed.map(Report::of).map_err(refusal)
}

/// Deletes a space: open runs are cancelled, streams end, and its log, runs, files and records are removed. What was
/// deleted before stays so.
#[utoipa::path(
    delete, path = "/v1/spaces/{space}", operation_id = "delete_space", tag = "spaces",
    params(("space" = inline(schema::SpaceId), Path)),
    responses((status = 200, description = "Deleted.", body = Report), Missing, BackendOnly, Contended, Refused),
)]
pub(crate) async fn space(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(space): At<SpaceId>,
) -> Result<Answer<Report>, Refusal> {
    let record = match door.access.space(&Principal::backend(project), space).await {
        Ok(record) => record,
        Err(missing) => return deleted_before(&resources, project, Deleted::Space(space), missing).await,
    };
    let removed = resources.deletions.delete_space(&record).await;
    removed.map(Report::of).map_err(refusal)
}

/// Deletes a person: spaces that only they are a member of, their messages everywhere else, and what is stored for them.
/// Their places in shared spaces stay, with the words removed. A token of the same subject is a new person afterwards.
#[utoipa::path(
    delete, path = "/v1/entities/{subject}", operation_id = "delete_entity", tag = "entities",
    params(("subject" = String, Path, min_length = 1, max_length = 256)),
    responses((status = 200, description = "Deleted.", body = Report), Missing, BackendOnly, Contended, Refused),
)]
pub(crate) async fn entity(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(named): At<String>,
) -> Result<Answer<Report>, Refusal> {
    let subject = subject(&named)?;
    // Of a person with this subject who was deleted before, also where another one has it by now.
    let again = resources.deletions.delete_entity_again(project, subject).await;
    let left = again.map_err(refusal)?;
    let record = match (door.access.entity_record(project, subject).await, left) {
        (Ok(record), _) => record,
        (Err(AccessError::NotFound(_)), Some(removed)) => return Ok(Report::of(removed)),
        (Err(error), _) => return Err(error.into()),
    };
    let removed = resources.deletions.delete_entity(&record).await;
    removed.map(Report::of).map_err(refusal)
}

/// What is stored of a person, as JSON lines: the entity, its memberships, records that are kept for it, and the events
/// that hold its words or name it.
#[utoipa::path(
    get, path = "/v1/entities/{subject}/export", operation_id = "export_entity", tag = "entities",
    params(("subject" = String, Path, min_length = 1, max_length = 256)),
    responses(
        (status = 200, description = "A JSON object per line, each with a `kind`.", body = String, content_type = "application/x-ndjson"),
        Missing, BackendOnly, Refused,
    ),
)]
pub(crate) async fn export(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(named): At<String>,
) -> Result<Response, Refusal> {
    let record = door.access.entity_record(project, subject(&named)?).await?;
    let lines = try_unfold(
        (resources, Export::of(record)),
        async |(resources, mut export)| {
            let lines = resources.deletions.export(&mut export).await;
            // An export that breaks off is cut: a body without its end is an error to every client.
            let lines = lines.map_err(|error| std::io::Error::other(error.to_string()))?;
            Ok::<_, std::io::Error>(lines.map(|lines| (lines, (resources, export))))
        },
    );
    let headers = [
        (CONTENT_TYPE, "application/x-ndjson"),
        (CONTENT_DISPOSITION, "attachment; filename=\"export.jsonl\""),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}

/// The answer for something that is not there: an empty report when it was deleted before, 409 while the rest of it is
/// being deleted.
async fn deleted_before(
    resources: &Resources,
    project: ProjectId,
    deleted: Deleted,
    missing: AccessError,
) -> Result<Answer<Report>, Refusal> {
    if !matches!(missing, AccessError::NotFound(_)) {
        return Err(missing.into());
    }
    let again = resources.deletions.delete_again(project, deleted).await;
    let removed = again.map_err(refusal)?.ok_or(missing)?;
    Ok(Report::of(removed))
}

/// 410 when somebody comes back with a cursor to a run or space of the project that was deleted.
pub(crate) async fn gone_or(
    resources: &Resources,
    project: ProjectId,
    deleted: Deleted,
    missing: AccessError,
) -> Refusal {
    let is_missing = matches!(missing, AccessError::NotFound(_));
    if is_missing && matches!(resources.deletions.was_deleted(project, deleted).await, Ok(true)) {
        let what = match deleted {
            Deleted::Run(_) => "run",
            Deleted::Space(_) => "space",
            Deleted::Entity(_) => "entity",
        };
        return Refusal::new(StatusCode::GONE, "DELETED", format!("the {what} was deleted"));
    }
    missing.into()
}

fn refusal(error: DeletionError) -> Refusal {
    let words = error.to_string();
    match error {
        DeletionError::Open(_) => Refusal::new(StatusCode::CONFLICT, "RUN_OPEN", words),
        DeletionError::BelowRun(_) | DeletionError::BelowSpace(_) => {
            Refusal::new(StatusCode::CONFLICT, "CHILD_RUN", words)
        }
        DeletionError::UnderWay => Refusal::new(StatusCode::CONFLICT, "UNDER_WAY", words),
        DeletionError::Store(error) => error.into(),
    }
}
