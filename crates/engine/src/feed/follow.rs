//! Following a space or a run from a cursor.

use std::collections::VecDeque;
use std::sync::Arc;

use toolgate_kernel::event::{Entry, Event, Seq};
use toolgate_kernel::id::{RunId, SpaceId};

use super::backlog::{Backlog, BacklogLimits};
use super::topic::{Item, Registered};
use super::{Batch, Feed, Live};
use crate::store::{Log, LogPage, LogRange, StoreError};

/// Stored bytes that are read at once for a reader, which may take its time with them.
const READ_BYTES: usize = 128 << 10;

/// Which events a reader follows.
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
    backlog: Arc<Backlog>,
    /// Place of the last event that was given.
    cursor: Seq,
    /// Everything stored up to here was given, is in `ready`, or belongs to another run.
    read_to: Seq,
    /// The store has entries up to here. Those after `read_to` come through the backlog, or were stored before the
    /// follower registered and are read once the backlog is empty.
    owed: Seq,
    ready: VecDeque<Batch>,
    /// Number of reads so far, of the store or of the backlog.
    reads: u64,
    state: State,
}

enum State {
    /// The store is read to its end, and then what was streamed before the follower came.
    Replay {
        ring: VecDeque<Arc<Live>>,
        /// The last place this node knew of when the follower registered.
        known: Seq,
    },
    /// The store is read up to a place that was heard of before what stands there; `then` follows.
    CatchUp { until: Seq, then: Option<Batch> },
    /// Waiting for what happens.
    Live,
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
        limits: BacklogLimits,
    ) -> Self {
        let Registered {
            id,
            backlog,
            ring,
            known,
            ..
        } = feed.register(space, limits);
        Self {
            feed,
            store,
            space,
            run,
            id,
            backlog,
            cursor,
            read_to: cursor,
            owed: Seq(0),
            ready: VecDeque::new(),
            reads: 0,
            state: State::Replay { ring, known },
        }
    }

    /// Registers now and gives only what happens from now on: for a caller that causes it next, and says then by
    /// [`Subscription::only`] what it wants to see.
    pub(crate) fn from_now(
        feed: Arc<Feed>,
        store: Arc<dyn Log>,
        space: SpaceId,
        limits: BacklogLimits,
    ) -> Self {
        let mut following = Self::open(feed, store, space, None, Seq(0), limits);
        following.state = State::Live;
        following
    }

    /// Follows one run from here on, after `cursor`.
    pub(crate) fn only(mut self, run: RunId, cursor: Seq) -> Self {
        self.run = Some(run);
        self.cursor = cursor;
        self.read_to = cursor;
        self
    }

    /// The place up to which everything has been given. A batch may begin before it: ask before `next`, and
    /// leave out what is not after it.
    pub fn cursor(&self) -> Seq {
        self.cursor
    }

    /// Number of reads so far. Batches returned without a change of this number came from one read.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// The next events; waits for them. Safe to drop and call again.
    pub async fn next(&mut self) -> Result<Batch, End> {
        loop {
            let batch = match self.ready.pop_front() {
                Some(batch) => Some(batch),
                None => self.take().await?,
            };
            if let Some(batch) = batch.and_then(|batch| self.give(batch)) {
                return Ok(batch);
            }
        }
    }

    /// Nothing is ready: reads or hears what comes next, which may be ready then instead of given.
    async fn take(&mut self) -> Result<Option<Batch>, End> {
        self.reads += 1;
        match &self.state {
            State::Finished => Err(End::Finished),
            State::Replay { .. } => self.replay().await.map(|()| None),
            State::CatchUp { .. } => self.catch_up().await.map(|()| None),
            State::Live => Ok(match self.backlog.try_take() {
                Some(item) => self.order(item),
                None if self.owed.index() > self.read_to.index() => {
                    let (until, then) = (self.owed, None);
                    self.state = State::CatchUp { until, then };
                    None
                }
                None => {
                    let item = self.backlog.take().await.ok_or(End::Cut)?;
                    self.order(item)
                }
            }),
        }
    }

    /// What of a batch that is next the reader wants to see.
    fn give(&mut self, batch: Batch) -> Option<Batch> {
        if self.run.is_some() && batch.run() != self.run {
            return None;
        }
        let ends = |(_, event): (Seq, &Event)| matches!(event, Event::RunFinish(_));
        if self.run.is_some() && batch.placed().any(ends) {
            self.state = State::Finished;
            self.ready.clear();
        }
        if batch.last() <= self.cursor {
            return None;
        }
        self.cursor = batch.last();
        Some(batch)
    }

    /// What comes next from the backlog: given when nothing is missing before it, kept until the store was read
    /// otherwise. Another node may have stored what this one has not heard of yet.
    fn order(&mut self, item: Item) -> Option<Batch> {
        let known = self.read_to.index();
        let (batch, needs) = match item {
            Item::Batch(batch) => {
                let needs = match &batch {
                    Batch::Stored(entry) => entry.first.index() - 1,
                    Batch::Live(live) => live.first.index(),
                };
                (Some(batch), needs)
            }
            // What another run stores right after what was read need not be read.
            Item::Elsewhere { run, range } if self.run.is_some() && run != self.run => {
                if range.0.index() <= known + 1 {
                    self.read_to = self.read_to.max(range.1);
                    return None;
                }
                (None, range.1.index())
            }
            Item::Elsewhere { range, .. } | Item::Unheard { range } => (None, range.1.index()),
        };
        if needs > known {
            let until = Seq::durable(needs);
            self.state = State::CatchUp { until, then: batch };
            return None;
        }
        if let Some(Batch::Stored(entry)) = &batch {
            self.read_to = self.read_to.max(entry.last());
        }
        batch
    }

    /// Reads the store to its end, a page at a time; then come the ring and what happened meanwhile.
    async fn replay(&mut self) -> Result<(), End> {
        let LogPage { entries, more, .. } = self.read(None).await?;
        if let Some(run) = self.run
            && entries.is_empty()
            && let Some(end) = end_of(&*self.store, run).await.map_err(|_| End::Cut)?
            && end <= self.read_to
        {
            // Its end is at or before the cursor, and nothing follows it. One that came since the page was read is
            // in the backlog.
            self.state = State::Finished;
            return Ok(());
        }
        let State::Replay { ring, known } = &mut self.state else {
            return Ok(());
        };
        // Looked at after the page was read: what came while reading is here, in full.
        let held = match more {
            true => None,
            false => self.backlog.try_take(),
        };
        let bound = held.as_ref().map(Item::first);
        let precedes = |place: Seq| bound.is_none_or(|bound| place < bound);
        for entry in entries {
            self.owed = entry.last();
            while ring.front().is_some_and(|live| live.first < entry.first) {
                self.ready.extend(ring.pop_front().map(Batch::Live));
            }
            if precedes(entry.first) {
                self.read_to = self.read_to.max(entry.last());
                self.ready.push_back(Batch::Stored(Arc::new(entry)));
            }
        }
        if more {
            return Ok(());
        }
        let streamed = ring.drain(..).filter(|live| precedes(live.first));
        self.ready.extend(streamed.map(Batch::Live));
        self.read_to = self.read_to.max(*known);
        self.state = State::Live;
        // So that what other nodes stream is placed behind what was given.
        self.feed
            .if_known(self.space, |topic| topic.at_least(self.read_to));
        let held = held.and_then(|item| self.order(item));
        self.ready.extend(held);
        Ok(())
    }

    /// Reads what another node has stored, a page at a time, up to what made it known.
    async fn catch_up(&mut self) -> Result<(), End> {
        let State::CatchUp { until, .. } = self.state else {
            return Ok(());
        };
        let LogPage { entries, more, .. } = self.read(Some(until)).await?;
        for entry in entries {
            self.read_to = entry.last();
            self.ready.push_back(Batch::Stored(Arc::new(entry)));
        }
        if more {
            return Ok(());
        }
        if self.run.is_none() && self.read_to.index() < until.index() {
            // Heard of before it can be read: the reader comes back with its cursor.
            return Err(End::Cut);
        }
        self.read_to = self.read_to.max(until);
        let State::CatchUp { then, .. } = std::mem::replace(&mut self.state, State::Live) else {
            return Ok(());
        };
        let then = then.and_then(|batch| self.order(Item::Batch(batch)));
        self.ready.extend(then);
        Ok(())
    }

    /// The next page of the log after what was read.
    async fn read(&self, until: Option<Seq>) -> Result<LogPage, End> {
        let range = LogRange {
            before: until.map(|until| Seq(until.0 + 1)),
            bytes: READ_BYTES,
            ..LogRange::after(self.read_to)
        };
        let page = match self.run {
            Some(run) => self.store.run_log(run, range).await,
            None => self.store.space_log(self.space, range).await,
        };
        page.map_err(|_| End::Cut)
    }
}

/// The place of a run's last event, if that says that it ended.
async fn end_of(log: &dyn Log, run: RunId) -> Result<Option<Seq>, StoreError> {
    let last = LogRange {
        limit: 1,
        ..LogRange::newest()
    };
    let page = log.run_log(run, last).await?;
    let ends = |event: &Event| matches!(event, Event::RunFinish(_));
    let last = page.entries.first().filter(|entry| entry.events.iter().any(ends));
    Ok(last.map(Entry::last))
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.feed.with(self.space, |topic| topic.remove_follower(self.id));
    }
}
