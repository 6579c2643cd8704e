//! Event streams: one HTTP body that an async function writes, one frame for all that is ready.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use http_body::Frame;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use toolgate_access::{AccessError, Pass, Principal, Standing};
use toolgate_engine::feed::{Batch, End, Subscription};
use toolgate_engine::store::StoreError;
use toolgate_kernel::event::{Event, Seq};
use toolgate_kernel::id::{MessageId, RunId, SpaceId};
use toolgate_kernel::tool::Decider;

use crate::Shared;
use crate::edge::{RUN_ID, SPACE_ID};
use crate::meter::Metered;
use crate::problem::Refusal;

/// A frame is sent when it has grown to this, even when more is ready. A larger one, of a large event, is given to the
/// connection in pieces of this size, and is counted among the bytes in flight until the last is taken.
const FRAME_BYTES: usize = 32 * 1024;

/// The right to one open stream, counted from here until the stream has ended.
#[derive(Debug)]
pub struct OpenStream {
    _share: Metered,
}

impl OpenStream {
    /// Refuses a request that would open one stream too many, before it changes anything.
    pub fn reserve(door: &Shared, who: &Principal) -> Result<Self, Refusal> {
        let mut share = door.streams.open(Some(who));
        match share.take(1) {
            Ok(()) => Ok(Self { _share: share }),
            Err(_) => {
                let max = door.streams.limits().user;
                let detail = format!(
                    "{max} streams are open already, which is the most for one user; close one, or see quotas.streams"
                );
                Err(Refusal::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "TOO_MANY_STREAMS",
                    detail,
                ))
            }
        }
    }
}

/// What to stream, to whom.
#[derive(Debug, Clone)]
pub struct Follow {
    /// Principal that reads the stream.
    pub who: Principal,
    /// One run, or all of a space.
    pub run: Option<RunId>,
    /// Space whose events are read.
    pub space: SpaceId,
    /// Cursor: events after this one are sent.
    pub after: Seq,
    /// Until when.
    pub until: Until,
}

/// When a stream ends by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Until {
    /// When the run has ended; a space's stream never does.
    End,
    /// Also when the run waits for a client or a person. What it waited for before `mark` does not count.
    Pause(Mark),
}

/// What tells that the stream has come to what its reader wants to see.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mark {
    /// This message.
    Said(MessageId),
    /// Whatever moves the run.
    Moved,
    /// The end of what is stored.
    Present,
    /// The first status after this place. A run whose child was answered tells one, and its row may say until then that
    /// it waits.
    StatusAfter(Seq),
}

impl Follow {
    /// The response that streams these events as `page` writes them. Opening a stream passes the same check as going
    /// on with one: this is the only way to a stream.
    pub async fn respond(
        self,
        door: &Shared,
        open: OpenStream,
        events: Subscription,
        page: impl Page,
    ) -> Result<Response, Refusal> {
        let pass = door.access.admit(&self.who, self.space).await?;
        if pass.reader() != page.reader() {
            return Err(AccessError::Unavailable(ROLE_CHANGED.into()).into());
        }
        let slot = Arc::new(Slot::default());
        let frames = Frames::new(slot.clone(), door.in_flight.open(Some(&self.who)));
        let writer = write(door.clone(), pass, events, page, frames);
        let body = axum::body::Body::new(EventBody {
            writer: Some(Box::pin(writer)),
            slot,
            rest: Bytes::new(),
            _open: open,
        });
        let text = |id: String| HeaderValue::try_from(id).expect("an id is ASCII");
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            // Asks proxies not to hold events back.
            (
                HeaderName::from_static("x-accel-buffering"),
                HeaderValue::from_static("no"),
            ),
            (SPACE_ID, text(self.space.to_string())),
        ];
        let run = self.run.map(|run| [(RUN_ID, text(run.to_string()))]);
        let run = run.into_iter().flatten().collect::<HeaderMap>();
        Ok((headers, run, body).into_response())
    }
}

