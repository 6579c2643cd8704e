//! Live events: from the run that makes them to everyone who follows its space, on this node and on others.
//!
//! Everything that happens after a follower registers is in its backlog; everything before is in the store or,
//! for the step under way, in the topic's ring. So a follower reads store and ring up to the first thing in its
//! backlog, and then the backlog: no gap, no duplicate. Of what another node stores only a notice comes; the
//! follower reads it from the store before it goes on.
//!
//! What happens here reaches local followers by a direct call and the other nodes over the bus.

mod backlog;
mod follow;
mod topic;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use toolgate_kernel::event::{Entry, Event, Seq};
use toolgate_kernel::id::{NodeId, RunId, SpaceId};
use toolgate_kernel::time::Time;

use crate::bus::{Bus, Notice};
use crate::store::CommitListener;
use topic::{Item, Registered, Topic, Totals};

pub use backlog::BacklogLimits;
pub use follow::{End, Scope, Subscription};

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
    /// The run that made them.
    pub run: RunId,
    /// Place of the first; the others follow at [`Seq::LANES`].
    pub first: Seq,
    /// When they happened.
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
            Self::Live(live) => (live.first, Seq::LANES, &live.events),
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
            Self::Live(live) => Seq(live.first.0 + (live.events.len() as u64 - 1) * Seq::LANES),
        }
    }
}

/// Every space that somebody drives or follows on this node.
pub struct Feed {
    topics: Mutex<HashMap<SpaceId, Topic>>,
    totals: Arc<Totals>,
    bus: Arc<dyn Bus>,
    node: NodeId,
}

impl Feed {
    pub(crate) fn new(bus: Arc<dyn Bus>, node: NodeId) -> Self {
        Self {
            topics: Mutex::default(),
            totals: Arc::default(),
            bus,
            node,
        }
    }

    fn with<T>(&self, space: SpaceId, act: impl FnOnce(&mut Topic) -> T) -> T {
        let mut topics = self.topics.lock().expect("no panic holds the topics");
        let topic = topics
            .entry(space)
            .or_insert_with(|| Topic::new(self.totals.clone()));
        let result = act(topic);
        if topic.is_idle() {
            topics.remove(&space);
        }
        result
    }

    /// Like `with`, for what concerns only spaces that somebody drives or follows here.
    fn if_known(&self, space: SpaceId, act: impl FnOnce(&mut Topic)) {
        let mut topics = self.topics.lock().expect("no panic holds the topics");
        topics.get_mut(&space).map(act);
    }

    /// Adds a follower of a space.
    fn register(&self, space: SpaceId, limits: BacklogLimits) -> Registered {
        let registered = self.with(space, |topic| topic.register(limits));
        if registered.first {
            self.tell(Notice::Wanted { space });
        }
        registered
    }

    /// Says that a run of this space is driven here, until the guard is dropped.
    pub(crate) fn drive(self: &Arc<Self>, space: SpaceId, lane: u8) -> Driving {
        if self.with(space, Topic::add_driver) {
            self.tell(Notice::Wanted { space });
        }
        Driving {
            feed: self.clone(),
            space,
            lane,
        }
    }

    /// Whether the topic knows its place in the log; until then nothing transient can be placed.
    pub(crate) fn knows_place(&self, space: SpaceId) -> bool {
        self.with(space, |topic| topic.knows_place())
    }

    /// Shows transient events of a run to everyone who follows its space. The log of the space has at least the
    /// durable event `known`.
    pub(crate) fn publish(&self, at: Lane, run: RunId, known: Seq, time: Time, events: Vec<Event>) {
        debug_assert!(events.iter().all(|event| !event.is_durable()));
        let live = self.with(at.space, |topic| {
            topic.at_least(known);
            topic.publish(at.lane, run, time, events)
        });
        // Not under the lock: in one process the bus calls the other node's feed, which may be calling this one.
        if let Some(live) = live {
            self.tell(Notice::Live {
                space: at.space,
                live,
                again: false,
            });
        }
    }

    fn tell(&self, notice: Notice) {
        self.bus.publish(self.node, &notice);
    }

