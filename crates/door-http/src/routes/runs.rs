//! Runs: how they stand, and how to stop them.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use toolgate_access::Principal;
use toolgate_engine::feed::Scope;
use toolgate_engine::store::{RunFilter, RunRecord};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BackendOnly, BadQuery, Missing, Refused, Settled};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::run_state::CountedState;
use toolgate_http::wait::{Awaited, Since, Wait, ended_or_waits};
use toolgate_http::{Shared, schema};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{EntityId, RunId, SpaceId};
use toolgate_kernel::tool::Decider;
use utoipa::ToSchema;

use crate::snapshot::{RunBody, RunSummary};
use crate::waited::answer_rested;

/// A page of runs, newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunList {
    /// The runs: fewer than `limit`, even none, when the gateway has looked at many that do not fit.
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

/// A run and all below it.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunTreeBody {
    /// The run at the top, then those below it, oldest first. `parent` of each says which call started it.
    runs: Vec<RunSummary>,
    /// Whether there are more than are told: the newest are left out.
    truncated: bool,
}

/// A project's runs, newest first. A user names a space; only backends filter by more than space and status.
#[utoipa::path(
    get, path = "/v1/runs", operation_id = "list_runs", tag = "runs",
    params(
        ("space" = inline(Option<schema::SpaceId>), Query, description = "In this space only."),
        ("status" = inline(Option<schema::Statuses>), Query, description = "In this status only, or in one of several with commas between them."),
        ("parent" = inline(Option<schema::RunId>), Query, description = "Children of this run only."),
        ("root" = inline(Option<schema::RunId>), Query, description = "Below this run at any depth only."),
        ("top" = Option<bool>, Query, description = "`true`: those that no call started only."),
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Of this agent only."),
        ("user" = Option<String>, Query, description = "Started by this user only: an entity's id or subject."),
        ("tool" = Option<String>, Query, pattern = "^[A-Za-z_][A-Za-z0-9_-]{0,63}$", description = "Those that are one call of this tool only."),
        ("text" = Option<String>, Query, max_length = 200, description = "Those whose first message has this text near its beginning only; the case of ASCII letters does not matter."),
        ("since" = inline(Option<schema::Time>), Query, description = "Created at this time or later only."),
        ("until" = inline(Option<schema::Time>), Query, description = "Created before this time only."),
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
    let mut filter = RunFilter {
        parent: query.read("parent")?,
        ..RunFilter::default()
    };
    let asked = FOR_BACKENDS.iter().find(|name| query.text(name).is_some());
    match (&who.user, asked) {
        (Some(_), Some(name)) => {
            let detail = format!("filtering runs by {name} needs a secret key");
            return Err(Refusal::forbidden(detail));
        }
        (Some(_), None) => {}
        (None, _) => narrow(&door, &who, &query, &mut filter).await?,
    }
    page(&door, &who, RunFilter { space, ..filter }, &query).await
}

/// Filters that tell of more than one space.
const FOR_BACKENDS: [&str; 8] = ["root", "top", "agent", "user", "tool", "text", "since", "until"];
/// Longest text to look for, in characters.
const TEXT_CHARS_MAX: usize = 200;

/// Reads what a backend filters by.
async fn narrow(
    door: &Shared,
    who: &Principal,
    query: &Query,
    filter: &mut RunFilter,
) -> Result<(), Refusal> {
    filter.root = query.read("root")?;
    filter.top = query.flag("top")?;
    filter.agent = query.read("agent")?;
    filter.tool = query.read("tool")?;
    filter.since = query.read("since")?;
    filter.until = query.read("until")?;
    filter.text = query
        .text("text")
        .filter(|text| !text.is_empty())
        .map(str::to_owned);
    if filter
        .text
        .as_ref()
        .is_some_and(|text| text.chars().count() > TEXT_CHARS_MAX)
    {
        let detail = format!("query text: longer than {TEXT_CHARS_MAX} characters");
        return Err(Refusal::malformed(detail));
    }
    if let Some(named) = query.text("user") {
        filter.user = Some(door.access.known_entity(who.project, named).await?);
    }
    Ok(())
}

/// Runs of a tree that are told at once.
const TREE_MAX: usize = 500;

