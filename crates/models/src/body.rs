//! Reads the body of an answer as it comes.

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

/// Most bytes read of an answer that is an error.
const ERROR_BYTES_MAX: usize = 16 << 10;
/// Longest wait for the whole of it.
const ERROR_WAIT_MAX: Duration = Duration::from_secs(5);
/// Longest wait for the rest of an answer that we need no more.
const REST_WAIT_MAX: Duration = Duration::from_millis(20);
/// Most bytes taken in one read: others want to run too.
const READ_BYTES_MAX: usize = 256 << 10;

/// The connection broke, or the server broke off.
pub(crate) struct Cut;

/// The body of an answer. Dropping it before its end closes the connection.
pub(crate) struct Body<'c> {
    frames: Frames,
    /// Ours to drive and to give back.
    connection: Option<(Connection, &'c Pool)>,
    /// What arrives during a pause can be taken in one read.
    gathers: bool,
    /// The connection broke; told when all that came before it is read.
    broken: bool,
}

enum Frames {
    Direct(Incoming),
    Shared(reqwest::Body),
}

impl<'c> Body<'c> {
    /// Over a connection of our own.
    pub(crate) fn direct(frames: Incoming, connection: Connection, pool: &'c Pool) -> Self {
        Self {
            frames: Frames::Direct(frames),
            connection: Some((connection, pool)),
            gathers: true,
            broken: false,
        }
    }

    /// Over the shared client.
    pub(crate) fn shared(frames: reqwest::Body, version: Version) -> Self {
        Self {
            frames: Frames::Shared(frames),
            connection: None,
            // Under HTTP/1.1 the frames are handed over one by one, however long we wait.
            gathers: version == Version::HTTP_2,
            broken: false,
        }
    }

    /// Waits for bytes and takes all that are there; `false` when there will be no more.
    pub(crate) async fn read(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool, Cut> {
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
                    Poll::Ready(Some(Err(Cut))) => self.broken = true,
                    Poll::Ready(None) => return Poll::Ready(Ok(false)),
                    Poll::Pending if taken == 0 => return Poll::Pending,
                    Poll::Pending => break,
                }
            }
            Poll::Ready(if taken == 0 { Err(Cut) } else { Ok(true) })
        });
        // The runtime's own limit would cut a read after a few dozen words.
        let more = unconstrained(frames).await?;
        if !more && let Some((connection, pool)) = self.connection.take() {
            pool.put(connection);
        }
        Ok(more)
    }

    /// Lets bytes gather for `time`, where that makes the next read a larger one.
    pub(crate) async fn pause(&mut self, time: Duration) -> Result<(), Cut> {
        match &mut self.connection {
            Some((connection, _)) => connection.pause(time).await.map_err(|_| Cut)?,
            None if self.gathers => tokio::time::sleep(time).await,
            None => {}
        }
        Ok(())
    }

    /// Reads what follows the last event, so that the connection can serve again.
    pub(crate) async fn finish(mut self) {
        // A server that does not come to its end in time loses the connection, nothing more.
        let _ = timeout(REST_WAIT_MAX, async {
            while let Ok(true) = self.read(|_| {}).await {}
        })
        .await;
    }

    /// What there is to read of an error.
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

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
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
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self {
            Self::Direct(frames) => Pin::new(frames).poll_frame(context).map_err(|_| Cut),
            Self::Shared(frames) => Pin::new(frames).poll_frame(context).map_err(|_| Cut),
        }
    }
}