/// Tells of events in the words of a protocol.
pub trait Page: Send + 'static {
    /// For whom it writes.
    fn reader(&self) -> &Decider;
    /// The first words, before any event.
    fn open(&mut self, _out: &mut Vec<u8>) {}
    /// Writes what the reader learns of these.
    fn write(&mut self, batch: &Batch, out: &mut Vec<u8>);
    /// Whether the run waits, as far as was told.
    fn watch(&mut self) -> &mut Watch;
    /// Everything was told, though the run may go on.
    fn is_over(&mut self) -> bool {
        self.watch().is_over()
    }
    /// The last words when everything was told.
    fn close(&mut self, _out: &mut Vec<u8>) {}
    /// The last words when the reader has to come back; an error breaks the connection.
    fn part(&mut self, why: &str, out: &mut Vec<u8>) -> Result<(), Cut>;
    /// The last words when the reader may read no further: an error with the code [`ACCESS_ENDED`].
    fn end_access(&mut self, out: &mut Vec<u8>);
}

/// What a reader is told whose role in the space has changed.
const ROLE_CHANGED: &str = "your role in the space has changed";
/// Reason given when the store cannot confirm the reader's access; the client may reconnect.
const NO_STORE: &str = "the store does not answer";
/// What a reader is told that takes too little of what waits for it.
const TOO_SLOW: &str = "too slow: too much waits for you";
/// What a reader is told whose subscription was cut.
const CUT: &str = "cut: too slow, or the gateway could not read on or is going down";
/// Code of the error that ends the stream of a reader whose access has ended.
pub const ACCESS_ENDED: &str = "ACCESS_ENDED";

/// A stream broke off.
#[derive(Debug, thiserror::Error)]
#[error("the stream broke off: {0}")]
pub struct Cut(pub String);

/// Writes events until there are no more, the reader is cut, or the gateway stops.
async fn write(
    door: Shared,
    pass: Pass,
    events: Subscription,
    mut page: impl Page,
    frames: Frames,
) -> Result<(), Cut> {
    let mut writing = Writing {
        beat: Box::pin(tokio::time::sleep(door.settings.heartbeat)),
        stopped: Box::pin(door.settings.stop.clone().cancelled_owned()),
        door,
        pass,
        events,
        frames,
        checked_read: None,
    };
    page.open(&mut writing.frames.buffer);
    let told = writing.tell(&mut page).await;
    let mut frames = writing.frames;
    let ending = match told {
        Ok(()) => {
            page.close(&mut frames.buffer);
            Ok(())
        }
        Err(Leave::Access(Standing::RoleChanged)) => page.part(ROLE_CHANGED, &mut frames.buffer),
        Err(Leave::Access(Standing::Unknown)) => page.part(NO_STORE, &mut frames.buffer),
        Err(Leave::Access(Standing::Holds | Standing::Ended)) => {
            page.end_access(&mut frames.buffer);
            Ok(())
        }
        Err(Leave::Part(why)) => page.part(why, &mut frames.buffer),
    };
    frames.flush().await;
    ending
}

/// Why a stream ends before its reader was told everything.
enum Leave {
    /// The access that it began with does not hold any more.
    Access(Standing),
    /// The reader has to come back, for this reason.
    Part(&'static str),
}

/// A stream under way.
struct Writing {
    door: Shared,
    pass: Pass,
    events: Subscription,
    frames: Frames,
    /// When the reader's access is checked again, and a sign of life is sent.
    beat: Pin<Box<Sleep>>,
    /// The gateway stops.
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Number of the last store read after which access was checked.
    checked_read: Option<u64>,
}

impl Writing {
    async fn tell(&mut self, page: &mut impl Page) -> Result<(), Leave> {
        while !page.is_over() {
            let Some(batch) = self.next(page).await? else {
                continue;
            };
            self.check_access(&batch).await?;
            match batch {
                Ok(batch) => page.write(&batch, &mut self.frames.buffer),
                Err(End::Finished) => break,
                Err(End::Cut) => return Err(Leave::Part(CUT)),
            }
            if !self.frames.has_room() {
                self.frames.buffer = Vec::new();
                return Err(Leave::Part(TOO_SLOW));
            }
            if self.frames.buffer.len() >= FRAME_BYTES {
                self.frames.flush().await;
            }
        }
        Ok(())
    }

