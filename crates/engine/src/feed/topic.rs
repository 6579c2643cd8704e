//! One space's live events on one node: who follows, and how transient events are numbered.
//!
//! A transient event stands at `durable(index) + n * LANES + lane`. The lane is the run's own, so two nodes that
//! stream two runs of one space never give the same number twice. `n` counts up over all lanes that this node
//! has seen, so what a follower is given only grows. When two nodes stream at the same moment, one of them hears
//! of the other's events late; it moves them up behind its own, in the same lane.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use toolgate_kernel::event::{Event, Seq};
use toolgate_kernel::id::RunId;
use toolgate_kernel::time::Time;

use super::backlog::{Backlog, BacklogLimits, Waiting};
use super::{Batch, Live};

/// Bytes of transient events that the steps under way may leave in memory, in one space and in all together; what is
/// beyond reaches those who listen, not those who come back.
const RING_BYTES_MAX: usize = 16 << 20;
const RINGS_BYTES_MAX: usize = 64 << 20;

/// What a follower's backlog holds.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// Events.
    Batch(Batch),
    /// Another node stored an entry from the first to the last of these places: read it from the store.
    Elsewhere { run: Option<RunId>, range: (Seq, Seq) },
    /// Entries of any run stand between the first and the last of these places, and nobody told of them: read them.
    Unheard { range: (Seq, Seq) },
}

impl Item {
    pub fn first(&self) -> Seq {
        match self {
            Self::Batch(batch) => batch.first(),
            Self::Elsewhere { range, .. } | Self::Unheard { range } => range.0,
        }
    }
    /// Bytes of memory that it takes, roughly.
    fn memory(&self) -> usize {
        let events: &[Event] = match self {
            Self::Batch(Batch::Stored(entry)) => &entry.events,
            Self::Batch(Batch::Live(live)) => &live.events,
            Self::Elsewhere { .. } | Self::Unheard { .. } => &[],
        };
        size_of::<Self>() + events.iter().map(Event::memory).sum::<usize>()
    }
}

/// What all topics of a node hold together, in bytes.
#[derive(Default)]
pub(super) struct Totals {
    waiting: Arc<Waiting>,
    rings: AtomicUsize,
}

/// One space's live events.
pub(super) struct Topic {
    totals: Arc<Totals>,
    /// The last durable event known here; 0 for none yet.
    index: u64,
    /// `n` of the last transient event since then.
    transient: u64,
    /// Transient events of the steps under way, in the order of their places.
    ring: VecDeque<Kept>,
    /// Bytes of them.
    ring_bytes: usize,
    followers: Vec<Follower>,
    next_follower: u64,
    /// Runs that are driven here.
    drivers: usize,
}

/// Transient events for those who come in the middle of a step.
struct Kept {
    live: Arc<Live>,
    bytes: usize,
    /// The place that the node gave which published them.
    minted: Seq,
    /// That node is this one.
    here: bool,
}

struct Follower {
    id: u64,
    backlog: Arc<Backlog>,
}

/// What a follower gets when it registers.
pub(super) struct Registered {
    pub id: u64,
    pub backlog: Arc<Backlog>,
    pub ring: VecDeque<Arc<Live>>,
    /// The last durable place that was known then: what the store has up to there is not in the backlog.
    pub known: Seq,
    /// Nobody else drove or followed the space here.
    pub first: bool,
}

impl Topic {
    pub fn new(totals: Arc<Totals>) -> Self {
        Self {
            totals,
            index: 0,
            transient: 0,
            ring: VecDeque::new(),
            ring_bytes: 0,
            followers: Vec::new(),
            next_follower: 0,
            drivers: 0,
        }
    }
    /// A follower that lags too far behind is cut: it comes back with its cursor.
    pub fn send(&mut self, item: &Item) {
        if !self.followers.is_empty() {
            self.send_sized(item, item.memory());
        }
    }
    fn send_sized(&mut self, item: &Item, bytes: usize) {
        let now = Instant::now();
        self.followers
            .retain(|follower| follower.backlog.push(item.clone(), bytes, now));
    }
    pub fn is_idle(&self) -> bool {
        self.drivers == 0 && self.followers.is_empty()
    }
    /// True when nobody drove or followed the space here before.
    pub fn add_driver(&mut self) -> bool {
        let first = self.is_idle();
        self.drivers += 1;
        first
    }
    pub fn remove_driver(&mut self) {
        self.drivers -= 1;
    }
    pub fn cut(&mut self) {
        let followers = self.followers.drain(..);
        followers.for_each(|follower| follower.backlog.close());
    }

