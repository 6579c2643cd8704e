//! What every bus over a network has: notices to send, a listener for those that come, and how well it goes.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use toolgate_engine::bus::{BusHealth, BusListener, Gap, Notice};
use toolgate_kernel::id::NodeId;

use crate::peers::{Came, Peers};
use crate::send_queue::SendQueue;
use crate::wire::{self, Batch};

/// Pause between two looks whether everything was sent.
const FLUSH_LOOK: Duration = Duration::from_millis(5);

/// One direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    /// What this node says is taken.
    Sending,
    /// What others say is heard.
    Hearing,
}

/// This process on a bus.
pub(crate) struct Link {
    /// What the log calls the bus.
    name: &'static str,
    /// Tells the batches of this process from those of others, also of others with the same node id.
    life: u64,
    pub queue: SendQueue,
    listener: RwLock<Option<Arc<dyn BusListener>>>,
    peers: Mutex<Peers>,
    sending: AtomicBool,
    hearing: AtomicBool,
    /// Whether it was said that the bus is away.
    told_away: AtomicBool,
    joined: Notify,
}

impl Link {
    pub fn new(name: &'static str) -> Arc<Self> {
        let life = new_life();
        Arc::new(Self {
            name,
            life,
            queue: SendQueue::new(life),
            listener: RwLock::default(),
            peers: Mutex::default(),
            sending: AtomicBool::new(false),
            hearing: AtomicBool::new(false),
            told_away: AtomicBool::new(false),
            joined: Notify::new(),
        })
    }

    pub fn join(&self, node: NodeId, listener: Arc<dyn BusListener>) {
        *self.listener.write().unwrap_or_else(PoisonError::into_inner) = Some(listener);
        self.queue.greet(node);
    }

    pub fn publish(&self, from: NodeId, notice: &Notice) {
        self.queue.push(from, notice);
    }

    pub fn health(&self) -> BusHealth {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        match self.is_joined() {
            false => BusHealth::Away,
            true if peers.is_one_silent(Instant::now()) => BusHealth::Doubtful,
            true => BusHealth::Joined,
        }
    }

    pub fn others(&self, node: NodeId) -> Vec<NodeId> {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut others = peers.present(Instant::now());
        others.retain(|other| *other != node);
        others
    }

    fn is_joined(&self) -> bool {
        self.sending.load(Ordering::SeqCst) && self.hearing.load(Ordering::SeqCst)
    }

    /// Waits until the bus is joined, but no longer than `limit`; whether it is.
    pub async fn until_joined(&self, limit: Duration) -> bool {
        let joined = async {
            loop {
                let joined = self.joined.notified();
                if self.is_joined() {
                    return;
                }
                joined.await;
            }
        };
        tokio::time::timeout(limit, joined).await.is_ok()
    }

    /// Waits until everything that was published is on its way.
    pub async fn flushed(&self) {
        while !self.queue.is_empty() {
            tokio::time::sleep(FLUSH_LOOK).await;
        }
    }

    /// One direction works. What was lost before is made up for.
    pub fn connected(&self, half: Half, gap: Option<Gap>) {
        self.flag(half).store(true, Ordering::SeqCst);
        if let Some(gap) = gap {
            self.missed(gap);
        }
        if self.is_joined() {
            self.joined.notify_waiters();
            metrics::gauge!("toolgate_bus_up").set(1.0);
            if self.told_away.swap(false, Ordering::SeqCst) {
                tracing::info!(bus = self.name, "the bus is back");
            }
        }
    }

    /// One direction does not work; it is tried again. The error must not hold a password.
    pub fn broken(&self, half: Half, error: &dyn Display) {
        self.flag(half).store(false, Ordering::SeqCst);
        metrics::gauge!("toolgate_bus_up").set(0.0);
        if !self.told_away.swap(true, Ordering::SeqCst) {
            tracing::warn!(
                bus = self.name,
                %error,
                "the bus is away: what other nodes do is read from the store until it is back"
            );
            self.missed(Gap::Notices);
        }
    }

    fn flag(&self, half: Half) -> &AtomicBool {
        match half {
            Half::Sending => &self.sending,
            Half::Hearing => &self.hearing,
        }
    }

    /// A batch has come, from whomever.
    pub fn deliver(&self, text: &str) {
        let Ok(batch) = Batch::parse(text) else {
            // A newer version's: what it tells is in the store.
            return self.missed(Gap::Notices);
        };
        if batch.life == self.life {
            return;
        }
        let came = {
            let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
            let came = peers.hear(batch.node, batch.life, batch.number, Instant::now());
            if batch.leaves {
                peers.left(batch.life);
            }
            came
        };
        if came == Came::Again {
            return;
        }
        let Some(listener) = self.listener() else { return };
        for notice in batch.notices.iter().flat_map(|raw| wire::read(raw)) {
            listener.heard(&notice);
        }
        if came == Came::AfterGap || batch.lost {
            self.missed(Gap::Notices);
        }
    }

    /// Has the listener look in the store.
    pub fn missed(&self, gap: Gap) {
        metrics::counter!("toolgate_bus_gaps_total").increment(1);
        if let Some(listener) = self.listener() {
            listener.missed(gap);
        }
    }

    fn listener(&self) -> Option<Arc<dyn BusListener>> {
        self.listener
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// A number that no other process has.
fn new_life() -> u64 {
    // The second half of such an id is random.
    uuid::Uuid::now_v7().as_u64_pair().1
}
