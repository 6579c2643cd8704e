//! An event stream that reconnects and resumes from its cursor.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_core::Stream;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use hyper::header::{ACCEPT, HeaderName};
use hyper::{Method, StatusCode};
use tokio::sync::watch;
use toolgate_protocol::event::{self as kernel, Seq};
use toolgate_protocol::id::{RunId, SpaceId};

use crate::error::Error;
use crate::event::Event;
use crate::http::{Backoff, Http, RetryPolicy};
use crate::sse::Decoder;
use crate::transport::Response;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long the gateway may be unavailable before the stream ends with an error.
const AWAY_MAX: Duration = Duration::from_secs(300);

/// The events of a run or a space, as they happen.
///
/// After a disconnect, also over a restart of the gateway, it resumes after the last event it has read: no
/// gaps, no duplicates. It ends when the run has ended, or with one error: the gateway rejected the request,
/// or was unavailable for five minutes. Unread events stay at the gateway (backpressure): only the event that
/// is being read is buffered.
pub struct EventStream {
    events: BoxStream<'static, Result<Event, Error>>,
    cursor: Seq,
    connection: watch::Receiver<Option<Connection>>,
}

/// Whether a stream reaches the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// The gateway answers.
    Up,
    /// The gateway does not answer. It is tried again until it does.
    Lost {
        /// Why, in words for a person.
        reason: String,
    },
}

impl Connection {
    pub(crate) fn lost(error: &Error) -> Self {
        let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
        let reason = causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}"));
        Self::Lost { reason }
    }

    /// Whether both are up, or both are lost.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl EventStream {
    pub(crate) fn of_run(http: Arc<Http>, run: RunId, after: Seq) -> Self {
        Self::open(http, format!("v1/runs/{run}/events"), Some(run), after)
    }

    pub(crate) fn of_space(http: Arc<Http>, space: SpaceId, after: Seq) -> Self {
        Self::open(http, format!("v1/spaces/{space}/events"), None, after)
    }

    fn open(http: Arc<Http>, path: String, run: Option<RunId>, after: Seq) -> Self {
        let (connected, connection) = watch::channel(None);
        let reader = Reader {
            connected,
            http,
            path,
            run,
            cursor: after,
            connection: None,
            backoff: Backoff::default(),
            away_since: None,
            over: false,
        };
        let next = |mut reader: Reader| async move { reader.next().await.map(|event| (event, reader)) };
        Self {
            events: stream::unfold(reader, next).boxed(),
            cursor: after,
            connection,
        }
    }

    /// Changes of the connection: none before the first attempt to connect. They happen while the stream is read.
    pub(crate) fn connection(&self) -> watch::Receiver<Option<Connection>> {
        self.connection.clone()
    }

    /// The cursor of the last event that was read: pass it as `after` to resume from here.
    pub fn cursor(&self) -> Seq {
        self.cursor
    }
}

impl Stream for EventStream {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.events.poll_next_unpin(cx));
        if let Some(Ok(event)) = &item {
            self.cursor = event.seq;
        }
        Poll::Ready(item)
    }
}

