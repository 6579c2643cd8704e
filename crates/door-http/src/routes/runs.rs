//! Runs: how they stand, and how to stop them.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use toolgate_access::Principal;
use toolgate_engine::feed::Scope;
use toolgate_engine::store::RunFilter;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BackendOnly, BadQuery, Missing, Refused, Settled};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::run_state::CountedState;
use toolgate_http::wait::{Awaited, Since, Wait, ended_or_waits};
use toolgate_http::{Shared, schema};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{RunId, SpaceId};
use utoipa::ToSchema;

use crate::snapshot::{RunBody, RunSummary};
use crate::waited::answer_rested;

/// A page of runs, newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunList {
    /// The runs.
    runs: Vec<RunSummary>,
    /// What to give as `before` for the next page; null on the last.
    #[schema(value_type = Option<schema::RunId>)]
    next_cursor: Option<RunId>,
}

/// Where a run stands after it was told to stop.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunStopped {
    /// Id of the run.
    #[schema(value_type = schema::RunId)]
    run_id: RunId,
    /// Status of the run.
    #[schema(value_type = schema::Status)]
    status: &'static str,
}

/// A project's runs, newest first. A user names a space.
#[utoipa::path(
    get, path = "/v1/runs", operation_id = "list_runs", tag = "runs",
    params(
        ("space" = inline(Option<schema::SpaceId>), Query, description = "In this space only."),
        ("status" = inline(Option<schema::Status>), Query, description = "In this status only."),
        ("parent" = inline(Option<schema::RunId>), Query, description = "Children of this run only."),
        ("before" = inline(Option<schema::RunId>), Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page.", body = RunList), BadQuery, Missing, BackendOnly, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    Caller(who): Caller,
    query: Query,
) -> Result<Answer<RunList>, Refusal> {
    let space = match query.read::<SpaceId>("space")? {
        Some(space) => {
            door.access.reach_space(&who, space).await?;
            Some(space)
        }
        None if who.user.is_some() => {
            return Err(Refusal::forbidden(
                "listing the runs of all spaces needs a secret key; name a space",
            ));
        }
        None => None,
    };
    let parent = query.read("parent")?;
    page(&door, &who, space, parent, &query).await
}

/// A space's runs, newest first.
#[utoipa::path(
    get, path = "/v1/spaces/{space}/runs", operation_id = "list_space_runs", tag = "runs",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("status" = inline(Option<schema::Status>), Query, description = "In this status only."),
        ("before" = inline(Option<schema::RunId>), Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page.", body = RunList), BadQuery, Missing, Refused),
)]
pub(crate) async fn of_space(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(space): At<SpaceId>,
    query: Query,
) -> Result<Answer<RunList>, Refusal> {
    door.access.reach_space(&who, space).await?;
    page(&door, &who, Some(space), None, &query).await
}

async fn page(
    door: &Shared,
    who: &Principal,
    space: Option<SpaceId>,
    parent: Option<RunId>,
    query: &Query,
) -> Result<Answer<RunList>, Refusal> {
    let status = match query.text("status") {
        None => None,
        Some(word) => Some(
            Status::parse(word).ok_or_else(|| Refusal::malformed("query status: there is no such status"))?,
        ),
    };
    let limit = query.limit()?;
    let filter = RunFilter {
        space,
        status,
        parent,
        before: query.read("before")?,
        limit,
    };
    let runs = door.engine.runs(who.project, filter).await?;
    let next_cursor = runs.last().filter(|_| runs.len() == limit).map(|run| run.id);
    let runs = runs
        .into_iter()
        .map(|run| RunSummary::of(run, who.is_backend()))
        .collect();
    Ok(ok(RunList { runs, next_cursor }))
}

/// A run as it stands.
///
/// With `prefer: wait=30` the answer comes when it has ended or waits for somebody, after 30 seconds at the latest.
#[utoipa::path(
    get, path = "/v1/runs/{run}", operation_id = "get_run", tag = "runs",
    params(
        ("run" = inline(schema::RunId), Path),
        ("wait" = Option<String>, Query, pattern = "^[0-9]+(ms|s|m)?$", description = "How long to wait for the run, such as `30s`."),
        ("prefer" = Option<String>, Header, description = "The same in seconds: `wait=30`."),
    ),
    responses((status = 200, description = "The run.", body = RunBody), BadQuery, Missing, Refused),
)]
pub(crate) async fn get(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(run): At<RunId>,
    wait: Wait,
) -> Result<Response, Refusal> {
    let record = door.access.run(&who, run).await?;
    let wait = wait.reserve(&door, &who)?;
    if let Some(wait) = &wait {
        let events = door.engine.subscribe(Scope::Run(run), record.version).await?;
        let awaited = Awaited {
            who: who.clone(),
            run,
            space: record.space,
            since: Since::Now,
            is_rest: ended_or_waits,
        };
        if let Some(rested) = wait.rest(&door, &awaited, events).await? {
            return answer_rested(&door, wait, rested, |_, run| run).await;
        }
    }
    // The log is read after the row: what the row says has happened is in it.
    let record = door.access.run(&who, run).await?;
    let reader = door.access.decider(&who, record.space).await?;
    let state = CountedState::read(&door, &who, run, &reader).await?;
    let body = RunBody::read(&door, record, &state, &reader).await?;
    let applied = wait.map(|wait| wait.applied()).unwrap_or_default();
    Ok((applied, ok(body)).into_response())
}

/// Cancels a run and everything below it. A run that has ended stays as it is.
#[utoipa::path(
    post, path = "/v1/runs/{run}/cancel", operation_id = "cancel_run", tag = "runs",
    params(("run" = inline(schema::RunId), Path)),
    responses((status = 200, description = "Where it stands now.", body = RunStopped), Missing, Settled, Refused),
)]
pub(crate) async fn cancel(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(run): At<RunId>,
) -> Result<Answer<RunStopped>, Refusal> {
    door.access.reach_run(&who, run, "run").await?;
    let status = door.engine.cancel(run).await?;
    Ok(ok(RunStopped {
        run_id: run,
        status: status.as_str(),
    }))
}
