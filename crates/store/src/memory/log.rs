//! The log of every space, in order.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_engine::store::{Append, CommitListener, Log, LogRange, StoreError};
use toolgate_kernel::event::Entry;
use toolgate_kernel::id::{RunId, SpaceId};

use super::MemoryStore;

#[async_trait]
impl Log for MemoryStore {
    fn listen(&self, listener: Arc<dyn CommitListener>) {
        self.listeners.add(listener);
    }

    async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError> {
        crate::check(&append);
        let mut state = self.state();
        let entry = state.append(append)?;
        // Told under the lock: the order of commits is the order of news.
        self.listeners.tell(std::slice::from_ref(&entry));
        Ok(entry)
    }
    async fn run_log(&self, run: RunId) -> Result<Vec<Entry>, StoreError> {
        let state = self.state();
        let Some(row) = state.runs.get(&run) else {
            return Ok(Vec::new());
        };
        let log = state.log.get(&row.space).into_iter().flatten();
        Ok(log
            .filter(|entry| entry.run == Some(run))
            .map(|entry| (**entry).clone())
            .collect())
    }
    async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<Vec<Entry>, StoreError> {
        let state = self.state();
        let log = state.log.get(&space).into_iter().flatten();
        let within = log
            .filter(|entry| entry.last() > range.after)
            .filter(|entry| range.before.is_none_or(|before| entry.first < before));
        Ok(within.take(range.limit).map(|entry| (**entry).clone()).collect())
    }
}
