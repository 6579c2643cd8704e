//! Reads a reply from its stream: decodes events, lets the vendor's dialect say what they mean, keeps pace.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use toolgate_engine::model::{Ending, ModelError, ReplySink};

use crate::ModelSettings;
use crate::body::{Body, Cut};
use crate::failure::{permanent, retryable};
use crate::reply::Reply;
use crate::sse::Decoder;

/// Reads that follow each other faster than this come from a model that is worth waiting for.
const FAST: Duration = Duration::from_millis(1);
/// Most bytes of one stream, whatever they say.
const STREAM_BYTES_MAX: usize = 512 << 20;

/// How one vendor tells a reply.
pub(crate) trait Dialect: Send {
    /// Takes one event; `true` when the vendor says that the stream is over.
    fn event(&mut self, data: &[u8], reply: &mut Reply<'_>) -> Result<bool, ModelError>;
    /// How the reply ended, if what came is a whole one.
    fn ending(&mut self, reply: &mut Reply<'_>) -> Option<Ending>;
}

/// A reply that is being read.
pub(crate) struct Reading<'s, D> {
    decoder: Decoder,
    dialect: D,
    reply: Reply<'s>,
    bytes: usize,
}

impl<'s, D: Dialect> Reading<'s, D> {
    pub(crate) fn new(dialect: D, sink: &'s mut dyn ReplySink) -> Self {
        Self {
            decoder: Decoder::default(),
            dialect,
            reply: Reply::new(sink),
            bytes: 0,
        }
    }

    /// Takes what one read brought.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.decoder.push(bytes);
    }

    /// Gives the sink what is there; the ending once the vendor says that the stream is over.
    pub(crate) fn give(&mut self) -> Result<Option<Ending>, ModelError> {
        if self.bytes > STREAM_BYTES_MAX {
            return Err(permanent("the model's stream does not end"));
        }
        let over = self.take_events();
        // What came before an error is shown, wherever the network cut the stream.
        self.reply.flush()?;
        if over? { self.end().map(Some) } else { Ok(None) }
    }

    fn take_events(&mut self) -> Result<bool, ModelError> {
        while let Some(data) = self
            .decoder
            .next_event()
            .map_err(|_| permanent("the model sent too long an event"))?
        {
            if self.dialect.event(data, &mut self.reply)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The ending when no more bytes come.
    pub(crate) fn end(&mut self) -> Result<Ending, ModelError> {
        let ending = self.dialect.ending(&mut self.reply).ok_or_else(truncated)?;
        self.reply.end()?;
        Ok(ending)
    }
}

/// Reads a whole reply.
pub(crate) async fn read<D: Dialect>(
    mut body: Body<'_>,
    settings: &ModelSettings,
    dialect: D,
    sink: &mut dyn ReplySink,
) -> Result<Ending, ModelError> {
    let mut reading = Reading::new(dialect, sink);
    let mut last = Instant::now();
    let mut silence = pin!(sleep_until(last + settings.idle_timeout));
    loop {
        let more = {
            let mut read = pin!(body.read(|bytes| reading.push(bytes)));
            // One timer for the whole reply: it is moved when it fires, not at every read.
            poll_fn(|context| {
                if let Poll::Ready(more) = read.as_mut().poll(context) {
                    return Poll::Ready(more.map_err(|Cut| truncated()));
                }
                while silence.as_mut().poll(context).is_ready() {
                    let until = last + settings.idle_timeout;
                    if until <= Instant::now() {
                        return Poll::Ready(Err(retryable(
                            "the model fell silent in the middle of its reply",
                        )));
                    }
                    silence.as_mut().reset(until);
                }
                Poll::Pending
            })
            .await?
        };
        if let Some(ending) = reading.give()? {
            body.finish().await;
            return Ok(ending);
        }
        if !more {
            return reading.end();
        }
        // Never before the first piece is out: nobody waits longer for the first word.
        if last.elapsed() < FAST && reading.reply.begun() && !settings.pace.is_zero() {
            body.pause(settings.pace).await.map_err(|Cut| truncated())?;
        }
        last = Instant::now();
    }
}

fn truncated() -> ModelError {
    retryable("the model's stream was cut before its end")
}
