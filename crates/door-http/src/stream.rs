//! Event streams: one HTTP body that an async function writes, one frame for all that is ready.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http_body::Frame;
use std::convert::Infallible;
use toolgate_engine::feed::{Batch, End, Scope, Subscription};
use toolgate_kernel::event::{Event, Seq, Status};
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::view::{Audience, view};

use crate::Shared;
use crate::auth::Principal;
use crate::events::{Tail, write_event};
use crate::problem::Refusal;

/// A frame is sent when it has grown to this, even when more is ready.
const FRAME_BYTES: usize = 32 * 1024;
/// How soon a client that was cut comes back, in milliseconds.
const RETRY_MS: u32 = 1000;

/// What to stream, to whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follow {
    /// Who reads.
    pub who: Principal,
    /// What.
    pub scope: Scope,
    /// Where it happens.
    pub space: SpaceId,
    /// From where on.
    pub after: Seq,
    /// Until when.
    pub until: Until,
}

/// When a stream ends by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Until {
    /// When the run has ended; a space's stream never does.
    End,
    /// Also when the run waits for a client or a person.
    Pause,
    /// At this place, where the run waits already.
    PausedAt(Seq),
}

/// Answers with the events that `follow` asks for.
pub(crate) async fn stream(door: &Shared, follow: Follow) -> Result<Response, Refusal> {
    let events = door.engine.subscribe(follow.scope, follow.after).await?;
    let slot = Arc::new(Slot::default());
    let writer = write(door.clone(), follow, events, Frames::new(slot.clone()));
    let body = axum::body::Body::new(EventBody {
        writer: Some(Box::pin(writer)),
        slot,
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
    Ok((headers, body).into_response())
}

/// Writes events until there are no more, the reader is cut, or the gateway stops.
async fn write(door: Shared, follow: Follow, mut events: Subscription, mut frames: Frames) {
    let heartbeat = door.settings.heartbeat;
    let mut beat = pin!(tokio::time::sleep(heartbeat));
    let mut stopped = pin!(door.settings.stop.cancelled());
    let mut page = Page::new(follow);
    while !page.is_over() {
        let mut next = pin!(events.next());
        let mut ready = Poll::Pending;
        if !frames.is_empty() {
            ready = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
        }
        let batch = match ready {
            Poll::Ready(batch) => batch,
            Poll::Pending => {
                frames.flush().await;
                loop {
                    tokio::select! {
                        biased;
                        batch = &mut next => break batch,
                        () = &mut beat => {
                            if !door.still_lets(&follow).await {
                                return frames.part("no longer allowed").await;
                            }
                            frames.beat().await;
                            beat.as_mut().reset(tokio::time::Instant::now() + heartbeat);
                        }
                        () = &mut stopped => return frames.part("going down").await,
                    }
                }
            }
        };
        match batch {
            Ok(batch) => page.write(&batch, &mut frames.buffer),
            Err(End::Finished) => break,
            Err(End::Cut) => return frames.part("too slow, or going down").await,
        }
        if frames.buffer.len() >= FRAME_BYTES {
            frames.flush().await;
        }
    }
    frames.flush().await;
}

impl crate::Door {
    /// Whether the reader of a stream may go on: a user's token runs out, a member may be taken out.
    async fn still_lets(&self, follow: &Follow) -> bool {
        let Some(user) = follow.who.user else {
            return true;
        };
        let in_time = self.engine.clock().now() < user.expires;
        // A store that does not answer now is no reason to cut a reader who was let in.
        in_time && self.is_member(&follow.who, follow.space).await.unwrap_or(true)
    }
}

/// Turns batches into text and watches for the end.
struct Page {
    follow: Follow,
    audience: Audience,
    cursor: Seq,
    paused: bool,
    tail: Tail,
}

impl Page {
    fn new(follow: Follow) -> Self {
        let audience = follow.who.audience();
        Self {
            follow,
            audience,
            cursor: follow.after,
            paused: false,
            tail: Tail::default(),
        }
    }
    fn write(&mut self, batch: &Batch, out: &mut Vec<u8>) {
        self.tail.set(batch.run(), self.follow.space, batch.time());
        for (seq, event) in batch.placed() {
            if seq <= self.cursor {
                continue;
            }
            self.cursor = seq;
            if let Event::RunStatus(moved) = event {
                self.paused = matches!(moved.status, Status::WaitingTool | Status::WaitingApproval);
            }
            if let Some(seen) = view(event, self.audience) {
                write_event(out, seq, &seen, &self.tail);
            }
        }
    }
    fn is_over(&self) -> bool {
        match self.follow.until {
            Until::End => false,
            Until::Pause => self.paused,
            Until::PausedAt(place) => self.paused || self.cursor >= place,
        }
    }
}

/// Text on its way to the reader.
struct Frames {
    buffer: Vec<u8>,
    /// Something was sent since the last heartbeat.
    lively: bool,
    slot: Arc<Slot>,
}

impl Frames {
    fn new(slot: Arc<Slot>) -> Self {
        Self {
            buffer: Vec::new(),
            lively: false,
            slot,
        }
    }
    fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
    /// Gives what is written to the connection and goes on when it has taken it.
    async fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        self.slot.put(Bytes::copy_from_slice(&self.buffer));
        self.buffer.clear();
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
    }
    /// Says that the stream lives, unless something else said so.
    async fn beat(&mut self) {
        if !self.lively {
            self.buffer.extend_from_slice(b":\n\n");
            self.flush().await;
        }
        self.lively = false;
    }
    /// The last words of a stream that did not end by itself.
    async fn part(&mut self, why: &str) {
        self.buffer.extend_from_slice(
            format!(": {why}; come back with your cursor\nretry: {RETRY_MS}\n\n").as_bytes(),
        );
        self.flush().await;
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

/// A body whose frames come from an async function, polled only when the connection has room: a slow reader
/// slows its own writer and nothing else.
struct EventBody {
    writer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    slot: Arc<Slot>,
}

impl http_body::Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(writer) = &mut self.writer else {
            return Poll::Ready(None);
        };
        if writer.as_mut().poll(cx).is_ready() {
            self.writer = None;
        }
        match self.slot.take() {
            Some(frame) => Poll::Ready(Some(Ok(Frame::data(frame)))),
            None if self.writer.is_none() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}
