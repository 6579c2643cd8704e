//! Events of a space or a run: as a stream, or as a list of what is stored.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderName, StatusCode};
use toolgate_engine::store::{Deleted, LogPage, LogRange};
use toolgate_http::answer::json;
use toolgate_http::caller::Reader;
use toolgate_http::describe::{BackendOnly, BadQuery, Expired, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query, seq};
use toolgate_http::stream::{Follow, Mark, OpenStream, Until};
use toolgate_http::{Shared, schema};
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::view;
use utoipa::ToSchema;

use super::deletions::gone_or;
use super::runs::seen_by;
use crate::Resources;
use crate::events::{Tail, open, write_json};
use crate::space_snapshot::check_cursor;
use crate::until::{Reading, Streams};

/// The cursor of a browser that comes back.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A space's events: with `accept: text/event-stream` those after the cursor and all that follow, without
/// end; otherwise a page of the stored ones.
#[utoipa::path(
    get, path = "/v1/spaces/{space}/events", operation_id = "space_events", tag = "events",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("after" = inline(Option<schema::Seq>), Query, description = "The `seq` of the last event that was read."),
        ("lastEventId" = inline(Option<schema::Seq>), Query, description = "The same as `after`."),
        ("last-event-id" = inline(Option<schema::Seq>), Header, description = "The same; a browser that comes back sends it."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses(
        (status = 200, description = "The events.", content(
            (EventPage = "application/json"),
            (String = "text/event-stream"),
        )),
        BadQuery, Missing, Expired, Refused,
    ),
)]
pub(crate) async fn space(
    State(door): State<Shared>,
    Reader(who): Reader,
    State(resources): State<Arc<Resources>>,
    At(space): At<SpaceId>,
    Cursor(after): Cursor,
    Reading(streams): Reading,
    query: Query,
) -> Result<Response, Refusal> {
    let limit = query.limit()?;
    if let Err(missing) = door.access.reach_space(&who, space).await {
        return Err(match after {
            Seq(0) => missing.into(),
            _ => gone_or(&resources, who.project, Deleted::Space(space), missing).await,
        });
    }
    check_cursor(&door, &who, space, after).await?;
    if streams != Streams::No {
        let stream = OpenStream::reserve(&door, &who)?;
        let follow = Follow {
            who,
            run: None,
            space,
            after,
            until: Until::End,
        };
        return open(follow, &door, stream).await;
    }
    // An entry holds one event or more, so this reads enough for a page.
    let range = LogRange {
        limit,
        ..LogRange::after(after)
    };
    let log = door.engine.space_log(space, range).await?;
    let reader = door.access.decider(&who, space).await?;
    Ok(page(&log, after, limit, &reader))
}

/// A run's events: with `accept: text/event-stream` those after the cursor and all that follow until it
/// ends; otherwise a page of the stored ones. 204 when it has ended and everything was read.
#[utoipa::path(
    get, path = "/v1/runs/{run}/events", operation_id = "run_events", tag = "events",
    params(
        ("run" = inline(schema::RunId), Path),
        ("after" = inline(Option<schema::Seq>), Query, description = "The `seq` of the last event that was read."),
        ("lastEventId" = inline(Option<schema::Seq>), Query, description = "The same as `after`."),
        ("last-event-id" = inline(Option<schema::Seq>), Header, description = "The same; a browser that comes back sends it."),
        ("until" = inline(Option<crate::until::UntilWord>), Query, description = "When a stream ends; `end` unless said otherwise."),
        ("view" = Option<String>, Query, pattern = "^public$", description = "`public`: a page as a member of its space sees it; for backends, and not for streams."),
        ("user" = Option<String>, Query, description = "With `view`: which member, by id or subject; the user who started the run unless said otherwise."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses(
        (status = 200, description = "The events.", content(
            (EventPage = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = 204, description = "The run has ended and everything was read: do not come back."),
        BadQuery, Missing, Expired, BackendOnly, Refused,
    ),
)]
pub(crate) async fn run(
    State(door): State<Shared>,
    Reader(who): Reader,
    State(resources): State<Arc<Resources>>,
    At(run): At<RunId>,
    Cursor(after): Cursor,
    Reading(streams): Reading,
    query: Query,
) -> Result<Response, Refusal> {
    let limit = query.limit()?;
    let record = match door.access.run(&who, run).await {
        Ok(record) => record,
        Err(missing) if after == Seq(0) => return Err(missing.into()),
        Err(missing) => return Err(gone_or(&resources, who.project, Deleted::Run(run), missing).await),
    };
    let seen_by = seen_by(&door, &who, &record, &query).await?;
    if seen_by.is_some() && streams != Streams::No {
        return Err(Refusal::malformed(
            "query view: a stream is sent to whoever reads it; ask for a page, with accept: application/json",
        ));
    }
    let until = match streams {
        Streams::No => {
            let range = LogRange {
                limit,
                ..LogRange::after(after)
            };
            let log = door.engine.run_log(run, range).await?;
            let reader = match seen_by {
                Some(member) => member,
                None => door.access.decider(&who, record.space).await?,
            };
            return Ok(page(&log, after, limit, &reader));
        }
        Streams::UntilEnd => Until::End,
        Streams::UntilPause => Until::Pause(Mark::Present),
    };
    if record.status.is_final() && after >= record.version {
        // A browser's EventSource comes back for ever unless it is told this.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let stream = OpenStream::reserve(&door, &who)?;
    let follow = Follow {
        who,
        run: Some(run),
        space: record.space,
        after,
        until,
    };
    open(follow, &door, stream).await
}

/// From where on: what a browser sends when it comes back wins over the address it came with first.
pub(crate) struct Cursor(Seq);

impl<S: Sync> FromRequestParts<S> for Cursor {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let header = parts.headers.get(LAST_EVENT_ID);
        let header = header.map(|value| seq(value.to_str().unwrap_or_default(), "last-event-id"));
        let query = Query::of(&parts.uri)?;
        // All of them are read: a malformed one is refused also where another wins.
        let (named, after) = (query.seq("lastEventId")?, query.seq("after")?);
        Ok(Self(header.transpose()?.or(named).or(after).unwrap_or_default()))
    }
}

/// A page of stored events, as the reader may see them.
fn page(log: &LogPage, after: Seq, limit: usize, reader: &Decider) -> Response {
    let mut body = br#"{"events":["#.to_vec();
    let placed = log
        .entries
        .iter()
        .flat_map(|entry| entry.placed().map(move |placed| (entry, placed)));
    let mut rest = placed.filter(|(_, (seq, _))| *seq > after).peekable();
    let mut last = after;
    let mut first = true;
    for (entry, (seq, event)) in rest.by_ref().take(limit) {
        last = seq;
        if let Some(seen) = view(event, reader) {
            if !first {
                body.push(b',');
            }
            first = false;
            write_json(
                &mut body,
                seq,
                &seen,
                &Tail::of(entry.run, entry.space, entry.time),
            );
        }
    }
    let next = if rest.peek().is_some() || log.more {
        last.0.to_string()
    } else {
        "null".into()
    };
    body.extend_from_slice(format!("],\"nextCursor\":{next}}}").as_bytes());
    json(StatusCode::OK, body)
}

/// A page of stored events, oldest first.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is written without a struct")]
pub(crate) struct EventPage {
    /// The events.
    #[schema(value_type = Vec<Event>)]
    events: Vec<Event>,
    /// What to give as `after` for the next page; null when there is none yet.
    next_cursor: Option<u64>,
}

/// Stands for the events, which have a page of their own.
#[derive(ToSchema)]
pub(crate) struct Event;
