//! Places in a space's stream, and events that are stored together.

use serde::{Deserialize, Serialize};

use super::{ContextCut, Event, Opaque};
use crate::id::{RunId, SpaceId};
use crate::name::AgentName;
use crate::time::Time;

/// A place in a space's stream: strictly increasing, the same for list, stream and the SSE `id:`.
///
/// Durable events stand at multiples of [`Seq::STRIDE`]; transient ones count up from the durable event
/// before them, in steps of [`Seq::LANES`]. So a cursor that points at a delta stays right when the deltas are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Room for transient events between two durable ones. Keeps a number exact in a JSON reader that has
    /// only doubles for nine thousand million durable events per space.
    pub const STRIDE: u64 = 1_000_000;
    /// Runs of one space that may stream at once: the transient events of each stand in a lane of its own, so
    /// that nodes which stream different runs cannot give the same number twice. Divides [`Seq::STRIDE`], and
    /// leaves tens of thousands of places per lane between two durable events.
    pub const LANES: u64 = 16;

    /// The place of the `index`-th durable event of a space, counted from 1.
    pub fn durable(index: u64) -> Self {
        Self(index * Self::STRIDE)
    }
    /// Which durable event this is, or follows.
    pub fn index(self) -> u64 {
        self.0 / Self::STRIDE
    }
}

/// Events that were stored together: all of them or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The space whose stream they stand in.
    pub space: SpaceId,
    /// The run they belong to; none for a message that starts no run.
    pub run: Option<RunId>,
    /// Place of the first; the others follow at [`Seq::STRIDE`].
    pub first: Seq,
    /// When they were stored.
    pub time: Time,
    /// Never empty, all durable.
    pub events: Vec<Event>,
}

impl Entry {
    /// Each event with its place.
    pub fn placed(&self) -> impl Iterator<Item = (Seq, &Event)> {
        self.events
            .iter()
            .enumerate()
            .map(|(i, event)| (Seq(self.first.0 + i as u64 * Seq::STRIDE), event))
    }
    /// The first event that this version has to know to drive the run, and does not.
    pub fn beyond(&self) -> Option<&Opaque> {
        self.events.iter().find_map(|event| match event {
            Event::Opaque(event) if !event.ignorable => Some(event),
            _ => None,
        })
    }
    /// Place of the last event.
    pub fn last(&self) -> Seq {
        Seq(self.first.0 + (self.events.len() as u64 - 1) * Seq::STRIDE)
    }
    /// Whether it begins a run that is one call which no model made: no part of what was said.
    pub fn begins_requested_call(&self) -> bool {
        let is_request = |event: &Event| matches!(event, Event::CallRequest(_));
        self.events.iter().any(is_request)
    }
    /// The last cut in it of what `agent` is given.
    pub fn cut_of(&self, agent: &AgentName) -> Option<&ContextCut> {
        self.events.iter().rev().find_map(|event| match event {
            Event::ContextCut(cut) if cut.agent == *agent => Some(cut),
            _ => None,
        })
    }
}
