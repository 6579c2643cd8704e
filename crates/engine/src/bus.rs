//! The seam between nodes that share a store: live events, notices of commits, and pokes for runs.
//!
//! Nothing here is the truth: that is in the store. A notice that is lost costs time (a driver notices at its
//! next append, a follower at the next notice), never an event of the log.

use std::sync::Arc;

use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{NodeId, RunId, SpaceId};

use crate::feed::Live;
use crate::revocation::Revoked;

/// What one node tells the others.
#[derive(Debug, Clone)]
pub enum Notice {
    /// Transient events of a run, as the node numbered them.
    Live {
        /// The space whose followers see them.
        space: SpaceId,
        /// The events.
        live: Arc<Live>,
        /// They were published before and are sent again for a node that has begun to follow the space.
        again: bool,
    },
    /// An entry was stored; everything up to `last` can be read from the store.
    Committed {
        /// The space whose log grew.
        space: SpaceId,
        /// The run the entry belongs to.
        run: Option<RunId>,
        /// Place of the entry's first event.
        first: Seq,
        /// Place of its last event.
        last: Seq,
        /// The entry replaces what the run has streamed in its step.
        ends_step: bool,
    },
    /// A run is to be looked at: by the node that holds its lease, which somebody else has appended to; or, when
    /// none is named, by whoever has it in memory, because something that it waits for has happened.
    Poke {
        /// The run.
        run: RunId,
        /// The node that holds its lease.
        node: Option<NodeId>,
    },
    /// Somebody has begun to follow the space on another node: whoever drives a run there sends the transient
    /// events of its step again.
    Wanted {
        /// The space.
        space: SpaceId,
    },
    /// Somebody's access has ended: what hangs on it ends on every node.
    Revoked(Revoked),
}

/// A node that hears what the others publish.
pub trait BusListener: Send + Sync {
    /// Another node says this. Must not block; may publish.
    fn heard(&self, notice: &Notice);
}

/// Carries notices between nodes. Each node hears the notices of another one in the order they were published,
/// and never its own.
pub trait Bus: Send + Sync {
    /// From now on `listener` hears the other nodes; it replaces an earlier one of the same node.
    fn join(&self, node: NodeId, listener: Arc<dyn BusListener>);
    /// Tells every other node. Never blocks: what cannot be carried now is dropped.
    fn publish(&self, from: NodeId, notice: &Notice);
}