    /// The next events. None where the run's row had to be read meanwhile, which may have ended the stream.
    async fn next(&mut self, page: &mut impl Page) -> Result<Option<Result<Batch, End>>, Leave> {
        let mut next = pin!(self.events.next());
        if let Poll::Ready(batch) = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await {
            return Ok(Some(batch));
        }
        self.frames.flush().await;
        if page.watch().is_unsure() {
            let known = page.watch().look_up(&self.door).await;
            return known.map(|()| None).map_err(|_| Leave::Part(NO_STORE));
        }
        loop {
            let standing = tokio::select! {
                biased;
                batch = &mut next => return Ok(Some(batch)),
                () = &mut self.beat => {
                    let standing = holds_unless_told(&self.door, &self.pass).await;
                    if standing == Standing::Holds {
                        self.frames.beat().await;
                        self.beat.as_mut().reset(Instant::now() + self.door.settings.heartbeat);
                    }
                    standing
                }
                () = self.pass.doubt() => self.door.access.standing_in_doubt(&self.pass).await,
                () = &mut self.stopped => return Err(Leave::Part("going down")),
            };
            if standing != Standing::Holds {
                return Err(Leave::Access(standing));
            }
        }
    }

    /// Checks the reader's access before it is told more, when that is due: events may come so fast that the stream never has to
    /// wait for one.
    async fn check_access(&mut self, batch: &Result<Batch, End>) -> Result<(), Leave> {
        let is_late = Instant::now() >= self.beat.deadline();
        if is_late {
            let heartbeat = self.door.settings.heartbeat;
            self.beat.as_mut().reset(Instant::now() + heartbeat);
        }
        // While nobody may have told of an end, the store is asked again whenever more was read from it.
        let last_read = Some(self.events.reads());
        let is_unsure = self.checked_read != last_read
            && matches!(batch, Ok(Batch::Stored(_)))
            && self.door.engine.bus_health().loses_notices();
        let standing = if self.pass.is_doubtful() || is_unsure {
            // Access may have been revoked. If the store cannot tell, the stream is cut and the client reconnects.
            self.door.access.standing_in_doubt(&self.pass).await
        } else if is_late {
            holds_unless_told(&self.door, &self.pass).await
        } else {
            return Ok(());
        };
        if standing != Standing::Holds {
            return Err(Leave::Access(standing));
        }
        self.checked_read = last_read;
        Ok(())
    }
}

/// Whether access still holds. A store that does not answer now is no reason to cut a reader who was let in.
async fn holds_unless_told(door: &Shared, pass: &Pass) -> Standing {
    door.access.standing(pass).await.unwrap_or(Standing::Holds)
}

/// Reads along until the run waits.
pub struct Watch {
    run: Option<RunId>,
    cursor: Seq,
    pause: Pause,
}

/// Whether the run waits, as far as the stream has told.
enum Pause {
    /// It does not matter.
    Ignored,
    /// Nobody knows yet: the mark has not come.
    Unsure(Mark),
    /// It does, or it does not.
    Known(bool),
    /// It does, or it does not, when everything up to this place has been read.
    From(Seq, bool),
}

impl Watch {
    /// Reads along with `follow`.
    pub fn new(follow: &Follow) -> Self {
        let pause = match follow.until {
            Until::End => Pause::Ignored,
            Until::Pause(Mark::StatusAfter(place)) => Pause::From(place, false),
            Until::Pause(mark) => Pause::Unsure(mark),
        };
        Self {
            run: follow.run,
            cursor: follow.after,
            pause,
        }
    }

    /// Takes the next event; false for one that was read before.
    pub fn sees(&mut self, seq: Seq, event: &Event) -> bool {
        if seq <= self.cursor {
            return false;
        }
        self.cursor = seq;
        match (&self.pause, event) {
            (Pause::Unsure(Mark::Said(mine)), Event::Said(said)) if said.message.message_id == *mine => {
                self.pause = Pause::Known(false);
            }
            (Pause::From(place, _), Event::RunStatus(_)) if seq <= *place => {}
            (Pause::Unsure(Mark::Moved) | Pause::Known(_) | Pause::From(..), Event::RunStatus(moved)) => {
                self.pause = Pause::Known(moved.status.asks());
            }
            _ => {}
        }
        true
    }

    fn is_unsure(&self) -> bool {
        matches!(self.pause, Pause::Unsure(_))
    }

