//! Records that another node changes between a read and the write that follows from it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use toolgate_engine::records::{Amendment, FoundRecords, Listing, Record, RecordSet, Records, Reindexed};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;

/// Passes on to a store, does something else just before the next amendment, and knows which lists were read.
pub struct MeanwhileRecords {
    inner: Arc<MemoryStore>,
    next: Mutex<Option<BoxFuture<'static, ()>>>,
    listed: Mutex<Vec<&'static str>>,
}

impl MeanwhileRecords {
    pub fn new(inner: Arc<MemoryStore>) -> Self {
        Self {
            inner,
            next: Mutex::default(),
            listed: Mutex::default(),
        }
    }

    /// How many pages of records of a kind were read.
    pub fn pages_read(&self, kind: &str) -> usize {
        let listed = self.listed.lock().unwrap();
        listed.iter().filter(|listed| **listed == kind).count()
    }

    /// Has this done before the next amendment.
    pub fn before_next(&self, work: impl Future<Output = ()> + Send + 'static) {
        *self.next.lock().unwrap() = Some(Box::pin(work));
    }
}

#[async_trait]
impl Records for MeanwhileRecords {
    async fn amend_records(&self, set: RecordSet, amendment: Amendment, now: Time) -> Result<(), StoreError> {
        let next = self.next.lock().unwrap().take();
        if let Some(work) = next {
            work.await;
        }
        self.inner.amend_records(set, amendment, now).await
    }

    async fn record(&self, set: RecordSet, id: &str) -> Result<Option<Record>, StoreError> {
        self.inner.record(set, id).await
    }
    async fn list_records(&self, set: RecordSet, listing: Listing) -> Result<Vec<Record>, StoreError> {
        self.listed.lock().unwrap().push(set.kind);
        self.inner.list_records(set, listing).await
    }
    async fn records_size(&self, set: RecordSet) -> Result<(u64, u64), StoreError> {
        self.inner.records_size(set).await
    }
    async fn list_data(
        &self,
        set: RecordSet,
        listing: Listing,
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.inner.list_data(set, listing).await
    }
    async fn receipt(&self, project: ProjectId, key: &str) -> Result<Option<Json>, StoreError> {
        self.inner.receipt(project, key).await
    }
    async fn find_records(
        &self,
        sets: &[RecordSet],
        question: &str,
        limit: usize,
    ) -> Result<FoundRecords, StoreError> {
        self.inner.find_records(sets, question, limit).await
    }
    async fn stale_records(
        &self,
        kind: &'static str,
        limit: usize,
    ) -> Result<Vec<(RecordSet, Record)>, StoreError> {
        self.inner.stale_records(kind, limit).await
    }
    async fn reindex_records(&self, set: RecordSet, reindexed: Vec<Reindexed>) -> Result<(), StoreError> {
        self.inner.reindex_records(set, reindexed).await
    }
    async fn record_sets(&self, kind: &'static str) -> Result<Vec<RecordSet>, StoreError> {
        self.inner.record_sets(kind).await
    }
    async fn due_records(
        &self,
        kind: &'static str,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(RecordSet, Record)>, StoreError> {
        self.inner.due_records(kind, now, limit).await
    }
    async fn next_due(&self, kind: &'static str) -> Result<Option<Time>, StoreError> {
        self.inner.next_due(kind).await
    }
}
