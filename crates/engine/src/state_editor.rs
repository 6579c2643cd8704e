//! The seam to changes by hand of what agents have stored: goals, memories, plans. Only the tools that store it know what
//! it may be.

use async_trait::async_trait;
use toolgate_kernel::id::EntityId;
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::time::Time;

use crate::records::{Record, RecordSet};
use crate::store::StoreError;
use crate::workspace::Only;

/// A change by hand of one record.
#[derive(Debug, Clone)]
pub struct Edit {
    /// Set of the record; its kind says which members the record has.
    pub set: RecordSet,
    /// Id of the record.
    pub id: String,
    /// Members to change, with their new values.
    pub changes: Json,
    /// Precondition of the change.
    pub only: Only,
    /// The record must have been made for this person (`askedBy`), if one is given.
    pub made_for: Option<EntityId>,
}

/// Why a record was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// There is no such record, or it was made for somebody else.
    #[error("there is no such record")]
    Missing,
    /// It has this version, which is not the expected one.
    #[error("it was changed meanwhile and has version {0}; nothing was changed, read it again")]
    Changed(u64),
    /// The changes are wrong in these ways.
    #[error("the changes have {} problems", .0.len())]
    Invalid(Vec<Problem>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Changes records by the rules of the tools that store them.
#[async_trait]
pub trait StateEditor: Send + Sync {
    /// Makes the change, or none of it; gives the record as it is then. Its id may be another one.
    async fn change(&self, edit: Edit, now: Time) -> Result<Record, EditError>;
}
