//! A bus that can be taken away: what is published meanwhile is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use toolgate_engine::bus::{Bus, BusHealth, BusListener, Gap, Notice};
use toolgate_kernel::id::NodeId;

/// Carries notices between the engines of one process, except while it is away.
#[derive(Default)]
pub struct BrokenBus {
    away: AtomicBool,
    members: Mutex<Vec<(NodeId, Arc<dyn BusListener>)>>,
}

impl BrokenBus {
    /// Takes the bus away.
    pub fn leave(&self) {
        self.away.store(true, Ordering::SeqCst);
        self.tell_all(Gap::Notices);
    }
    /// Brings it back.
    pub fn return_to_all(&self) {
        self.away.store(false, Ordering::SeqCst);
        self.tell_all(Gap::Connection);
    }
    fn tell_all(&self, gap: Gap) {
        let members = self.members.lock().expect("no panic holds the members").clone();
        members.iter().for_each(|(_, listener)| listener.missed(gap));
    }
}

impl Bus for BrokenBus {
    fn join(&self, node: NodeId, listener: Arc<dyn BusListener>) {
        self.members
            .lock()
            .expect("no panic holds the members")
            .push((node, listener));
    }
    fn publish(&self, from: NodeId, notice: &Notice) {
        if self.health() == BusHealth::Away {
            return;
        }
        let members = self.members.lock().expect("no panic holds the members").clone();
        let others = members.iter().filter(|(node, _)| *node != from);
        others.for_each(|(_, listener)| listener.heard(notice));
    }
    fn health(&self) -> BusHealth {
        match self.away.load(Ordering::SeqCst) {
            true => BusHealth::Away,
            false => BusHealth::Joined,
        }
    }
    fn others(&self, node: NodeId) -> Vec<NodeId> {
        let members = self.members.lock().expect("no panic holds the members");
        let nodes = members.iter().map(|(other, _)| *other);
        nodes.filter(|other| *other != node).collect()
    }
}
