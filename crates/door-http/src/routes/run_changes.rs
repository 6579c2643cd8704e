//! The list of runs, live: rows of runs that change, for backends that show one.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use toolgate_access::Principal;
use toolgate_engine::run_changes::{Changed, RunWatch};
use toolgate_http::Shared;
use toolgate_http::answer::accepts_events;
use toolgate_http::caller::Reader;
use toolgate_http::describe::{BackendOnly, BadQuery, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::stream::OpenStream;
use toolgate_kernel::id::RunId;

use crate::snapshot::RunSummary;

/// Changes are gathered for so long, so that a run that moves fast is told once.
const GATHER: Duration = Duration::from_millis(200);
/// Rows of one frame.
const ROWS_MAX: usize = 100;

/// Rows of the project's runs as they change, as a stream: `run` with a row when a run is created, moves or ends; `reset` when
/// more changed than is remembered, and the list has to be read again. A reader that comes back reads the list again too.
#[utoipa::path(
    get, path = "/v1/runs/events", operation_id = "watch_runs", tag = "runs",
    responses(
        (status = 200, description = "The rows.", content((String = "text/event-stream"))),
        BadQuery, BackendOnly, Refused,
    ),
)]
pub(crate) async fn watch(
    State(door): State<Shared>,
    Reader(who): Reader,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    if !who.is_backend() {
        return Err(Refusal::forbidden("this needs a secret key"));
    }
    if !accepts_events(&headers) {
        return Err(Refusal::malformed(
            "this is a stream, ask for it with accept: text/event-stream; GET /v1/runs is the list",
        ));
    }
    let open = OpenStream::reserve(&door, &who)?;
    let watching = Watching {
        runs: door.engine.watch_runs(),
        rest: Vec::new(),
        door,
        who,
        _open: open,
    };
    // Sent at once: a reader that has it knows that nothing is missed from here on.
    let first = Some(Bytes::from_static(b": watching\n\n"));
    let frames = unfold((watching, first), async |(mut watching, first)| {
        let frame = match first {
            Some(first) => first,
            None => watching.next().await?,
        };
        Some((Ok::<_, Infallible>(frame), (watching, None)))
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    Ok((headers, Body::from_stream(frames)).into_response())
}

/// A reader of the list. Asked for its next frame only when the connection has room.
struct Watching {
    door: Shared,
    who: Principal,
    runs: RunWatch,
    /// Runs whose rows are not told yet, newest first.
    rest: Vec<RunId>,
    _open: OpenStream,
}

impl Watching {
    /// The next frame; none when access has ended or the gateway goes down.
    async fn next(&mut self) -> Option<Bytes> {
        let heartbeat = self.door.settings.heartbeat;
        loop {
            if !self.rest.is_empty() {
                let frame = self.rows().await;
                if !frame.is_empty() {
                    return Some(frame.into());
                }
                continue;
            }
            let changed = tokio::select! {
                biased;
                () = self.door.settings.stop.cancelled() => return None,
                () = self.door.access.until_ended(&self.who, heartbeat) => return None,
                changed = self.runs.next() => changed,
                () = tokio::time::sleep(heartbeat) => return Some(Bytes::from_static(b":\n\n")),
            };
            tokio::time::sleep(GATHER).await;
            if let Some(reset) = self.gather(changed) {
                return Some(reset);
            }
        }
    }

    /// Takes what has changed; the words for a reader that missed some of it.
    fn gather(&mut self, changed: Changed) -> Option<Bytes> {
        self.rest = changed.runs.into_iter().rev().collect();
        changed.missed.then(|| {
            self.rest.clear();
            Bytes::from_static(b"event: reset\ndata: {}\n\n")
        })
    }

    /// The rows of some of the runs that wait, as far as they are the project's.
    async fn rows(&mut self) -> Vec<u8> {
        let mut frame = Vec::new();
        let some = self.rest.split_off(self.rest.len().saturating_sub(ROWS_MAX));
        for run in some.into_iter().rev() {
            // A store that does not answer now leaves a row out of date until the run moves again.
            let Ok(Some(record)) = self.door.engine.run(run).await else {
                continue;
            };
            if record.project != self.who.project {
                continue;
            }
            let row = serde_json::to_string(&RunSummary::of(record, true)).expect("a row has text keys");
            frame.extend_from_slice(format!("event: run\ndata: {row}\n\n").as_bytes());
        }
        frame
    }
}
