//! The seam between nodes that share a store: live events, notices of commits, and pokes for runs.
//!
//! Nothing here is the truth: that is in the store. A notice that is lost costs time, never an event of the log: a
//! driver notices at its next append, and what is followed or driven here is looked up in the store while the bus is
//! away and after it was (`missed.rs`).

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
    /// Notices of others may have been lost: what they would have told is in the store. Must not block.
    fn missed(&self, gap: Gap);
}

/// How much was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// Some notices of another node.
    Notices,
    /// Everything since the connection to the bus broke: also live events, which are asked for again.
    Connection,
}

/// How well notices travel between this node and the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusHealth {
    /// None is ever lost: the nodes are in one process, or there is one.
    Direct,
    /// They travel.
    Joined,
    /// Another node that was there gives no sign of life: what it does may not be heard of.
    Doubtful,
    /// The bus cannot be reached.
    Away,
}

impl BusHealth {
    /// Whether a notice of another node, such as of access that has ended, may be lost now without anybody knowing.
    pub fn loses_notices(self) -> bool {
        match self {
            Self::Direct | Self::Joined => false,
            Self::Doubtful | Self::Away => true,
        }
    }

    /// The word for it in `/readyz`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Joined => "joined",
            Self::Doubtful => "doubtful",
            Self::Away => "away",
        }
    }
}

/// Carries notices between nodes. Each node hears the notices of another one in the order they were published,
/// and never its own.
pub trait Bus: Send + Sync {
    /// From now on `listener` hears the other nodes; it replaces an earlier one of the same node.
    fn join(&self, node: NodeId, listener: Arc<dyn BusListener>);
    /// Tells every other node. Never blocks: what cannot be carried now is dropped, and the others are told to look in the
    /// store as soon as they can be.
    fn publish(&self, from: NodeId, notice: &Notice);
    /// How well notices travel now.
    fn health(&self) -> BusHealth;
    /// The nodes that were heard lately, without `node`; in no order.
    fn others(&self, node: NodeId) -> Vec<NodeId>;
}
