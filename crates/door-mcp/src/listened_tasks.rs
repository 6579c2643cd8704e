//! The tasks that a `subscriptions/listen` names. The transport's library does not know them yet: they are read from the
//! message before it is passed on, and put into the acknowledgement on its way out.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use toolgate_access::Principal;
use toolgate_http::Shared;
use toolgate_kernel::id::RunId;

/// Most tasks that one `subscriptions/listen` follows.
const TASKS_MAX: usize = 16;
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Those of the named tasks that the caller may reach.
pub(crate) async fn accepted(door: &Shared, who: &Principal, named: &[String]) -> Vec<RunId> {
    let mut accepted = Vec::new();
    for run in named.iter().take(TASKS_MAX).filter_map(|id| id.parse().ok()) {
        if door.access.run(who, run).await.is_ok() {
            accepted.push(run);
        }
    }
    accepted
}

/// The answer with the accepted tasks in its acknowledgement.
pub(crate) fn acknowledge(response: Response, accepted: Vec<RunId>) -> Response {
    let mut accepted = Some(accepted).filter(|accepted| !accepted.is_empty());
    if accepted.is_none() {
        return response;
    }
    response.map(|body| {
        let frames = body.into_data_stream().map(move |frame| {
            let frame = frame?;
            let told = accepted
                .as_ref()
                .and_then(|accepted| with_tasks(&frame, accepted));
            if told.is_some() {
                accepted = None;
            }
            Ok::<Bytes, axum::Error>(told.unwrap_or(frame))
        });
        Body::from_stream(frames)
    })
}

/// The event with the tasks in it, if it is the acknowledgement.
fn with_tasks(frame: &Bytes, accepted: &[RunId]) -> Option<Bytes> {
    let text = std::str::from_utf8(frame).ok()?;
    let data = text.lines().find_map(|line| line.strip_prefix("data:"))?;
    let mut message: Value = serde_json::from_str(data.trim()).ok()?;
    if message["method"] != ACKNOWLEDGED {
        return None;
    }
    let ids: Vec<String> = accepted.iter().map(RunId::to_string).collect();
    message["params"]["notifications"]["taskIds"] = json!(ids);
    Some(text.replace(data, &format!(" {message}")).into())
}