    /// Another node publishes transient events.
    pub(crate) fn live_elsewhere(&self, space: SpaceId, live: &Arc<Live>, again: bool) {
        self.if_known(space, |topic| topic.receive(live, again));
    }

    /// Another node has stored an entry.
    pub(crate) fn committed_elsewhere(
        &self,
        space: SpaceId,
        run: Option<RunId>,
        range: (Seq, Seq),
        ends: bool,
    ) {
        self.if_known(space, |topic| {
            topic.advance(range.1, run.filter(|_| ends));
            topic.send(&Item::Elsewhere { run, range });
        });
    }

    /// Another node begins to follow a space: sends it what the runs driven here have streamed in their steps.
    pub(crate) fn wanted_elsewhere(&self, space: SpaceId) {
        let mut streamed = Vec::new();
        self.if_known(space, |topic| streamed = topic.streamed_here());
        for live in streamed {
            self.tell(Notice::Live {
                space,
                live,
                again: true,
            });
        }
    }

    /// The spaces that somebody follows here, in no order.
    pub(crate) fn followed(&self) -> Vec<SpaceId> {
        let topics = self.topics.lock().expect("no panic holds the topics");
        let followed = topics.iter().filter(|(_, topic)| topic.is_followed());
        followed.map(|(space, _)| *space).collect()
    }

    /// The log of a space goes up to `tail`, as the store says.
    pub(crate) fn log_reaches(&self, space: SpaceId, tail: Seq) {
        self.if_known(space, |topic| topic.reaches(tail));
    }

    /// Asks the nodes that drive runs of a space for what they have streamed in their steps.
    pub(crate) fn want_again(&self, space: SpaceId) {
        self.tell(Notice::Wanted { space });
    }

    /// Cuts every follower: the gateway goes down.
    pub(crate) fn cut(&self) {
        let mut topics = self.topics.lock().expect("no panic holds the topics");
        topics.values_mut().for_each(Topic::cut);
    }
}

impl CommitListener for Feed {
    fn committed(&self, entries: &[Arc<Entry>]) {
        {
            let mut topics = self.topics.lock().expect("no panic holds the topics");
            for entry in entries {
                if let Some(topic) = topics.get_mut(&entry.space) {
                    topic.advance(entry.last(), entry.run.filter(|_| ends_step(entry)));
                    topic.send(&Item::Batch(Batch::Stored(entry.clone())));
                }
            }
        }
        for entry in entries {
            self.tell(Notice::Committed {
                space: entry.space,
                run: entry.run,
                first: entry.first,
                last: entry.last(),
                ends_step: ends_step(entry),
            });
        }
    }
}

/// Whether the transient events of a step are folded, or void, with this entry.
fn ends_step(entry: &Entry) -> bool {
    entry.events.iter().any(|event| {
        matches!(
            event,
            Event::StepFinish(_) | Event::StepRetry(_) | Event::RunFinish(_)
        )
    })
}

/// Where the transient events of a run are numbered: no other open run of the space has the same lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane {
    pub space: SpaceId,
    pub lane: u8,
}

/// A run is driven here.
pub(crate) struct Driving {
    feed: Arc<Feed>,
    space: SpaceId,
    /// The run's lane, as its row says.
    pub lane: u8,
}

impl Driving {
    /// Whether the topic knows its place in the log; until then nothing transient can be placed.
    pub fn knows_place(&self) -> bool {
        self.feed.knows_place(self.space)
    }
    /// Tells the topic that the log goes at least up to `place`.
    pub fn at_least(&self, place: Seq) {
        self.feed.with(self.space, |topic| topic.at_least(place));
    }
    /// Shows transient events to everyone who follows.
    pub fn publish(&self, run: RunId, time: Time, events: Vec<Event>) {
        let lane = Lane {
            space: self.space,
            lane: self.lane,
        };
        self.feed.publish(lane, run, Seq(0), time, events);
    }
    /// Forgets what a run has streamed: nobody will fold it any more.
    pub fn forget(&self, run: RunId) {
        self.feed.with(self.space, |topic| topic.forget(run));
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        self.feed.with(self.space, Topic::remove_driver);
    }
}
