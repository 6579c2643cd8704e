//! What was said in spaces, as it was last read for an agent's model: the next run there reads what is new, not everything
//! once more. What was read stays right while the store counts the same number of deletions for the space; a notice of one
//! only makes room earlier. It is in memory only, bounded in bytes, and whoever was used least recently goes first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use toolgate_kernel::event::{ContextCut, Seq};
use toolgate_kernel::history::Before;
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::name::AgentName;

use super::window::RequestedCalls;

/// Bytes, as they are stored, of everything that is kept.
const BYTES_MAX: usize = 16 << 20;

/// A space, and the agent that is told of it.
pub(super) type Key = (SpaceId, AgentName);

/// What was said in a space up to a place of its log.
pub(super) struct KnownPast {
    pub before: Before,
    pub calls: RequestedCalls,
    /// Everything before this place was read.
    pub upto: Seq,
    /// How often something of the space was deleted before it was read.
    pub rewrites: u64,
    /// The last cut of what the agent is given, when that was read.
    pub cut: Option<ContextCut>,
    /// Bytes that were read of it, as they are stored.
    pub bytes: usize,
}

/// The pasts that are kept.
#[derive(Default)]
pub(crate) struct Pasts(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    /// With the number of its last use.
    known: HashMap<Key, (u64, KnownPast)>,
    uses: u64,
    bytes: usize,
}

impl Pasts {
    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().expect("no panic holds the pasts")
    }

    /// Takes what is known of a space out; whoever reads on puts it back. None, and it is forgotten, when something of the
    /// space was deleted since it was read.
    pub(super) fn take(&self, key: &Key, rewrites: u64) -> Option<KnownPast> {
        let mut shelf = self.lock();
        let (_, known) = shelf.known.remove(key)?;
        shelf.bytes -= known.bytes;
        (known.rewrites == rewrites).then_some(known)
    }

    /// Keeps what is known of a space.
    pub(super) fn put(&self, key: Key, known: KnownPast) {
        let mut shelf = self.lock();
        shelf.uses += 1;
        shelf.bytes += known.bytes;
        let use_number = shelf.uses;
        if let Some((_, other)) = shelf.known.insert(key, (use_number, known)) {
            shelf.bytes -= other.bytes;
        }
        while shelf.bytes > BYTES_MAX {
            let least = shelf.known.iter().min_by_key(|(_, (used, _))| *used);
            let Some(least) = least.map(|(key, _)| key.clone()) else {
                break;
            };
            if let Some((_, known)) = shelf.known.remove(&least) {
                shelf.bytes -= known.bytes;
            }
        }
    }

    /// Forgets what is known of a space: a part of it was deleted.
    pub fn forget(&self, space: SpaceId) {
        let mut shelf = self.lock();
        let gone = shelf.known.extract_if(|(of, _), _| *of == space);
        let bytes: usize = gone.map(|(_, (_, known))| known.bytes).sum();
        shelf.bytes -= bytes;
    }

    /// Forgets everything.
    pub fn clear(&self) {
        *self.lock() = Shelf::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Key {
        (SpaceId::from_bytes([number; 16]), "reader".parse().unwrap())
    }

    fn known(bytes: usize) -> KnownPast {
        KnownPast {
            before: Before::new("reader".parse().unwrap(), None),
            calls: RequestedCalls::default(),
            upto: Seq(0),
            rewrites: 3,
            cut: None,
            bytes,
        }
    }

    #[test]
    fn what_was_used_least_recently_makes_room() {
        let pasts = Pasts::default();
        for number in 0..4 {
            pasts.put(key(number), known(BYTES_MAX / 4));
        }
        let first = pasts.take(&key(0), 3).expect("there is room for four");
        pasts.put(key(0), first);
        pasts.put(key(9), known(1));
        assert!(pasts.take(&key(1), 3).is_none(), "used before all others");
        assert!(pasts.take(&key(0), 3).is_some());
        pasts.put(key(5), known(BYTES_MAX + 1));
        assert_eq!(pasts.lock().bytes, 0, "too large for any room");
        assert!(pasts.take(&key(2), 3).is_none());
    }

    #[test]
    fn what_was_read_before_a_deletion_is_forgotten() {
        let pasts = Pasts::default();
        pasts.put(key(1), known(10));
        assert!(pasts.take(&key(1), 4).is_none(), "something was deleted since");
        assert_eq!(pasts.lock().bytes, 0);
        assert!(pasts.take(&key(1), 3).is_none(), "it is gone for good");
    }
}
