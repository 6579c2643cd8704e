//! A bus that can be taken away, from all nodes or from one: what is published meanwhile is lost.

use std::sync::{Arc, Mutex};

use toolgate_engine::bus::{Bus, BusHealth, BusListener, Gap, Notice};
use toolgate_kernel::id::NodeId;

/// Carries notices between the engines of one process, except while it is away.
#[derive(Default)]
pub struct BrokenBus {
    state: Mutex<State>,
    members: Mutex<Vec<(NodeId, Arc<dyn BusListener>)>>,
}

/// Which notices are carried.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum State {
    #[default]
    Whole,
    Away,
    /// None from or to this node, which the others have noticed.
    Without(NodeId),
}

impl BrokenBus {
    /// Takes the bus away.
    pub fn leave(&self) {
        self.set(State::Away);
        self.tell_all(Gap::Notices);
    }
    /// Cuts one node off. It is silent, which nobody is told.
    pub fn cut_off(&self, node: NodeId) {
        self.set(State::Without(node));
    }
    /// Tells everybody that notices were lost.
    pub fn lose(&self) {
        self.tell_all(Gap::Notices);
    }
    /// Brings it back.
    pub fn return_to_all(&self) {
        self.set(State::Whole);
        self.tell_all(Gap::Connection);
    }
    fn set(&self, state: State) {
        *self.state.lock().expect("no panic holds the state") = state;
    }
    fn state(&self) -> State {
        *self.state.lock().expect("no panic holds the state")
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
        let is_carried = |node: NodeId| match self.state() {
            State::Whole => true,
            State::Away => false,
            State::Without(silent) => node != silent,
        };
        if !is_carried(from) {
            return;
        }
        let members = self.members.lock().expect("no panic holds the members").clone();
        let others = members
            .iter()
            .filter(|(node, _)| *node != from && is_carried(*node));
        others.for_each(|(_, listener)| listener.heard(notice));
    }
    fn health(&self) -> BusHealth {
        match self.state() {
            State::Whole => BusHealth::Joined,
            State::Away => BusHealth::Away,
            State::Without(_) => BusHealth::Doubtful,
        }
    }
    fn others(&self, node: NodeId) -> Vec<NodeId> {
        let members = self.members.lock().expect("no panic holds the members");
        let nodes = members.iter().map(|(other, _)| *other);
        nodes.filter(|other| *other != node).collect()
    }
}
