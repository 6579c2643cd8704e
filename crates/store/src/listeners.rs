//! Listeners that are called after each commit.

use std::sync::{Arc, RwLock};

use toolgate_engine::store::CommitListener;
use toolgate_kernel::event::Entry;

/// All listeners, in the order of registration.
#[derive(Clone, Default)]
pub(crate) struct Listeners(Arc<RwLock<Vec<Arc<dyn CommitListener>>>>);

impl Listeners {
    pub(crate) fn add(&self, listener: Arc<dyn CommitListener>) {
        self.0.write().expect("no listener panics").push(listener);
    }

    pub(crate) fn tell(&self, entries: &[Arc<Entry>]) {
        if entries.is_empty() {
            return;
        }
        for listener in self.0.read().expect("no listener panics").iter() {
            listener.committed(entries);
        }
    }
}
