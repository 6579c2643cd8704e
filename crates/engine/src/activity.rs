//! What a project does: runs by status and hour, calls by outcome. Summed up from stored rows, so it is the same on every node
//! and after a restart.

use toolgate_kernel::event::Status;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;

use crate::Engine;
use crate::store::StoreError;
use crate::usage::UsageRecord;

const HOUR_MILLIS: i64 = 3600 * 1000;

/// Hours since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hour(pub i64);

impl Hour {
    /// The hour of a time.
    pub fn of(time: Time) -> Self {
        Self(time.0.div_euclid(HOUR_MILLIS))
    }
    /// Start of the hour.
    pub fn start(self) -> Time {
        Time(self.0.saturating_mul(HOUR_MILLIS))
    }
}

/// What a project's runs and calls come to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Activity {
    /// Number of runs that have not ended, by status; in no order.
    pub open: Vec<(Status, u64)>,
    /// Runs by the hour in which they were created; in no order.
    pub hours: Vec<HourRecord>,
    /// Calls that ended on the first day or later, by outcome and latency; in no order.
    pub calls: Vec<UsageRecord>,
}

/// Runs that were created in one hour and are in the same status now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourRecord {
    /// The hour.
    pub hour: Hour,
    /// Status of the runs.
    pub status: Status,
    /// Number of runs.
    pub runs: u64,
    /// Tokens that they have used.
    pub tokens: u64,
}

impl Engine {
    /// What a project's runs and calls come to: runs that are open now, and those created since `since`.
    pub async fn activity(&self, project: ProjectId, since: Time) -> Result<Activity, StoreError> {
        self.inner.store.activity(project, since).await
    }
}
