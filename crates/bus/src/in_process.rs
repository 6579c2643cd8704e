//! The bus of one process.

use std::sync::{Arc, RwLock};

use toolgate_engine::bus::{Bus, BusHealth, BusListener, Notice};
use toolgate_kernel::id::NodeId;

/// Joins the engines of one process: a notice is a direct call. With a single engine it does nothing.
#[derive(Default)]
pub struct InProcessBus {
    /// Replaced as a whole, so that a listener may publish while it is called.
    members: RwLock<Arc<[Member]>>,
}

#[derive(Clone)]
struct Member {
    node: NodeId,
    listener: Arc<dyn BusListener>,
}

impl Bus for InProcessBus {
    fn join(&self, node: NodeId, listener: Arc<dyn BusListener>) {
        let mut members = self.members.write().expect("no panic holds the members");
        let others = members.iter().filter(|member| member.node != node).cloned();
        *members = others.chain([Member { node, listener }]).collect();
    }

    fn publish(&self, from: NodeId, notice: &Notice) {
        let members = self.members.read().expect("no panic holds the members").clone();
        for member in members.iter().filter(|member| member.node != from) {
            member.listener.heard(notice);
        }
    }

    fn health(&self) -> BusHealth {
        BusHealth::Direct
    }

    fn others(&self, node: NodeId) -> Vec<NodeId> {
        let members = self.members.read().expect("no panic holds the members").clone();
        let nodes = members.iter().map(|member| member.node);
        nodes.filter(|other| *other != node).collect()
    }
}
