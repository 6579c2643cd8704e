//! Following a space or a run from a cursor.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;
use toolgate_kernel::event::{Event, Seq};
use toolgate_kernel::id::{RunId, SpaceId};

use super::{Batch, Feed, Follower, Live};
use crate::store::{Log, LogPage, LogRange, StoreError};

/// What to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everything in a space, for ever.
    Space(SpaceId),
    /// One run, until it ends.
    Run(RunId),
}

/// Why a subscription gives no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The run has ended and everything was given.
    Finished,
    /// The reader was too slow, the store failed, or the gateway is going down: come back with the last place
    /// read.
    Cut,
}

/// The events of a space or a run after a cursor: first what is stored, then what happens, no gap, no
/// duplicate.
pub struct Subscription {
    feed: Arc<Feed>,
    store: Arc<dyn Log>,
    space: SpaceId,
    /// Only this run's events, and only until it ends.
    run: Option<RunId>,
    id: u64,
    receiver: mpsc::Receiver<Batch>,
    cursor: Seq,
    state: State,
}

enum State {
    /// More is to be read from the store once `ready` is given.
    Replay {
        ready: VecDeque<Batch>,
        ring: VecDeque<Arc<Live>>,
        read_to: Seq,
    },
    /// Once `ready` is given, waiting for what happens.
    Live { ready: VecDeque<Batch> },
    /// The run has ended.
    Finished,
}

impl Subscription {
    /// Registers now and gives everything after `cursor`.
    pub(crate) fn open(
        feed: Arc<Feed>,
        store: Arc<dyn Log>,
        space: SpaceId,
        run: Option<RunId>,
        cursor: Seq,
        backlog: usize,
    ) -> Self {
        let (id, receiver, ring) = register(&feed, space, backlog);
        let state = State::Replay {
            ready: VecDeque::new(),
            ring,
            read_to: cursor,
        };
        Self {
            feed,
            store,
            space,
            run,
            id,
            receiver,
            cursor,
            state,
        }
    }

    /// Registers now and gives only what happens from now on: for a caller that causes it next.
    pub(crate) fn from_now(feed: Arc<Feed>, store: Arc<dyn Log>, space: SpaceId, backlog: usize) -> Self {
        let (id, receiver, _) = register(&feed, space, backlog);
        Self {
            feed,
            store,
            space,
            run: None,
            id,
            receiver,
            cursor: Seq(0),
            state: State::Live {
                ready: VecDeque::new(),
            },
        }
    }

    /// Follows one run from here on, after `cursor`.
    pub(crate) fn only(mut self, run: RunId, cursor: Seq) -> Self {
        self.run = Some(run);
        self.cursor = cursor;
        self
    }

    /// The place up to which everything has been given. A batch may begin before it: ask before `next`, and
    /// leave out what is not after it.
    pub fn cursor(&self) -> Seq {
        self.cursor
    }

    /// The next events; waits for them. Safe to drop and call again.
    pub async fn next(&mut self) -> Result<Batch, End> {
        loop {
            let batch = match &mut self.state {
                State::Finished => return Err(End::Finished),
                State::Live { ready } => match ready.pop_front() {
                    Some(batch) => batch,
                    None => self.receiver.recv().await.ok_or(End::Cut)?,
                },
                State::Replay { ready, .. } => match ready.pop_front() {
                    Some(batch) => batch,
                    None => {
                        self.read_page().await?;
                        continue;
                    }
                },
            };
            if self.run.is_some() && batch.run() != self.run {
                continue;
            }
            if self.run.is_some()
                && batch
                    .placed()
                    .any(|(_, event)| matches!(event, Event::RunFinish(_)))
            {
                self.state = State::Finished;
            }
            if batch.last() <= self.cursor {
                continue;
            }
            self.cursor = batch.last();
            return Ok(batch);
        }
    }

    async fn read_page(&mut self) -> Result<(), End> {
        let State::Replay { ready, ring, read_to } = &mut self.state else {
            return Ok(());
        };
        let range = LogRange::after(*read_to);
        let page = match self.run {
            Some(run) => self.store.run_log(run, range).await,
            None => self.store.space_log(self.space, range).await,
        };
        let LogPage { entries, more, .. } = page.map_err(|_| End::Cut)?;
        if let Some(run) = self.run
            && entries.is_empty()
            && has_ended(&*self.store, run).await.map_err(|_| End::Cut)?
        {
            // Its end is at or before the cursor, and nothing follows it.
            self.state = State::Finished;
            return Ok(());
        }
        let whole = !more;
        // Looked at after the page was read: what came while reading is here, in full.
        let held = if whole {
            self.receiver.try_recv().ok()
        } else {
            None
        };
        let bound = held.as_ref().map(Batch::first);
        for entry in entries {
            *read_to = entry.last();
            while ring.front().is_some_and(|live| live.first < entry.first) {
                ready.extend(ring.pop_front().map(Batch::Live));
            }
            if bound.is_none_or(|bound| entry.first < bound) {
                ready.push_back(Batch::Stored(Arc::new(entry)));
            }
        }
        if whole {
            ready.extend(
                ring.drain(..)
                    .filter(|live| bound.is_none_or(|bound| live.first < bound))
                    .map(Batch::Live),
            );
            ready.extend(held);
            self.state = State::Live {
                ready: std::mem::take(ready),
            };
        }
        Ok(())
    }
}

/// Whether the last entry of a run says that it ended.
async fn has_ended(log: &dyn Log, run: RunId) -> Result<bool, StoreError> {
    let last = LogRange {
        limit: 1,
        ..LogRange::newest()
    };
    let page = log.run_log(run, last).await?;
    let mut events = page.entries.iter().flat_map(|entry| &entry.events);
    Ok(events.any(|event| matches!(event, Event::RunFinish(_))))
}

fn register(
    feed: &Feed,
    space: SpaceId,
    backlog: usize,
) -> (u64, mpsc::Receiver<Batch>, VecDeque<Arc<Live>>) {
    let (sender, receiver) = mpsc::channel(backlog);
    feed.with(space, |lane| {
        let id = lane.next_follower;
        lane.next_follower += 1;
        lane.followers.push(Follower { id, sender });
        (id, receiver, lane.ring.iter().cloned().collect())
    })
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.feed.with(self.space, |lane| {
            lane.followers.retain(|follower| follower.id != self.id)
        });
    }
}