    /// The stream has to wait and the mark has not come: the run's row knows.
    async fn look_up(&mut self, door: &Shared) -> Result<(), StoreError> {
        let row = match self.run {
            Some(run) => door.engine.run(run).await?,
            None => None,
        };
        self.pause = match row {
            Some(row) => Pause::From(row.version, row.status.asks()),
            None => Pause::Known(false),
        };
        Ok(())
    }

    /// Whether the stream has come to where the run waits.
    pub fn is_over(&self) -> bool {
        match self.pause {
            Pause::Ignored | Pause::Unsure(_) => false,
            Pause::Known(waits) => waits,
            Pause::From(place, waits) => waits && self.cursor >= place,
        }
    }
}

/// Values are passed on as they were written, line breaks between their members included. Inside of JSON
/// strings there are none, so a space is as good, and the event stays on one line.
pub fn on_one_line(mut rest: &mut [u8]) {
    while let Some(found) = memchr::memchr2(b'\n', b'\r', rest) {
        rest[found] = b' ';
        rest = &mut rest[found + 1..];
    }
}

/// Text on its way to the reader.
struct Frames {
    buffer: Vec<u8>,
    /// Something was sent since the last heartbeat.
    lively: bool,
    slot: Arc<Slot>,
    /// The part of the bytes in flight that a large frame takes.
    share: Metered,
}

impl Frames {
    fn new(slot: Arc<Slot>, share: Metered) -> Self {
        Self {
            buffer: Vec::new(),
            lively: false,
            slot,
            share,
        }
    }
    /// Gives what is written to the connection and goes on when it has taken it.
    async fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        // A large buffer is given away, so that it is not in memory twice.
        let frame = match self.buffer.len() > 2 * FRAME_BYTES {
            true => Bytes::from(std::mem::take(&mut self.buffer)),
            false => Bytes::copy_from_slice(&self.buffer),
        };
        self.buffer.clear();
        self.slot.put(frame);
        self.lively = true;
        // The connection takes the frame and polls again: no wake-up is needed.
        poll_fn(|_| {
            if self.slot.is_free() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        self.share.give_back();
    }
    /// Whether what is written may wait in memory for the reader.
    fn has_room(&mut self) -> bool {
        self.buffer.len() <= 2 * FRAME_BYTES || self.share.take(self.buffer.len()).is_ok()
    }
    /// Says that the stream lives, unless something else said so.
    async fn beat(&mut self) {
        if !self.lively {
            self.buffer.extend_from_slice(b":\n\n");
            self.flush().await;
        }
        self.lively = false;
    }
}

/// Where the writer leaves a frame for the connection.
#[derive(Default)]
struct Slot(Mutex<Option<Bytes>>);

impl Slot {
    fn put(&self, frame: Bytes) {
        *self.lock() = Some(frame);
    }
    fn take(&self) -> Option<Bytes> {
        self.lock().take()
    }
    fn is_free(&self) -> bool {
        self.lock().is_none()
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Writer = Pin<Box<dyn Future<Output = Result<(), Cut>> + Send>>;

/// A body whose frames come from an async function, polled only when the connection has room: a slow reader
/// slows its own writer and nothing else.
struct EventBody {
    writer: Option<Writer>,
    slot: Arc<Slot>,
    /// What is left of the frame that was taken from the slot.
    rest: Bytes,
    _open: OpenStream,
}

impl http_body::Body for EventBody {
    type Data = Bytes;
    type Error = Cut;
    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if self.rest.is_empty() {
            let Some(writer) = &mut self.writer else {
                return Poll::Ready(None);
            };
            let ended = writer.as_mut().poll(cx);
            if ended.is_ready() {
                self.writer = None;
            }
            match (self.slot.take(), ended) {
                (Some(frame), _) => self.rest = frame,
                (None, Poll::Ready(Err(cut))) => return Poll::Ready(Some(Err(cut))),
                (None, Poll::Ready(Ok(()))) => return Poll::Ready(None),
                (None, Poll::Pending) => return Poll::Pending,
            }
        }
        let piece = self.rest.len().min(FRAME_BYTES);
        let piece = self.rest.split_to(piece);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}
