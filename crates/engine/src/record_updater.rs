//! Read-modify-write of records without lost updates.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use toolgate_kernel::time::Time;

use crate::records::{Amendment, RecordSet, Records};
use crate::store::StoreError;

/// Locks that record sets are spread over: the most sets that one process changes at the same time.
const LOCKS: usize = 64;
/// Most attempts at a change that conflicts with changes by other nodes.
const ATTEMPTS: u32 = 8;
/// Longest pause before the second attempt; it doubles with each further attempt.
const PAUSE_FIRST: Duration = Duration::from_millis(5);

/// Applies the changes of each record set one after the other. Clones share their locks.
#[derive(Clone)]
pub struct RecordUpdater {
    records: Arc<dyn Records>,
    /// A set always hashes to the same lock. Fair, and bounded however many sets there are.
    locks: Arc<[Mutex<()>; LOCKS]>,
    hasher: RandomState,
}

impl RecordUpdater {
    /// An updater of these records; two that are not clones of each other do not exclude each other.
    pub fn new(records: Arc<dyn Records>) -> Self {
        Self {
            records,
            locks: Arc::new(std::array::from_fn(|_| Mutex::default())),
            hasher: RandomState::new(),
        }
    }

    /// The records, for reading.
    pub fn records(&self) -> &Arc<dyn Records> {
        &self.records
    }

    /// Reads, decides on an amendment of the set and applies it, then returns the decision's second half. Both closures
    /// run again if another node changed the set in between.
    pub async fn update<S, T, E, R>(
        &self,
        set: RecordSet,
        now: Time,
        read: impl Fn() -> R,
        decide: impl Fn(S) -> Result<(Amendment, T), E>,
    ) -> Result<T, E>
    where
        R: Future<Output = Result<S, StoreError>>,
        E: From<StoreError>,
    {
        let attempt = || async {
            let (amendment, result) = match decide(read().await?) {
                Ok(decided) => decided,
                Err(rejection) => return Ok(Err(rejection)),
            };
            self.records.amend_records(set, amendment, now).await?;
            Ok(Ok(result))
        };
        self.in_turn(set, attempt).await?
    }

    /// Runs an attempt to change a set under the set's lock in this process. An attempt that conflicts with another
    /// node (`Conflict`) is repeated, a bounded number of times.
    pub async fn in_turn<T, F>(&self, set: RecordSet, attempt: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let lock = self.hasher.hash_one(set) as usize % LOCKS;
        let _locked = self.locks[lock].lock().await;
        for earlier in 1..ATTEMPTS {
            match attempt().await {
                Err(StoreError::Conflict) => tokio::time::sleep(Self::pause(earlier)).await,
                done => return done,
            }
        }
        attempt().await
    }

    /// A random pause, longer on average with each attempt, so that two nodes in conflict do not stay in step.
    fn pause(attempts: u32) -> Duration {
        let longest = PAUSE_FIRST * 2_u32.pow(attempts - 1);
        let share = RandomState::new().hash_one(attempts) % 1000;
        longest * share as u32 / 1000
    }
}