    pub fn register(&mut self, limits: BacklogLimits) -> Registered {
        let backlog = Arc::new(Backlog::new(limits, self.totals.waiting.clone()));
        let first = self.is_idle();
        let id = self.next_follower;
        self.next_follower += 1;
        self.followers.push(Follower {
            id,
            backlog: backlog.clone(),
        });
        Registered {
            id,
            backlog,
            ring: self.ring.iter().map(|kept| kept.live.clone()).collect(),
            known: Seq::durable(self.index),
            first,
        }
    }
    pub fn remove_follower(&mut self, id: u64) {
        self.followers.retain(|follower| follower.id != id);
    }

    pub fn knows_place(&self) -> bool {
        self.index > 0
    }
    /// The log goes at least up to `place`.
    pub fn at_least(&mut self, place: Seq) {
        if self.index < place.index() {
            self.index = place.index();
            self.transient = 0;
        }
    }
    /// An entry was stored whose last event stands at `last`; it ends the step of a run when one is given.
    pub fn advance(&mut self, last: Seq, ended: Option<RunId>) {
        self.at_least(last);
        if let Some(run) = ended {
            self.forget(run);
        }
    }
    /// The log goes up to `tail`, whoever has written it: followers read what they were not told of.
    pub fn reaches(&mut self, tail: Seq) {
        if self.index < tail.index() {
            let range = (Seq::durable(self.index + 1), tail);
            self.at_least(tail);
            self.send(&Item::Unheard { range });
        }
    }
    /// Whether somebody follows the space here.
    pub fn is_followed(&self) -> bool {
        !self.followers.is_empty()
    }
    pub fn forget(&mut self, run: RunId) {
        self.ring.retain(|kept| kept.live.run != run);
        let left = self.ring.iter().map(|kept| kept.bytes).sum();
        self.totals
            .rings
            .fetch_sub(self.ring_bytes - left, Ordering::Relaxed);
        self.ring_bytes = left;
    }

    /// Numbers transient events that are published here, and gives them to followers.
    pub fn publish(&mut self, lane: u8, run: RunId, time: Time, events: Vec<Event>) -> Option<Arc<Live>> {
        let first = self.take_places(None, lane, events.len())?;
        let live = Arc::new(Live {
            run,
            first,
            time,
            events,
        });
        self.show(live.clone(), first, true);
        Some(live)
    }

    /// Takes up transient events that another node has published.
    pub fn receive(&mut self, live: &Arc<Live>, again: bool) {
        let mut kept = self
            .ring
            .iter()
            .filter(|kept| !kept.here && kept.live.run == live.run);
        if again && kept.any(|kept| kept.minted >= live.first) {
            return;
        }
        self.at_least(live.first);
        let lane = (live.first.0 % Seq::LANES) as u8;
        let Some(first) = self.take_places(Some(live.first), lane, live.events.len()) else {
            return;
        };
        let placed = match first == live.first {
            true => live.clone(),
            false => Arc::new(Live {
                first,
                events: live.events.clone(),
                ..**live
            }),
        };
        self.show(placed, live.first, false);
    }

    fn show(&mut self, live: Arc<Live>, minted: Seq, here: bool) {
        // What nobody drives, nobody forgets: the progress of a call that only waits is for those who listen now.
        let keep = !here || self.drivers > 0;
        let item = Item::Batch(Batch::Live(live.clone()));
        let bytes = item.memory();
        if keep && self.has_room(bytes) {
            self.totals.rings.fetch_add(bytes, Ordering::Relaxed);
            self.ring_bytes += bytes;
            self.ring.push_back(Kept {
                live,
                bytes,
                minted,
                here,
            });
        }
        self.send_sized(&item, bytes);
    }

    /// Whether so many more bytes may stay in the ring.
    fn has_room(&self, bytes: usize) -> bool {
        self.ring_bytes + bytes <= RING_BYTES_MAX
            && self.totals.rings.load(Ordering::Relaxed) + bytes <= RINGS_BYTES_MAX
    }

    /// Places for `count` transient events: the wanted ones, or the next when these are behind what was given.
    /// None when there is no room before the next durable event.
    fn take_places(&mut self, wanted: Option<Seq>, lane: u8, count: usize) -> Option<Seq> {
        let base = Seq::durable(self.index);
        let wanted = wanted.filter(|place| *place > base);
        let n = wanted
            .map_or(0, |place| (place.0 - base.0) / Seq::LANES)
            .max(self.transient + 1);
        let last = n + count as u64 - 1;
        if count == 0 || (last + 1) * Seq::LANES > Seq::STRIDE {
            return None;
        }
        self.transient = last;
        Some(Seq(base.0 + n * Seq::LANES + u64::from(lane)))
    }

    /// What the runs driven here have streamed in their steps.
    pub fn streamed_here(&self) -> Vec<Arc<Live>> {
        let here = self.ring.iter().filter(|kept| kept.here);
        here.map(|kept| kept.live.clone()).collect()
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        self.totals.rings.fetch_sub(self.ring_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
