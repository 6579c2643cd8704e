//! The seam to the data that built-in tools store: goals, memories, plans, documents, files. All of it has one
//! shape, so that a new tool needs no new table. Tools change it through [`crate::record_updater`].

use std::time::Duration;

use async_trait::async_trait;
use toolgate_kernel::id::{EntityId, ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_search::{ANALYSIS, Weighed, index_terms};

use crate::store::StoreError;

/// Owner of records. No owner ever sees the records of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// The project: shared by all its agents.
    Project,
    /// One entity: an agent or a user.
    Entity(EntityId),
    /// One space: shared by its members.
    Space(SpaceId),
}

/// Identifies the records of one kind that one owner has in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordSet {
    /// Project of the owner.
    pub project: ProjectId,
    /// Owner of the records.
    pub owner: Owner,
    /// Kind of the records: `goal`, `memory`, `plan`, …
    pub kind: &'static str,
}

/// A stored record.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Id, unique in its set.
    pub id: String,
    /// Content, in the JSON form of its kind.
    pub body: Json,
    /// Binary content: a file, an embedding.
    pub data: Option<Vec<u8>>,
    /// Time at which it is returned by [`Records::due_records`]; never if there is none.
    pub due: Option<Time>,
    /// Time at which it was first stored.
    pub created: Time,
    /// Time of its last change.
    pub updated: Time,
    /// Number of its changes, from 1.
    pub version: u64,
}

/// A record to store; it replaces the record with the same id.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRecord {
    /// Id, unique in its set.
    pub id: String,
    /// Content, in the JSON form of its kind.
    pub body: Json,
    /// What full-text search finds it by; nothing if there is none.
    pub text: Option<SearchText>,
    /// Binary content: a file, an embedding.
    pub data: Option<Vec<u8>>,
    /// Time at which it is returned by [`Records::due_records`]; never if there is none.
    pub due: Option<Time>,
}

/// A text in the form in which full-text search finds it. Stores keep which records have which terms, and know nothing of
/// languages.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchText {
    /// Version of the analysis that made the terms.
    pub analysis: u32,
    /// Terms without spaces and quotes, each once.
    pub terms: Vec<String>,
}

impl SearchText {
    /// Analyses a text. Words of the heading count more. Takes about a microsecond per byte.
    pub fn new(heading: &str, text: &str) -> Self {
        Self {
            analysis: ANALYSIS,
            terms: index_terms(heading, text),
        }
    }
}

/// A record whose terms are to be replaced; the record stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Reindexed {
    /// Id of the record.
    pub id: String,
    /// Version that the terms are of; no effect if the record has another one by now.
    pub version: u64,
    /// The new terms.
    pub text: SearchText,
}

/// One change of a record set.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Stores a record.
    Put(NewRecord),
    /// Removes the record with this id; no effect if there is none.
    Remove(String),
    /// Removes all records.
    Clear,
}

/// Changes of one record set that are applied in one transaction, all or none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Amendment {
    /// Preconditions; `Conflict` if one does not hold.
    pub expected: Vec<Expected>,
    /// Most records of the set afterwards; `Conflict` if there would be more.
    pub at_most: Option<u64>,
    /// Changes, applied in order.
    pub changes: Vec<Change>,
    /// Stored with the changes; `Exists` if it is stored already, which means that the changes are too.
    pub receipt: Option<Receipt>,
    /// Orders the changes among those of other sets.
    pub turn: Option<Turn>,
}

/// A record that amendments of several sets have in common: each expects the version that it has read and counts it up, so
/// of two that have read the same one is applied, and the other is a `Conflict`.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Set of the record, in the project of the amended set.
    pub set: RecordSet,
    /// Id of the record. Its content is of no interest.
    pub id: String,
    /// The version it must have; `None` if it must not exist.
    pub version: Option<u64>,
}

impl Turn {
    /// The record with its next version.
    pub fn record(&self) -> NewRecord {
        NewRecord {
            id: self.id.clone(),
            body: serde_json::json!({}).into(),
            text: None,
            data: None,
            due: None,
        }
    }
}

