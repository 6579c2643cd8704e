//! Reads a reply from its SSE stream: decodes events, lets the vendor's dialect interpret them, and paces
//! reads from fast models.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use toolgate_engine::model::{Ending, ModelError, ReplySink};

use crate::ModelSettings;
use crate::body::{Body, Disconnected};
use crate::failure::{no_stream, permanent, retryable};
use crate::reply::Reply;
use crate::sse::{Decoder, EVENT_BYTES_MAX};

/// A model whose reads follow each other faster than this is paced.
const FAST: Duration = Duration::from_millis(1);
/// Most bytes of a body without events that are kept to be shown.
const BEGINNING_BYTES_MAX: usize = 1 << 10;
/// Most bytes of one stream, including events without content.
const STREAM_BYTES_MAX: usize = 512 << 20;

/// Parser of one vendor's stream.
pub(crate) trait Dialect: Send {
    /// Handles one event; `true` if it ends the stream.
    fn event(&mut self, data: &[u8], reply: &mut Reply<'_>) -> Result<bool, ModelError>;
    /// How the reply ended; `None` if it is incomplete.
    fn ending(&mut self, reply: &mut Reply<'_>) -> Option<Ending>;
}

/// Where a stream comes from, for error messages.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'s> {
    /// Host and port of the server.
    pub host: &'s str,
    /// The media type of its response; empty when it has none.
    pub content_type: &'s str,
}

/// A reply that is being read.
pub(crate) struct Reading<'s, D> {
    decoder: Decoder,
    dialect: D,
    reply: Reply<'s>,
    /// None for a recorded stream.
    origin: Option<Origin<'s>>,
    bytes: usize,
    /// The beginning of the body, as long as no event was found in it.
    beginning: Option<Vec<u8>>,
}

impl<'s, D: Dialect> Reading<'s, D> {
    pub(crate) fn new(dialect: D, sink: &'s mut dyn ReplySink, origin: Option<Origin<'s>>) -> Self {
        Self {
            decoder: Decoder::default(),
            dialect,
            reply: Reply::new(sink),
            origin,
            bytes: 0,
            beginning: Some(Vec::new()),
        }
    }

    /// Appends the bytes of one read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        if let Some(beginning) = &mut self.beginning {
            let room = BEGINNING_BYTES_MAX - beginning.len();
            beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        self.decoder.push(bytes);
    }

    /// Passes complete events on to the sink, and returns the ending once the stream is over.
    pub(crate) fn deliver(&mut self) -> Result<Option<Ending>, ModelError> {
        if self.bytes > STREAM_BYTES_MAX {
            return Err(permanent(format!(
                "the model's stream is longer than {} MiB",
                STREAM_BYTES_MAX >> 20
            )));
        }
        let over = self.decode_events();
        // Flushed before an error is returned: readers see what came before it, however the network split it.
        self.reply.flush()?;
        if over? { self.end().map(Some) } else { Ok(None) }
    }

    fn decode_events(&mut self) -> Result<bool, ModelError> {
        while let Some(data) = self.decoder.next_event().map_err(|_| {
            permanent(format!(
                "the model sent an event longer than {} MiB",
                EVENT_BYTES_MAX >> 20
            ))
        })? {
            self.beginning = None;
            if self.dialect.event(data, &mut self.reply)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The ending when no more bytes come. Fails if the reply is incomplete.
    pub(crate) fn end(&mut self) -> Result<Ending, ModelError> {
        let Some(ending) = self.dialect.ending(&mut self.reply) else {
            return Err(self.incomplete());
        };
        self.reply.end()?;
        Ok(ending)
    }

    /// The error for a body that is over before the reply is: one that was cut, or one that never was a stream.
    fn incomplete(&self) -> ModelError {
        match (&self.beginning, self.origin) {
            (Some(beginning), Some(origin))
                if !beginning.is_empty() && origin.content_type != "text/event-stream" =>
            {
                no_stream(origin.host, origin.content_type, beginning)
            }
            (_, origin) => truncated(origin),
        }
    }
}

/// Reads a whole reply.
pub(crate) async fn read<D: Dialect>(
    mut body: Body<'_>,
    origin: Origin<'_>,
    settings: &ModelSettings,
    dialect: D,
    sink: &mut dyn ReplySink,
) -> Result<Ending, ModelError> {
    let mut reading = Reading::new(dialect, sink, Some(origin));
    let mut last = Instant::now();
    let mut silence = pin!(sleep_until(last + settings.idle_timeout));
    loop {
        let more = {
            let mut read = pin!(body.read(|bytes| reading.push(bytes)));
            // One timer for the whole reply: it is moved when it fires, because resetting it at every read is
            // costly.
            poll_fn(|context| {
                if let Poll::Ready(more) = read.as_mut().poll(context) {
                    return Poll::Ready(more.map_err(|Disconnected| truncated(Some(origin))));
                }
                while silence.as_mut().poll(context).is_ready() {
                    let until = last + settings.idle_timeout;
                    if until <= Instant::now() {
                        return Poll::Ready(Err(retryable(format!(
                            "{} sent nothing for {:?} in the middle of its reply, vendors.idle_timeout sets the limit",
                            origin.host, settings.idle_timeout
                        ))));
                    }
                    silence.as_mut().reset(until);
                }
                Poll::Pending
            })
            .await?
        };
        if let Some(ending) = reading.deliver()? {
            body.finish().await;
            return Ok(ending);
        }
        if !more {
            return reading.end();
        }
        // Not before the first delta is out: pacing must not delay the first token.
        if last.elapsed() < FAST && reading.reply.begun() && !settings.pace.is_zero() {
            body.pause(settings.pace)
                .await
                .map_err(|Disconnected| truncated(Some(origin)))?;
        }
        last = Instant::now();
    }
}

fn truncated(origin: Option<Origin<'_>>) -> ModelError {
    let from = origin.map(|origin| format!(" from {}", origin.host));
    retryable(format!(
        "the model's stream{} was cut before its end",
        from.unwrap_or_default()
    ))
}
