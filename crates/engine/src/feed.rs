//! Live events: from the run that makes them to everyone who follows its space.

use std::sync::Arc;

use toolgate_kernel::event::{Entry, Event, Seq};
use toolgate_kernel::id::RunId;
use toolgate_kernel::time::Time;

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
}

/// What to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everything in a space, for ever.
    Space(toolgate_kernel::id::SpaceId),
    /// One run, until it ends.
    Run(RunId),
}

/// The events of a space or a run after a cursor: first what is stored, then what happens, no gap, no
/// duplicate.
pub struct Subscription {}

/// Why a subscription gives no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The run has ended and everything was given.
    Finished,
    /// The reader was too slow, or the gateway is going down: come back with the last place read.
    Cut,
}

impl Subscription {
    /// The next events, all after the cursor; waits for them. The first event of a batch may stand before
    /// the cursor only when the batch was cut there: filter by `placed().0 > cursor`.
    pub async fn next(&mut self) -> Result<Batch, End> {
        todo!()
    }
    /// The place up to which everything has been given.
    pub fn cursor(&self) -> Seq {
        todo!()
    }
}
