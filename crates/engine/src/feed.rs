//! Live events: from the run that makes them to everyone who follows its space.
//!
//! Everything that happens after a follower registers is in its channel; everything before is in the store or,
//! for the step under way, in the lane's ring. So a follower reads store and ring up to the first thing in its
//! channel, and then the channel: no gap, no duplicate.

mod follow;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc::{self, error::TrySendError};
use toolgate_kernel::event::{Entry, Event, Seq};
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::time::Time;

use crate::store::CommitListener;

pub use follow::{End, Scope, Subscription};

/// Transient events that one step may leave in memory; what is beyond reaches those who listen, not those who
/// come back.
const RING_BATCHES_MAX: usize = 100_000;

/// Events that travel together.
#[derive(Debug, Clone)]
pub enum Batch {
    /// From the log.
    Stored(Arc<Entry>),
    /// Transient ones.
    Live(Arc<Live>),
}

/// Transient events of one run.
#[derive(Debug)]
pub struct Live {
    /// Whose.
    pub run: RunId,
    /// Place of the first; the others follow by one.
    pub first: Seq,
    /// When.
    pub time: Time,
    /// Never empty, all transient.
    pub events: Vec<Event>,
}

impl Batch {
    /// The run they belong to.
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::Stored(entry) => entry.run,
            Self::Live(live) => Some(live.run),
        }
    }
    /// When they happened.
    pub fn time(&self) -> Time {
        match self {
            Self::Stored(entry) => entry.time,
            Self::Live(live) => live.time,
        }
    }
    /// Each event with its place, in order.
    pub fn placed(&self) -> impl Iterator<Item = (Seq, &Event)> {
        let (first, stride, events) = match self {
            Self::Stored(entry) => (entry.first, Seq::STRIDE, &entry.events),
            Self::Live(live) => (live.first, 1, &live.events),
        };
        events
            .iter()
            .enumerate()
            .map(move |(i, event)| (Seq(first.0 + i as u64 * stride), event))
    }
    fn first(&self) -> Seq {
        match self {
            Self::Stored(entry) => entry.first,
            Self::Live(live) => live.first,
        }
    }
    fn last(&self) -> Seq {
        match self {
            Self::Stored(entry) => entry.last(),
            Self::Live(live) => Seq(live.first.0 + live.events.len() as u64 - 1),
        }
    }
}

/// Every space that somebody drives or follows.
#[derive(Default)]
pub struct Feed {
    lanes: Mutex<HashMap<SpaceId, Lane>>,
}

/// One space's live events.
#[derive(Default)]
struct Lane {
    /// The last durable event known here; 0 for none yet.
    index: u64,
    /// Transient events since then.
    transient: u64,
    /// Transient events of the steps under way.
    ring: Vec<Arc<Live>>,
    followers: Vec<Follower>,
    next_follower: u64,
    /// Runs that are driven here.
    drivers: usize,
}

struct Follower {
    id: u64,
    sender: mpsc::Sender<Batch>,
}

impl Lane {
    /// A follower that is full is cut: it comes back with its cursor.
    fn send(&mut self, batch: &Batch) {
        self.followers
            .retain(|follower| match follower.sender.try_send(batch.clone()) {
                Ok(()) => true,
                Err(TrySendError::Full(_) | TrySendError::Closed(_)) => false,
            });
    }
    fn is_idle(&self) -> bool {
        self.drivers == 0 && self.followers.is_empty()
    }
}

impl Feed {
    fn with<T>(&self, space: SpaceId, act: impl FnOnce(&mut Lane) -> T) -> T {
        let mut lanes = self.lanes.lock().expect("no panic holds the lanes");
        let lane = lanes.entry(space).or_default();
        let result = act(lane);
        if lane.is_idle() {
            lanes.remove(&space);
        }
        result
    }

    /// Says that runs of this space are driven here, until the guard is dropped.
    pub(crate) fn drive(self: &Arc<Self>, space: SpaceId) -> Driving {
        self.with(space, |lane| lane.drivers += 1);
        Driving {
            feed: self.clone(),
            space,
        }
    }

    /// Cuts every follower: the gateway goes down.
    pub(crate) fn cut(&self) {
        for lane in self.lanes.lock().expect("no panic holds the lanes").values_mut() {
            lane.followers.clear();
        }
    }
}

impl CommitListener for Feed {
    fn committed(&self, entries: &[Arc<Entry>]) {
        let mut lanes = self.lanes.lock().expect("no panic holds the lanes");
        for entry in entries {
            let Some(lane) = lanes.get_mut(&entry.space) else {
                continue;
            };
            lane.index = entry.last().index();
            lane.transient = 0;
            if entry.events.iter().any(ends_step) {
                lane.ring.retain(|live| Some(live.run) != entry.run);
            }
            lane.send(&Batch::Stored(entry.clone()));
        }
    }
}

/// Whether the transient events of a step are folded, or void, with this one.
fn ends_step(event: &Event) -> bool {
    matches!(
        event,
        Event::StepFinish(_) | Event::StepRetry(_) | Event::RunFinish(_)
    )
}

/// A run is driven here.
pub(crate) struct Driving {
    feed: Arc<Feed>,
    space: SpaceId,
}

impl Driving {
    /// Whether the lane knows its place in the log; until then nothing transient can be placed.
    pub fn knows_place(&self) -> bool {
        self.feed.with(self.space, |lane| lane.index > 0)
    }
    /// Tells the lane that the log has at least so many durable events.
    pub fn at_least(&self, index: u64) {
        self.feed.with(self.space, |lane| {
            if lane.index < index {
                lane.index = index;
                lane.transient = 0;
            }
        });
    }
    /// Shows transient events to everyone who follows.
    pub fn publish(&self, run: RunId, time: Time, events: Vec<Event>) {
        debug_assert!(events.iter().all(|event| !event.is_durable()));
        let count = events.len() as u64;
        self.feed.with(self.space, |lane| {
            if count == 0 || lane.transient + count >= Seq::STRIDE {
                return;
            }
            let first = Seq(Seq::durable(lane.index).0 + lane.transient + 1);
            lane.transient += count;
            let live = Arc::new(Live {
                run,
                first,
                time,
                events,
            });
            if lane.ring.len() < RING_BATCHES_MAX {
                lane.ring.push(live.clone());
            }
            lane.send(&Batch::Live(live));
        });
    }
    /// Forgets what a run has streamed: nobody will fold it any more.
    pub fn forget(&self, run: RunId) {
        self.feed
            .with(self.space, |lane| lane.ring.retain(|live| live.run != run));
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        self.feed.with(self.space, |lane| lane.drivers -= 1);
    }
}
