//! The other processes on the bus: which batch of each came last, and when.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use toolgate_kernel::id::NodeId;

/// How often a process with nothing to say sends a sign of life.
pub(crate) const BEAT_EVERY: Duration = Duration::from_secs(5);
/// Silence after which it is doubted that a process is heard.
const SILENT_AFTER: Duration = Duration::from_secs(15);
/// Silence after which a process is taken for gone: the nodes of the store know by then.
const GONE_AFTER: Duration = Duration::from_secs(120);
/// Processes that are remembered; of more, those heard last.
const PEERS_MAX: usize = 1_024;

/// The others, by their lives.
#[derive(Default)]
pub(crate) struct Peers {
    known: HashMap<u64, Peer>,
}

struct Peer {
    node: NodeId,
    /// Number of the last batch.
    number: u64,
    heard: Instant,
}

/// What a batch is to what came before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// The next one.
    Next,
    /// It came before.
    Again,
    /// Something before it did not come.
    AfterGap,
}

impl Peers {
    /// A batch of a process has come.
    pub fn hear(&mut self, node: NodeId, life: u64, number: u64, now: Instant) -> Came {
        self.forget_gone(now);
        let before = self.known.get(&life).map(|peer| peer.number);
        let came = match before {
            Some(last) if number <= last => Came::Again,
            Some(last) if number == last + 1 => Came::Next,
            // What a process said before it was first heard may be missing too.
            Some(_) => Came::AfterGap,
            None if number == 0 => Came::Next,
            None => Came::AfterGap,
        };
        let number = number.max(before.unwrap_or(0));
        // A process that has started anew has the same node, and its earlier life is over.
        self.known
            .retain(|other, peer| *other == life || peer.node != node);
        let heard = now;
        self.known.insert(life, Peer { node, number, heard });
        came
    }

    /// A process has said that it goes.
    pub fn left(&mut self, life: u64) {
        self.known.remove(&life);
    }

    /// The nodes that were heard lately, in no order.
    pub fn present(&self, now: Instant) -> Vec<NodeId> {
        let present = self
            .known
            .values()
            .filter(|peer| now.duration_since(peer.heard) <= SILENT_AFTER);
        present.map(|peer| peer.node).collect()
    }

    /// Whether some process has not been heard for too long.
    pub fn is_one_silent(&mut self, now: Instant) -> bool {
        self.forget_gone(now);
        let silent = |peer: &Peer| now.duration_since(peer.heard) > SILENT_AFTER;
        self.known.values().any(silent)
    }

    fn forget_gone(&mut self, now: Instant) {
        self.known
            .retain(|_, peer| now.duration_since(peer.heard) <= GONE_AFTER);
        while self.known.len() > PEERS_MAX {
            let oldest = self.known.iter().min_by_key(|(_, peer)| peer.heard);
            let oldest = oldest.map(|(life, _)| *life);
            oldest.map(|life| self.known.remove(&life));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u64) -> NodeId {
        NodeId::from_bytes(u128::from(number).to_be_bytes())
    }

    #[test]
    fn gaps_repeats_and_silence_are_noticed() {
        let mut peers = Peers::default();
        let now = Instant::now();
        assert_eq!(peers.hear(node(1), 1, 0, now), Came::Next);
        assert_eq!(peers.hear(node(1), 1, 1, now), Came::Next);
        assert_eq!(peers.hear(node(1), 1, 1, now), Came::Again);
        assert_eq!(peers.hear(node(1), 1, 0, now), Came::Again);
        assert_eq!(peers.hear(node(1), 1, 3, now), Came::AfterGap);
        assert_eq!(
            peers.hear(node(2), 2, 7, now),
            Came::AfterGap,
            "what it said before is unknown"
        );
        assert_eq!(peers.hear(node(2), 2, 8, now), Came::Next);
        let later = now + SILENT_AFTER + Duration::from_millis(1);
        assert_eq!(peers.hear(node(1), 1, 4, later), Came::Next);
        assert!(peers.is_one_silent(later));
        assert_eq!(peers.present(later), [node(1)]);
        peers.left(2);
        assert!(!peers.is_one_silent(later));
        let gone = later + GONE_AFTER + Duration::from_millis(1);
        assert!(!peers.is_one_silent(gone));
        assert!(peers.known.is_empty());
    }

    #[test]
    fn the_earlier_life_of_a_node_ends_with_its_next() {
        let mut peers = Peers::default();
        let now = Instant::now();
        peers.hear(node(1), 10, 0, now);
        peers.hear(node(1), 11, 0, now);
        assert_eq!(peers.present(now), [node(1)]);
    }

    #[test]
    fn no_more_processes_are_remembered_than_the_limit() {
        let mut peers = Peers::default();
        let now = Instant::now();
        for life in 0..3 * PEERS_MAX as u64 {
            peers.hear(node(life), life, 0, now + Duration::from_micros(life));
        }
        assert!(peers.known.len() <= PEERS_MAX + 1);
    }
}
