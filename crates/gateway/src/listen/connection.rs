//! One connection, held to its timeouts: for a header, between two requests, and for a client to take what it is sent.
//!
//! The socket and the service note what the connection does; a timer looks at the notes now and then. So a timeout
//! costs no timer per read or write, and is kept to within [`Timeouts::look`]. Bodies of requests have a timeout of
//! their own, in `toolgate_http::body`.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::Ends;

/// Largest header of a request, in bytes.
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// Most bytes that a connection buffers in each direction.
const BUFFER_BYTES: usize = 64 * 1024;
/// Slowest client, in bytes per second: one that takes less for longer than the write timeout is cut.
const WRITE_RATE_MIN: u64 = 8 * 1024;
/// Longest wait for the rest of a header once the gateway stops.
const HEADER_AT_STOP: Duration = Duration::from_secs(1);

/// How long each part of an exchange may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timeouts {
    /// From the first byte of a header, or from the start of the connection, to the header's end.
    pub header: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// Without the client taking a byte that waits for it.
    pub write: Duration,
}

impl Timeouts {
    /// How often a connection is looked at.
    fn look(&self) -> Duration {
        let shortest = self.header.min(self.idle).min(self.write);
        (shortest / 4).max(Duration::from_millis(5))
    }
}

/// Serves one connection until it ends, is told to close, takes too long, or the gateway stops.
pub async fn drive(socket: TcpStream, door: Router, watch: &Arc<Watch>, timeouts: &Timeouts, ends: Ends) {
    let io = TokioIo::new(Socket {
        stream: socket,
        watch: watch.clone(),
    });
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let busy = watch.begin();
        let answer = door.clone().oneshot(request.map(Body::new));
        let leaving = ends.leaving.clone();
        async move {
            let mut answer = answer.await?;
            if leaving.is_cancelled() {
                // A balancer that keeps connections open opens the next one to another node.
                answer
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer.map(|body| Answer { body, _busy: busy }))
        }
    });
    let mut server = http1::Builder::new();
    // The timer of hyper's own does not tell an idle connection from a header that does not end.
    server.header_read_timeout(None);
    server
        .max_header_size(HEADER_BYTES_MAX)
        .max_buf_size(BUFFER_BYTES);
    let mut connection = pin!(server.serve_connection(io, service));
    let mut timeouts = *timeouts;
    let mut look = pin!(tokio::time::sleep(timeouts.look()));
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::trace!(%error, "a connection broke");
                }
                return;
            }
            () = watch.told_to_close.notified() => return,
            () = ends.stop.cancelled(), if !stopping => {
                stopping = true;
                timeouts.header = timeouts.header.min(HEADER_AT_STOP);
                connection.as_mut().graceful_shutdown();
            }
            () = &mut look => {
                if let Some(why) = watch.overdue(&timeouts) {
                    tracing::debug!(why, "a connection is closed");
                    metrics::counter!("toolgate_http_connections_cut_total", "why" => why).increment(1);
                    return;
                }
                look.as_mut().reset(Instant::now() + timeouts.look());
            }
        }
    }
}

/// What a connection does, as its socket and its service have noted.
pub struct Watch {
    state: Mutex<State>,
    told_to_close: Notify,
}

struct State {
    phase: Phase,
    /// Something waits for the client to take it.
    write: Option<Write>,
}

#[derive(Clone, Copy)]
enum Phase {
    /// A header is awaited or half sent, since then.
    Header(Instant),
    /// A request is handled or answered.
    Busy,
    /// Between two requests, since then.
    Idle(Instant),
    /// Told to close.
    Closing,
}

/// From the moment when the socket is full until everything is written.
struct Write {
    began: Instant,
    progressed: Instant,
    bytes: u64,
}

impl Watch {
    pub fn new() -> Self {
        Self {
            state: Mutex::new(State {
                phase: Phase::Header(Instant::now()),
                write: None,
            }),
            told_to_close: Notify::new(),
        }
    }

    /// A request has come; it lasts until the result is dropped.
    pub fn begin(self: &Arc<Self>) -> Busy {
        self.lock().phase = Phase::Busy;
        Busy(self.clone())
    }

    /// Closes the connection unless it is in the middle of a request; false if it is, or closes already.
    pub fn close_if_quiet(&self) -> bool {
        let mut state = self.lock();
        match state.phase {
            Phase::Busy | Phase::Closing => false,
            // What was answered last may not be written yet.
            Phase::Idle(_) if state.write.is_some() => false,
            Phase::Header(_) | Phase::Idle(_) => {
                state.phase = Phase::Closing;
                self.told_to_close.notify_one();
                true
            }
        }
    }

    #[cfg(test)]
    pub fn is_closing(&self) -> bool {
        matches!(self.lock().phase, Phase::Closing)
    }

    /// Which timeout has passed, if one has.
    fn overdue(&self, timeouts: &Timeouts) -> Option<&'static str> {
        let state = self.lock();
        let now = Instant::now();
        if let Some(write) = &state.write {
            let expected = Duration::from_secs(write.bytes / WRITE_RATE_MIN);
            let stalls = now - write.progressed > timeouts.write;
            return (stalls || now - write.began > timeouts.write + expected).then_some("write");
        }
        match state.phase {
            Phase::Header(since) => (now - since > timeouts.header).then_some("header"),
            Phase::Idle(since) => (now - since > timeouts.idle).then_some("idle"),
            Phase::Busy | Phase::Closing => None,
        }
    }

    fn has_read(&self) {
        let mut state = self.lock();
        if let Phase::Idle(_) = state.phase {
            state.phase = Phase::Header(Instant::now());
        }
    }

    fn has_tried_to_write(&self, written: &Poll<io::Result<usize>>) {
        let mut state = self.lock();
        match (written, &mut state.write) {
            (Poll::Pending, None) => {
                let now = Instant::now();
                state.write = Some(Write {
                    began: now,
                    progressed: now,
                    bytes: 0,
                });
            }
            (Poll::Ready(Ok(bytes)), Some(write)) if *bytes > 0 => {
                write.progressed = Instant::now();
                write.bytes += *bytes as u64;
            }
            _ => {}
        }
    }

    fn has_written_all(&self) {
        self.lock().write = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being handled or answered.
pub struct Busy(Arc<Watch>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.lock().phase = Phase::Idle(Instant::now());
    }
}

/// The body of an answer: the request lasts until it is sent.
struct Answer {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A client's socket, which notes what goes through it.
struct Socket {
    stream: TcpStream,
    watch: Arc<Watch>,
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.watch.has_read();
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch.has_tried_to_write(&written);
        written
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.watch.has_tried_to_write(&written);
        written
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
    /// Called when hyper has no more to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch.has_written_all();
        flushed
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
