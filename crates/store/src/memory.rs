//! The store in plain maps behind one lock: the reference semantics of the seam.

mod consumption;
mod directory;
mod leases;
mod log;
mod records;
mod retention;
mod runs;
mod state;

use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use toolgate_engine::records::{Amendment, FoundRecords, Listing, Record, RecordSet, Records, Reindexed};
use toolgate_engine::store::{Store, StoreError};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use crate::listeners::Listeners;
use state::State;

/// A store in memory: its content ends with the process.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    listeners: Listeners,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no store method panics with the lock")
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn ready(&self) -> Result<(), StoreError> {
        Ok(())
    }
    async fn close(&self) {}
}

#[async_trait]
impl Records for MemoryStore {
    async fn record(&self, set: RecordSet, id: &str) -> Result<Option<Record>, StoreError> {
        Ok(self.state().records.get(set, id))
    }
    async fn list_records(&self, set: RecordSet, listing: Listing) -> Result<Vec<Record>, StoreError> {
        Ok(self.state().records.list(set, &listing))
    }
    async fn records_size(&self, set: RecordSet) -> Result<(u64, u64), StoreError> {
        Ok(self.state().records.size(set))
    }
    async fn list_data(
        &self,
        set: RecordSet,
        listing: Listing,
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        Ok(self.state().records.list_data(set, &listing))
    }
    async fn amend_records(&self, set: RecordSet, amendment: Amendment, now: Time) -> Result<(), StoreError> {
        self.state().records.amend(set, amendment, now)
    }
    async fn receipt(&self, project: ProjectId, key: &str) -> Result<Option<Json>, StoreError> {
        Ok(self.state().records.receipt(project, key))
    }
    async fn find_records(
        &self,
        sets: &[RecordSet],
        question: &str,
        limit: usize,
    ) -> Result<FoundRecords, StoreError> {
        Ok(self.state().records.find(sets, question, limit))
    }
    async fn stale_records(
        &self,
        kind: &'static str,
        limit: usize,
    ) -> Result<Vec<(RecordSet, Record)>, StoreError> {
        Ok(self.state().records.stale(kind, limit))
    }
    async fn reindex_records(&self, set: RecordSet, reindexed: Vec<Reindexed>) -> Result<(), StoreError> {
        self.state().records.reindex(set, reindexed);
        Ok(())
    }
    async fn record_sets(&self, kind: &'static str) -> Result<Vec<RecordSet>, StoreError> {
        Ok(self.state().records.sets(kind))
    }
    async fn due_records(
        &self,
        kind: &'static str,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(RecordSet, Record)>, StoreError> {
        Ok(self.state().records.due(kind, now, limit))
    }
    async fn next_due(&self, kind: &'static str) -> Result<Option<Time>, StoreError> {
        Ok(self.state().records.next_due(kind))
    }
}
