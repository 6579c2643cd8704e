//! How what is kept is changed: read, decided, written, with nobody in between.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use toolgate_kernel::time::Time;

use crate::records::{Amendment, Records, Shelf};
use crate::store::StoreError;

/// Shelves of one process that are changed at once, at most.
const TURNS: usize = 64;
/// How often a change is made again that another node came between.
const ATTEMPTS: u32 = 8;
/// Longest pause before the second attempt; twice as long before each further one.
const PAUSE_FIRST: Duration = Duration::from_millis(5);

/// Records whose shelves are changed one change after the other. Clones take turns with each other.
#[derive(Clone)]
pub struct Shelves {
    records: Arc<dyn Records>,
    /// A shelf always waits at the same of these. Fair, and bounded however many shelves there are.
    turns: Arc<[Mutex<()>; TURNS]>,
    spread: RandomState,
}

impl Shelves {
    /// For these records.
    pub fn new(records: Arc<dyn Records>) -> Self {
        Self {
            records,
            turns: Arc::new(std::array::from_fn(|_| Mutex::default())),
            spread: RandomState::new(),
        }
    }

    /// What they are made of, for reading.
    pub fn records(&self) -> &Arc<dyn Records> {
        &self.records
    }

    /// Reads something, decides on it how the shelf changes, and changes it so. Gives what was decided with the change.
    pub async fn update<S, T, E, R>(
        &self,
        shelf: Shelf,
        now: Time,
        read: impl Fn() -> R,
        decide: impl Fn(S) -> Result<(Amendment, T), E>,
    ) -> Result<T, E>
    where
        R: Future<Output = Result<S, StoreError>>,
        E: From<StoreError>,
    {
        let attempt = || async {
            let (amendment, told) = match decide(read().await?) {
                Ok(decided) => decided,
                Err(refusal) => return Ok(Err(refusal)),
            };
            self.records.amend_shelf(shelf, amendment, now).await?;
            Ok(Ok(told))
        };
        self.in_turn(shelf, attempt).await?
    }

    /// Makes an attempt at changing a shelf while nobody else in this process does. One that another node came between
    /// (`Conflict`) is made again, a bounded number of times.
    pub async fn in_turn<T, F>(&self, shelf: Shelf, attempt: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let turn = self.spread.hash_one(shelf) as usize % TURNS;
        let _turn = self.turns[turn].lock().await;
        for earlier in 1..ATTEMPTS {
            match attempt().await {
                Err(StoreError::Conflict) => tokio::time::sleep(Self::pause(earlier)).await,
                done => return done,
            }
        }
        attempt().await
    }

    /// Some time, longer on average with each attempt: nodes that met once do not meet again.
    fn pause(attempts: u32) -> Duration {
        let longest = PAUSE_FIRST * 2_u32.pow(attempts - 1);
        let share = RandomState::new().hash_one(attempts) % 1000;
        longest * share as u32 / 1000
    }
}
