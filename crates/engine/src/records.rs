//! The seam to what the gateway's own tools keep: goals, memories, plans, documents, files. One shape for all of
//! them, so that a new tool needs no new table. [`crate::shelves`] is how they are changed.

use std::time::Duration;

use async_trait::async_trait;
use toolgate_kernel::id::{EntityId, ProjectId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use crate::store::StoreError;

/// Whose records they are. Nobody ever sees another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// The whole project's.
    Project,
    /// A participant's.
    Entity(EntityId),
    /// A conversation's.
    Space(SpaceId),
}

/// Where records of one kind and one owner stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shelf {
    /// In which project.
    pub project: ProjectId,
    /// Whose.
    pub owner: Owner,
    /// What they are: `goal`, `memory`, `plan`, …
    pub kind: &'static str,
}

/// One thing that is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Unique on its shelf.
    pub id: String,
    /// What it says.
    pub body: Json,
    /// Bytes that belong to it.
    pub data: Option<Vec<u8>>,
    /// When it has to be looked at.
    pub due: Option<Time>,
    /// When it was first put there.
    pub created: Time,
    /// When it was last changed.
    pub updated: Time,
    /// Counts its changes, from 1.
    pub version: u64,
}

/// A record to be put on a shelf, in place of the one with its id.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRecord {
    /// Unique on its shelf.
    pub id: String,
    /// What it says.
    pub body: Json,
    /// The words it is found by.
    pub text: Option<String>,
    /// Bytes that belong to it.
    pub data: Option<Vec<u8>>,
    /// When it has to be looked at.
    pub due: Option<Time>,
}

/// What is done to a shelf.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Puts one there.
    Put(NewRecord),
    /// Takes one away; nothing when there is none.
    Remove(String),
    /// Takes all away.
    Clear,
}

/// What is done to a shelf at once: all of it, or nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Amendment {
    /// What must be so before; otherwise `Conflict`.
    pub expected: Vec<Expected>,
    /// Records that the shelf may have after it; with more of them it is a `Conflict`.
    pub at_most: Option<u64>,
    /// Made in order.
    pub changes: Vec<Change>,
    /// Kept with the changes; `Exists` when it is there already, and then so are they.
    pub receipt: Option<Receipt>,
}

/// Says that something was done, and what came of it: whoever does it again after a crash finds this instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    /// Names what was done, in its project: the id of a call.
    pub key: String,
    /// What came of it.
    pub answer: Json,
    /// When; forgotten after [`RECEIPTS_KEPT`].
    pub time: Time,
}

/// How long receipts are kept: longer than a gateway stays down before its runs go on.
pub const RECEIPTS_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// What must be so for changes to be made; otherwise `Conflict`.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// The record.
    pub id: String,
    /// The version it has; none when it is not there.
    pub version: Option<u64>,
}

/// Which records to list, by id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// Ids that begin so.
    pub prefix: String,
    /// Ids behind this one.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// A record that words were found in.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The record, without its bytes.
    pub record: Record,
    /// How well it fits; higher is better, and only comparable within one search.
    pub score: f64,
    /// A piece of its text around what was found.
    pub snippet: String,
}

/// What remembers for the gateway's own tools. The same promises as [`crate::store::Store`].
#[async_trait]
pub trait Records: Send + Sync {
    /// One record.
    async fn record(&self, shelf: Shelf, id: &str) -> Result<Option<Record>, StoreError>;
    /// Records by id, without their bytes.
    async fn list_records(&self, shelf: Shelf, listing: Listing) -> Result<Vec<Record>, StoreError>;
    /// How many records a shelf has, and the bytes of their bodies and data.
    async fn shelf_size(&self, shelf: Shelf) -> Result<(u64, u64), StoreError>;
    /// The bytes of records, by id; those without any are left out.
    async fn list_data(&self, shelf: Shelf, listing: Listing) -> Result<Vec<(String, Vec<u8>)>, StoreError>;
    /// Changes a shelf, all or nothing.
    async fn amend_shelf(&self, shelf: Shelf, amendment: Amendment, now: Time) -> Result<(), StoreError>;
    /// Makes the changes in order, all or none; `Conflict` when something is not as expected.
    async fn change_records(
        &self,
        shelf: Shelf,
        expected: Vec<Expected>,
        changes: Vec<Change>,
        now: Time,
    ) -> Result<(), StoreError> {
        let amendment = Amendment {
            expected,
            changes,
            ..Amendment::default()
        };
        self.amend_shelf(shelf, amendment, now).await
    }
    /// What came of something that was done before.
    async fn receipt(&self, project: ProjectId, key: &str) -> Result<Option<Json>, StoreError>;
    /// Records whose text has any of the words, best first. Case and accents do not matter, nor the usual endings of
    /// English words.
    async fn find_records(&self, shelf: Shelf, words: &str, limit: usize) -> Result<Vec<Found>, StoreError>;
    /// Records of a kind that have to be looked at by `now`, of all projects, most urgent first.
    async fn due_records(
        &self,
        kind: &'static str,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Shelf, Record)>, StoreError>;
    /// When the next record of a kind has to be looked at.
    async fn next_due(&self, kind: &'static str) -> Result<Option<Time>, StoreError>;
}
