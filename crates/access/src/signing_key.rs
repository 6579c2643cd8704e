//! Random keys of projects, in the store: what is signed with one outlives restarts and holds on every node.

use std::sync::Arc;

use serde_json::json;
use toolgate_engine::records::{Change, Expected, NewRecord, Owner, RecordSet, Records};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;

/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// Id of the record that holds a project's key.
const KEY_ID: &str = "current";

/// The keys of all projects for one purpose.
#[derive(Clone)]
pub struct SigningKeys {
    records: Arc<dyn Records>,
    kind: &'static str,
}

impl SigningKeys {
    /// Keys in records of this kind: one kind per purpose, so that no signature for one is good for another.
    pub fn new(records: Arc<dyn Records>, kind: &'static str) -> Self {
        Self { records, kind }
    }

    /// The project's key; none when nothing was signed yet.
    pub async fn find(&self, project: ProjectId) -> Result<Option<Vec<u8>>, StoreError> {
        let record = self.records.record(self.of(project), KEY_ID).await?;
        let bytes = record.and_then(|record| record.data);
        Ok(bytes.filter(|bytes| bytes.len() == KEY_BYTES))
    }

    /// The project's key; the first use makes it.
    pub async fn find_or_make(&self, project: ProjectId, now: Time) -> Result<Vec<u8>, StoreError> {
        if let Some(key) = self.find(project).await? {
            return Ok(key);
        }
        let mut random = vec![0; KEY_BYTES];
        getrandom::fill(&mut random).expect("the system gives random bytes");
        let record = NewRecord {
            id: KEY_ID.into(),
            body: json!({}).into(),
            text: None,
            data: Some(random),
            due: None,
        };
        let expected = vec![Expected {
            id: KEY_ID.into(),
            version: None,
        }];
        let made = self
            .records
            .change_records(self.of(project), expected, vec![Change::Put(record)], now)
            .await;
        match made {
            // Somebody else made one in the same moment: that one holds.
            Ok(()) | Err(StoreError::Conflict) => self.find(project).await?.ok_or(StoreError::Conflict),
            Err(error) => Err(error),
        }
    }

    /// Ends everything that was signed with the project's key: the next use makes a new one.
    pub async fn remove(&self, project: ProjectId, now: Time) -> Result<(), StoreError> {
        let changes = vec![Change::Clear];
        self.records
            .change_records(self.of(project), Vec::new(), changes, now)
            .await
    }

    fn of(&self, project: ProjectId) -> RecordSet {
        RecordSet {
            project,
            owner: Owner::Project,
            kind: self.kind,
        }
    }
}
