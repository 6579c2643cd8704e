//! Answers that take long. The transport sends nothing before the first message of an answer, and a call may say nothing
//! for minutes: after a moment the answer becomes an event stream with signs of life, as the protocol allows.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;

/// How long the first message of an answer may take before the stream is opened without it.
const SILENCE_MAX: Duration = Duration::from_secs(3);
const EVENT_STREAM: &str = "text/event-stream";

type Answer = http::Response<BoxBody<Bytes, Infallible>>;

/// What is left of an answer.
enum Rest {
    /// It has not begun.
    Waiting(Pin<Box<dyn Future<Output = Answer> + Send>>),
    /// It is an event stream of its own.
    Passing(BoxBody<Bytes, Infallible>),
    Ended,
}

/// The answer, or an event stream that it is told in. Dropping either drops the answer, which the transport takes for the
/// client's cancellation.
pub(crate) async fn respond(
    answer: impl Future<Output = Answer> + Send + 'static,
    heartbeat: Duration,
) -> Response {
    let mut answer = Box::pin(answer);
    if let Ok(answer) = tokio::time::timeout(SILENCE_MAX, &mut answer).await {
        return answer.map(Body::new);
    }
    let frames = stream::unfold(Rest::Waiting(answer), move |rest| next(rest, heartbeat));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

async fn next(rest: Rest, heartbeat: Duration) -> Option<(Result<Bytes, Infallible>, Rest)> {
    match rest {
        Rest::Waiting(mut answer) => match tokio::time::timeout(heartbeat, &mut answer).await {
            Err(_) => Some((Ok(Bytes::from_static(b":\n\n")), Rest::Waiting(answer))),
            Ok(answer) => begun(answer).await,
        },
        Rest::Passing(mut body) => {
            let frame = body.frame().await?;
            let data = frame.ok()?.into_data().unwrap_or_default();
            Some((Ok(data), Rest::Passing(body)))
        }
        Rest::Ended => None,
    }
}

async fn begun(answer: Answer) -> Option<(Result<Bytes, Infallible>, Rest)> {
    let kind = answer.headers().get(CONTENT_TYPE);
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(EVENT_STREAM.as_bytes()));
    let body = answer.into_body();
    if is_stream {
        return Some((Ok(Bytes::from_static(b":\n\n")), Rest::Passing(body)));
    }
    // One message, which has no line breaks outside of its strings.
    let message = body.collect().await.ok()?.to_bytes();
    let mut event = Vec::with_capacity(message.len() + 32);
    event.extend_from_slice(b"event: message\ndata: ");
    event.extend_from_slice(&message);
    event.extend_from_slice(b"\n\n");
    Some((Ok(event.into()), Rest::Ended))
}
