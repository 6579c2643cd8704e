//! How a request of a client is answered: with one JSON response, or with a stream that ends with it.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::unfold;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolgate_http::Shared;
use toolgate_http::meter::Metered;
use toolgate_http::stream::OpenStream;
use toolgate_mcp::link::message::{Id, Message, Outcome, Response as RpcResponse};
use tracing::Instrument as _;

use super::era::{self, HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_CAPABILITY, UNSUPPORTED_VERSION};
use super::routes::Visit;

/// Messages that may wait for a client that reads slowly; the server is not read from meanwhile.
const WAITING_MAX: usize = 4;

/// Which rules a response follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Modern,
    Legacy,
}

/// The way back to a client, on the stream of its request.
#[derive(Clone)]
pub(super) struct Reply {
    out: mpsc::Sender<Frame>,
    visit: Visit,
}

/// A message as it is written, counted among the bytes in flight.
struct Frame {
    bytes: Vec<u8>,
    /// The status of the response that it is, if it is one.
    last: Option<StatusCode>,
    _share: Metered,
}

/// The client is gone, or takes more memory than it may.
#[derive(Debug)]
pub(super) struct Closed;

impl Reply {
    pub(super) async fn send(&self, message: Message) -> Result<(), Closed> {
        let last = match &message {
            Message::Response(response) => Some(status(&response.outcome)),
            Message::Request(_) | Message::Notification(_) => None,
        };
        let bytes = self.visit.upstream.written(message);
        let mut share = self.visit.shared.in_flight.open(Some(&self.visit.who));
        share.take(bytes.len()).map_err(|_| Closed)?;
        let frame = Frame {
            bytes,
            last,
            _share: share,
        };
        self.out.send(frame).await.map_err(|_| Closed)
    }

    /// Ends the request.
    pub(super) async fn end(&self, id: &Id, outcome: Outcome) -> Result<(), Closed> {
        let id = Some(id.clone());
        self.send(Message::Response(RpcResponse { id, outcome })).await
    }
}

/// Answers a request with what `drive` sends. A client that goes away ends `drive` where it is.
pub(super) async fn respond<F>(
    visit: &Visit,
    era: Era,
    open: OpenStream,
    drive: impl FnOnce(Reply) -> F,
) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let (out, mut frames) = mpsc::channel(WAITING_MAX);
    let reply = Reply {
        out,
        visit: visit.clone(),
    };
    let driver = spawn(visit, drive(reply));
    let door = &visit.shared;
    let first = tokio::select! {
        first = frames.recv() => first,
        // Proxies cut a connection on which nothing comes.
        () = tokio::time::sleep(door.settings.heartbeat) => return events(door, frames, None, driver, open),
    };
    match first {
        Some(Frame {
            bytes,
            last: Some(status),
            ..
        }) => json(era, status, bytes),
        Some(frame) => events(door, frames, Some(frame), driver, open),
        // Cancelled by the client, who waits for nothing.
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// Runs until it has ended, or until its caller may not go on.
fn spawn(visit: &Visit, drive: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    let visit = visit.clone();
    let driver = async move {
        tokio::select! {
            biased;
            () = drive => {}
            () = visit.until_ended() => {}
        }
    };
    AbortOnDropHandle::new(tokio::spawn(driver.in_current_span()))
}

/// A stream of what `drive` sends, which no response ends.
pub(super) fn stream<F>(visit: &Visit, open: OpenStream, drive: impl FnOnce(Reply) -> F) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let (out, frames) = mpsc::channel(WAITING_MAX);
    let reply = Reply {
        out,
        visit: visit.clone(),
    };
    let driver = spawn(visit, drive(reply));
    events(&visit.shared, frames, None, driver, open)
}

/// One JSON-RPC response by itself.
pub(super) fn refuse(era: Era, id: Option<Id>, outcome: Outcome) -> Response {
    let status = status(&outcome);
    json(
        era,
        status,
        Message::Response(RpcResponse { id, outcome }).write(),
    )
}

/// One JSON-RPC response by itself, with this status.
pub(super) fn refuse_with(status: StatusCode, id: Option<Id>, outcome: Outcome) -> Response {
    json(
        Era::Modern,
        status,
        Message::Response(RpcResponse { id, outcome }).write(),
    )
}

fn json(era: Era, status: StatusCode, bytes: Vec<u8>) -> Response {
    let status = match era {
        Era::Modern => status,
        Era::Legacy => StatusCode::OK,
    };
    let kind = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, kind)], bytes).into_response()
}

/// The status that the newer era wants for an error.
fn status(outcome: &Outcome) -> StatusCode {
    match outcome.code() {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            HEADER_MISMATCH
            | MISSING_CAPABILITY
            | UNSUPPORTED_VERSION
            | era::PARSE_ERROR
            | era::INVALID_REQUEST,
        ) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

struct Events {
    first: Option<Frame>,
    frames: mpsc::Receiver<Frame>,
    heartbeat: Duration,
    stop: CancellationToken,
    is_over: bool,
    _driver: AbortOnDropHandle<()>,
    _open: OpenStream,
}

fn events(
    door: &Shared,
    frames: mpsc::Receiver<Frame>,
    first: Option<Frame>,
    driver: AbortOnDropHandle<()>,
    open: OpenStream,
) -> Response {
    let events = Events {
        first,
        frames,
        heartbeat: door.settings.heartbeat,
        stop: door.settings.stop.clone(),
        is_over: false,
        _driver: driver,
        _open: open,
    };
    let body = unfold(events, |mut events| async {
        let bytes = events.next().await?;
        Some((Ok::<_, Infallible>(bytes), events))
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Asks proxies not to hold events back.
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    (headers, Body::from_stream(body)).into_response()
}

impl Events {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let frame = match self.first.take() {
            Some(first) => first,
            None => tokio::select! {
                frame = self.frames.recv() => frame?,
                () = tokio::time::sleep(self.heartbeat) => return Some(Bytes::from_static(b": alive\n\n")),
                () = self.stop.cancelled() => return None,
            },
        };
        self.is_over = frame.last.is_some();
        let mut event = b"data: ".to_vec();
        event.extend_from_slice(&frame.bytes);
        event.extend_from_slice(b"\n\n");
        Some(event.into())
    }
}