/// Proof that an operation was done, with its result: repeating it after a crash returns the result instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    /// Idempotency key of the operation, unique in the project: the id of a call.
    pub key: String,
    /// Result of the operation.
    pub answer: Json,
    /// Time of the operation; the receipt is deleted [`RECEIPTS_KEPT`] later.
    pub time: Time,
}

/// Retention of receipts: longer than the downtime after which interrupted runs still resume.
pub const RECEIPTS_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// A precondition of changes: optimistic concurrency on one record.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Id of the record.
    pub id: String,
    /// The version it must have; `None` if it must not exist.
    pub version: Option<u64>,
}

/// A page of records, in the order of their ids.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// Only ids with this prefix.
    pub prefix: String,
    /// Only ids after this one.
    pub after: Option<String>,
    /// Most records of the page.
    pub limit: usize,
}

/// A hit of full-text search.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Set of the record.
    pub set: RecordSet,
    /// The record, without its data.
    pub record: Record,
    /// Relevance: higher is better, comparable only within one search.
    pub score: f64,
}

/// Result of a full-text search.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundRecords {
    /// Hits, best first.
    pub hits: Vec<Found>,
    /// The question, with what each of its terms is worth in these sets: finds the place in a hit's text.
    pub query: Weighed,
}

/// Storage of records for built-in tools, with the guarantees of [`crate::store::Store`].
#[async_trait]
pub trait Records: Send + Sync {
    /// The record with this id.
    async fn record(&self, set: RecordSet, id: &str) -> Result<Option<Record>, StoreError>;
    /// A page of records, without their data.
    async fn list_records(&self, set: RecordSet, listing: Listing) -> Result<Vec<Record>, StoreError>;
    /// Number of records in a set, and total bytes of their bodies and data.
    async fn records_size(&self, set: RecordSet) -> Result<(u64, u64), StoreError>;
    /// Ids and data of a page of records; those without data are skipped.
    async fn list_data(&self, set: RecordSet, listing: Listing)
    -> Result<Vec<(String, Vec<u8>)>, StoreError>;
    /// Applies an amendment in one transaction, all or nothing.
    async fn amend_records(&self, set: RecordSet, amendment: Amendment, now: Time) -> Result<(), StoreError>;
    /// Applies the changes in order, all or none; `Conflict` if a precondition does not hold.
    async fn change_records(
        &self,
        set: RecordSet,
        expected: Vec<Expected>,
        changes: Vec<Change>,
        now: Time,
    ) -> Result<(), StoreError> {
        let amendment = Amendment {
            expected,
            changes,
            ..Amendment::default()
        };
        self.amend_records(set, amendment, now).await
    }
    /// Result of the operation with this idempotency key, if it was done.
    async fn receipt(&self, project: ProjectId, key: &str) -> Result<Option<Json>, StoreError>;
    /// Full-text search in these sets as if they were one: records whose text has any of the words of a question, best
    /// first. See [`toolgate_search`] for what matches.
    async fn find_records(
        &self,
        sets: &[RecordSet],
        question: &str,
        limit: usize,
    ) -> Result<FoundRecords, StoreError>;
    /// Records of a kind whose terms are of an earlier analysis, of all projects, with their data. No search finds them
    /// until they are indexed again.
    async fn stale_records(
        &self,
        kind: &'static str,
        limit: usize,
    ) -> Result<Vec<(RecordSet, Record)>, StoreError>;
    /// Replaces the terms of records that still have the given version.
    async fn reindex_records(&self, set: RecordSet, reindexed: Vec<Reindexed>) -> Result<(), StoreError>;
    /// All sets of a kind that have records, of all projects.
    async fn record_sets(&self, kind: &'static str) -> Result<Vec<RecordSet>, StoreError>;
    /// Records of a kind that are due by `now`, of all projects, earliest first.
    async fn due_records(
        &self,
        kind: &'static str,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(RecordSet, Record)>, StoreError>;
    /// Time at which the next record of a kind is due.
    async fn next_due(&self, kind: &'static str) -> Result<Option<Time>, StoreError>;
}
