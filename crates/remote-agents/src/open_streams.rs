//! Streams of tasks that stay open between two looks at a task, so that nothing the agent says is missed and an agent
//! that ends with its connection is left alone. What is not read waits in the connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolgate_fair::{Limits, Permit, Queue, Share, Shares, Spare};
use toolgate_kernel::id::CallId;

use crate::event_stream::EventStream;

/// Streams that are open on one node at the same time; a part of them for one project and one user.
const STREAMS: usize = 256;
/// How long a stream is kept that nobody looks at: its call may have ended, or moved to another node.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// A stream, and the right to have it open.
pub(crate) struct OpenStream {
    pub events: EventStream,
    _permit: Permit,
}

impl OpenStream {
    pub fn new(events: EventStream, permit: Permit) -> Self {
        Self {
            events,
            _permit: permit,
        }
    }
}

/// The streams that nobody reads at the moment, by call.
pub(crate) struct OpenStreams {
    kept: Mutex<HashMap<CallId, (Instant, OpenStream)>>,
    turns: Arc<Queue>,
}

impl Default for OpenStreams {
    fn default() -> Self {
        let none = Shares {
            all: 0,
            tenant: 0,
            user: 0,
        };
        Self {
            kept: Mutex::default(),
            turns: Queue::new(Limits {
                running: Shares::of(STREAMS),
                // Whoever finds no room asks again and again instead of streaming.
                waiting: none,
                waiting_bytes: Shares::UNLIMITED,
                spare: Spare::NONE,
            }),
        }
    }
}

impl OpenStreams {
    /// The right to open one more stream; none when there are too many.
    pub async fn permit(&self, share: Share) -> Option<Permit> {
        self.turns.turn(share, 0).await.ok()
    }

    /// Keeps a stream until the next look at its task.
    pub fn keep(&self, call: CallId, stream: OpenStream) {
        let mut kept = self.lock();
        kept.retain(|_, (since, _)| since.elapsed() < KEPT_FOR);
        kept.insert(call, (Instant::now(), stream));
    }

    /// Takes the stream of a call's task.
    pub fn take(&self, call: CallId) -> Option<OpenStream> {
        self.lock().remove(&call).map(|(_, stream)| stream)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, (Instant, OpenStream)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
