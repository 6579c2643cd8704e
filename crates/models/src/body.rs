//! Reads a response body as it arrives.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Version;
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use tokio::task::unconstrained;
use tokio::time::{Instant, timeout, timeout_at};

use crate::direct::{Connection, Pool};

/// Most bytes read of an error response.
const ERROR_BYTES_MAX: usize = 16 << 10;
/// Longest wait for the whole error response.
const ERROR_WAIT_MAX: Duration = Duration::from_secs(5);
/// Longest wait for the end of a response whose last event was read.
const REST_WAIT_MAX: Duration = Duration::from_millis(20);
/// Most bytes of one read, so that one fast model does not starve other tasks.
const READ_BYTES_MAX: usize = 256 << 10;

/// The connection broke, or the server closed it in the middle of the response.
pub(crate) struct Disconnected;

/// A response body. Dropping it before its end closes the connection.
pub(crate) struct Body<'c> {
    frames: Frames,
    /// The pooled connection that carries the body: driven by [`Body::read`], returned to the pool at the
    /// end.
    connection: Option<(Connection, &'c Pool)>,
    /// Whether bytes that arrive during a pause come in one read.
    gathers: bool,
    /// The connection broke; reported only after everything received before is read.
    broken: bool,
}

enum Frames {
    Direct(Incoming),
    Shared(reqwest::Body),
}

impl<'c> Body<'c> {
    /// A body over a pooled connection.
    pub(crate) fn direct(frames: Incoming, connection: Connection, pool: &'c Pool) -> Self {
        Self {
            frames: Frames::Direct(frames),
            connection: Some((connection, pool)),
            gathers: true,
            broken: false,
        }
    }

    /// A body over the shared HTTPS client.
    pub(crate) fn shared(frames: reqwest::Body, version: Version) -> Self {
        Self {
            frames: Frames::Shared(frames),
            connection: None,
            // Under HTTP/1.1 the client hands frames over one by one, however long we wait.
            gathers: version == Version::HTTP_2,
            broken: false,
        }
    }

    /// Waits for bytes and passes on all that are available; `false` at the end of the body.
    pub(crate) async fn read(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool, Disconnected> {
        let mut taken = 0;
        let frames = poll_fn(|context| {
            while taken < READ_BYTES_MAX && !self.broken {
                match self.poll_frame(context) {
                    Poll::Ready(Some(Ok(frame))) => {
                        if let Ok(bytes) = frame.into_data() {
                            taken += bytes.len();
                            take(&bytes);
                        }
                    }
                    Poll::Ready(Some(Err(Disconnected))) => self.broken = true,
                    Poll::Ready(None) => return Poll::Ready(Ok(false)),
                    Poll::Pending if taken == 0 => return Poll::Pending,
                    Poll::Pending => break,
                }
            }
            Poll::Ready(if taken == 0 { Err(Disconnected) } else { Ok(true) })
        });
        // Tokio's cooperative budget would end a read after a few dozen frames.
        let more = unconstrained(frames).await?;
        if !more && let Some((connection, pool)) = self.connection.take() {
            pool.put(connection);
        }
        Ok(more)
    }

    /// Waits for `time` so that bytes accumulate, if that makes the next read larger.
    pub(crate) async fn pause(&mut self, time: Duration) -> Result<(), Disconnected> {
        match &mut self.connection {
            Some((connection, _)) => connection.pause(time).await.map_err(|_| Disconnected)?,
            None if self.gathers => tokio::time::sleep(time).await,
            None => {}
        }
        Ok(())
    }

    /// Reads to the end of the body, so that the connection can be reused.
    pub(crate) async fn finish(mut self) {
        // If the server does not finish in time only the connection is lost: the reply is complete.
        let _ = timeout(REST_WAIT_MAX, async {
            while let Ok(true) = self.read(|_| {}).await {}
        })
        .await;
    }

    /// Reads the body of an error response, up to the limits on bytes and time.
    pub(crate) async fn read_error(mut self) -> Vec<u8> {
        let mut words = Vec::new();
        let until = Instant::now() + ERROR_WAIT_MAX;
        while words.len() < ERROR_BYTES_MAX {
            let read = timeout_at(until, self.read(|bytes| words.extend_from_slice(bytes))).await;
            if !matches!(read, Ok(Ok(true))) {
                break;
            }
        }
        words
    }

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Disconnected>>> {
        let polled = self.frames.poll(context);
        match (&mut self.connection, &polled) {
            (Some((connection, _)), Poll::Pending) => {
                connection.drive(context);
                self.frames.poll(context)
            }
            _ => polled,
        }
    }
}

impl Frames {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Disconnected>>> {
        match self {
            Self::Direct(frames) => Pin::new(frames).poll_frame(context).map_err(|_| Disconnected),
            Self::Shared(frames) => Pin::new(frames).poll_frame(context).map_err(|_| Disconnected),
        }
    }
}