struct Reader {
    connected: watch::Sender<Option<Connection>>,
    http: Arc<Http>,
    path: String,
    /// The run that is followed: the stream ends with it.
    run: Option<RunId>,
    cursor: Seq,
    connection: Option<(Response, Decoder)>,
    backoff: Backoff,
    away_since: Option<Instant>,
    over: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<Event, Error>> {
        while !self.over {
            match self.advance().await {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => {}
                Err(error) if self.may_come_back(&error) => {
                    // A stream that was cut off is not lost before the gateway has refused another one.
                    if self.connection.take().is_none() {
                        self.report(Connection::lost(&error));
                    }
                    let wait = self.backoff.step();
                    tracing::debug!(path = self.path, cursor = self.cursor.0, ?wait, %error, "the event stream was disconnected");
                    tokio::time::sleep(wait).await;
                }
                Err(error) => {
                    self.over = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    fn report(&self, connection: Connection) {
        self.connected.send_if_modified(|known| {
            let is_new = !known.as_ref().is_some_and(|known| known.is_like(&connection));
            if is_new {
                *known = Some(connection);
            }
            is_new
        });
    }

    fn may_come_back(&mut self, error: &Error) -> bool {
        let since = self.away_since.get_or_insert_with(Instant::now);
        error.is_passing() && since.elapsed() < AWAY_MAX
    }

    /// One step: connects, or reads the next bytes. Returns an event when one is complete.
    async fn advance(&mut self) -> Result<Option<Event>, Error> {
        let Some((response, decoder)) = &mut self.connection else {
            return self.connect().await.map(|()| None);
        };
        while let Some(data) = decoder.next_event() {
            // An error that ends the stream has no place in it: the next connection is told why.
            if !Event::is_placed(&data) {
                continue;
            }
            let event = Event::read(&data).map_err(|error| Error::Protocol(error.to_string()))?;
            // Guards against a server that repeats events.
            if event.seq > self.cursor {
                self.cursor = event.seq;
                self.over = self.run.is_some() && matches!(event.body, Some(kernel::Event::RunFinish(_)));
                return Ok(Some(event));
            }
        }
        match response.chunk().await {
            Ok(Some(bytes)) => {
                // Reset only after bytes arrived: a gateway that accepts and disconnects at once must not be
                // asked again at once.
                self.backoff = Backoff::default();
                decoder
                    .push(&bytes)
                    .map_err(|_| Error::Protocol("an event is longer than 16 MiB".into()))?;
            }
            // Whether it ended in order or not: the run has not ended, so reconnect.
            Ok(None) => return Err(self.http.unreachable("the stream ended".into())),
            Err(error) => return Err(self.http.unreachable(error)),
        }
        Ok(None)
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let request = self
            .http
            .request(Method::GET, &self.path)
            .header(ACCEPT, "text/event-stream")
            .header(LAST_EVENT_ID, self.cursor.0.to_string());
        let response = self.http.send_request(request, RetryPolicy::Once).await?;
        // A gateway that answers is available, however long it has no events.
        self.away_since = None;
        self.report(Connection::Up);
        if response.status() == StatusCode::NO_CONTENT {
            self.over = true;
        } else {
            self.connection = Some((response, Decoder::default()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, Scripted};

    fn reader(gateway: &Scripted, away_since: Option<Instant>) -> Reader {
        Reader {
            connected: watch::channel(None).0,
            http: gateway.client().http().clone(),
            path: "v1/events".into(),
            run: None,
            cursor: Seq::default(),
            connection: None,
            backoff: Backoff::default(),
            away_since,
            over: false,
        }
    }

    #[tokio::test]
    async fn a_connection_that_stands_ends_the_time_away_also_without_an_event() {
        let gateway = Scripted::start([Reply::events(": beat\n\n")]);
        let mut reader = reader(&gateway, Instant::now().checked_sub(AWAY_MAX));
        reader.advance().await.unwrap();
        let cut = loop {
            match reader.advance().await {
                Ok(event) => assert_eq!(event, None),
                Err(error) => break error,
            }
        };
        assert!(reader.may_come_back(&cut));
    }

    #[tokio::test]
    async fn a_gateway_that_fails_is_asked_again_and_one_that_refuses_is_not() {
        let fails = Reply::json(500, r#"{"status":500,"code":"INTERNAL","detail":"a bug"}"#);
        let refuses = Reply::json(403, r#"{"status":403,"code":"FORBIDDEN","detail":"no"}"#);
        let gateway = Scripted::start([fails, refuses]);
        let mut reader = reader(&gateway, None);
        let failed = reader.advance().await.unwrap_err();
        assert!(reader.may_come_back(&failed));
        let refused = reader.advance().await.unwrap_err();
        assert!(!reader.may_come_back(&refused));
    }
}
