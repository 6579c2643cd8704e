//! Seats for runs at work. A run that begins waits for one as `queued`; projects and their users take turns. A run that
//! goes on after it waited, and a child run, takes a seat at once: others wait for it already.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

use toolgate_fair::{Limits, Permit, Queue, Share, Shares, Spare};
use toolgate_kernel::id::RunId;

use crate::Inner;

/// Queued runs that have a place in the queue of this node. Those beyond are found in the store later.
const QUEUED: Shares = Shares {
    all: 20_000,
    tenant: 10_000,
    user: 5_000,
};

/// The seats of a node, and the runs that wait for one.
pub(crate) struct Seats {
    queue: Arc<Queue>,
    waiting: Mutex<HashSet<RunId>>,
}

impl Seats {
    pub fn new(running: Shares) -> Self {
        let queue = Queue::new(Limits {
            running,
            waiting: QUEUED,
            waiting_bytes: Shares::UNLIMITED,
            spare: Spare::NONE,
        });
        Self {
            queue,
            waiting: Mutex::default(),
        }
    }
    /// A seat for a run that begins, if there is one.
    pub fn try_take(&self, share: Share) -> Option<Permit> {
        self.queue.try_turn(share)
    }
    /// A seat for a run that somebody waits for.
    pub fn take(&self, share: Share) -> Permit {
        self.queue.take(share)
    }
    /// Whether a queued run has a place in the queue.
    pub fn is_awaited_by(&self, run: RunId) -> bool {
        self.lock().contains(&run)
    }
    /// How many queued runs have a place in the queue.
    pub fn waiting(&self) -> usize {
        self.lock().len()
    }
    fn lock(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.waiting.lock().expect("no panic holds the set")
    }
}

impl Inner {
    /// Queues a run that is stored as `queued`: it begins when its turn comes.
    pub(crate) fn wait_for_seat(self: &Arc<Self>, run: RunId, share: Share) {
        if !self.seats.lock().insert(run) {
            return;
        }
        let inner = self.clone();
        self.tasks.spawn(async move {
            let turn = tokio::select! {
                () = inner.halt.cancelled() => None,
                turn = inner.seats.queue.turn(share, 0) => turn.ok(),
            };
            inner.seats.lock().remove(&run);
            match turn {
                Some(permit) if !inner.is_stopping() => inner.begin_queued(run, permit),
                // It is in the store: whoever looks for work finds it.
                _ => {}
            }
        });
    }

    /// The turn of a queued run has come.
    fn begin_queued(self: &Arc<Self>, run: RunId, permit: Permit) {
        if !self.summon_seated(run, Some(permit)) {
            // A letter has just brought it to memory as one that waits: it is looked at again when it has left.
            self.adrift(run);
        }
    }
}