/// A run and all runs below it, at any depth. For backends.
#[utoipa::path(
    get, path = "/v1/runs/{run}/tree", operation_id = "get_run_tree", tag = "runs",
    params(("run" = inline(schema::RunId), Path, description = "Any run of the tree.")),
    responses((status = 200, description = "The tree.", body = RunTreeBody), Missing, BackendOnly, Refused),
)]
pub(crate) async fn tree(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(run): At<RunId>,
) -> Result<Answer<RunTreeBody>, Refusal> {
    if !who.is_backend() {
        return Err(Refusal::forbidden("this needs a secret key"));
    }
    let record = door.access.run(&who, run).await?;
    let top = match record.root == run {
        true => record,
        false => door.access.run(&who, record.root).await?,
    };
    let filter = RunFilter {
        root: Some(top.id),
        limit: TREE_MAX,
        ..RunFilter::default()
    };
    let below = door.engine.runs(who.project, filter).await?.runs;
    let truncated = below.len() == TREE_MAX;
    let runs = std::iter::once(top).chain(below.into_iter().rev());
    Ok(ok(RunTreeBody {
        runs: runs.map(|run| RunSummary::of(run, true)).collect(),
        truncated,
    }))
}

/// A space's runs, newest first.
#[utoipa::path(
    get, path = "/v1/spaces/{space}/runs", operation_id = "list_space_runs", tag = "runs",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("status" = inline(Option<schema::Statuses>), Query, description = "In this status only, or in one of several with commas between them."),
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
    let filter = RunFilter {
        space: Some(space),
        ..RunFilter::default()
    };
    page(&door, &who, filter, &query).await
}

async fn page(
    door: &Shared,
    who: &Principal,
    filter: RunFilter,
    query: &Query,
) -> Result<Answer<RunList>, Refusal> {
    let filter = RunFilter {
        statuses: query.words("status", &Status::ALL.map(|status| (status.as_str(), status)))?,
        before: query.read("before")?,
        limit: query.limit()?,
        ..filter
    };
    let page = door.engine.runs(who.project, filter).await?;
    let runs = page
        .runs
        .into_iter()
        .map(|run| RunSummary::of(run, who.is_backend()))
        .collect();
    Ok(ok(RunList {
        runs,
        next_cursor: page.next,
    }))
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
        ("view" = Option<String>, Query, pattern = "^public$", description = "`public`: as a member of its space sees it; for backends."),
        ("user" = Option<String>, Query, description = "With `view`: which member, by id or subject; the user who started the run unless said otherwise."),
    ),
    responses((status = 200, description = "The run.", body = RunBody), BadQuery, Missing, BackendOnly, Refused),
)]
pub(crate) async fn get(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(run): At<RunId>,
    query: Query,
    wait: Wait,
) -> Result<Response, Refusal> {
    let record = door.access.run(&who, run).await?;
    let seen_by = seen_by(&door, &who, &record, &query).await?;
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
    let reader = match seen_by {
        Some(member) => member,
        None => door.access.decider(&who, record.space).await?,
    };
    let state = CountedState::read(&door, &who, run, &reader).await?;
    let body = RunBody::read(&door, record, &state, &reader).await?;
    let applied = wait.map(|wait| wait.applied()).unwrap_or_default();
    Ok((applied, ok(body)).into_response())
}

/// The member of a run's space through whose eyes a backend wants to look; none when it looks for itself.
pub(super) async fn seen_by(
    door: &Shared,
    who: &Principal,
    record: &RunRecord,
    query: &Query,
) -> Result<Option<Decider>, Refusal> {
    if query.word("view", &[("public", ())])?.is_none() {
        return Ok(None);
    }
    if !who.is_backend() {
        return Err(Refusal::forbidden(
            "looking through somebody else's eyes needs a secret key",
        ));
    }
    let member = match query.text("user") {
        Some(named) => door.access.known_entity(who.project, named).await?,
        None => match record.user {
            Some(user) => user,
            // Nobody in particular: what every member sees.
            None => EntityId::from_bytes([0; 16]),
        },
    };
    Ok(Some(door.access.member_view(record.space, member).await?))
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
