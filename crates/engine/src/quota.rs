//! Quotas of users with a public key: what each may store and have under way. A backend has none.
//!
//! What a user has is read from the store at most once a second, by one request at a time; what requests on this node
//! have added since is counted here. So a flood of requests costs the store one read a second, and as many requests at
//! once as one likes do not go beyond a quota together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolgate_kernel::id::{EntityId, ProjectId};
use toolgate_kernel::time::Time;

use crate::store::{Holdings, StoreError};
use crate::{Engine, Inner};

/// How long what the store said counts.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// Users whose counts are kept; beyond it those of users without a request under way are dropped and read again.
const USERS_MAX: usize = 10_000;

/// What one user may have in the spaces that it made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotaLimits {
    /// Spaces.
    pub spaces: u64,
    /// Bytes of their logs and files.
    pub stored_bytes: u64,
    /// Runs in them that have not ended.
    pub open_runs: u64,
}

impl QuotaLimits {
    /// Everybody may have everything.
    pub const UNLIMITED: Self = Self {
        spaces: u64::MAX,
        stored_bytes: u64::MAX,
        open_runs: u64::MAX,
    };
}

/// A request would give a user more than it may have. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "you have {has} {what} and this request adds {adds}, at most {max} are allowed for one user, see {setting}"
)]
pub struct QuotaExceeded {
    what: &'static str,
    has: u64,
    adds: u64,
    max: u64,
    setting: &'static str,
}

/// Why a request was not admitted.
#[derive(Debug, thiserror::Error)]
pub enum QuotaError {
    /// A quota is used up.
    #[error(transparent)]
    Exceeded(#[from] QuotaExceeded),
    /// The store failed; the request may be sent again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// Reserves what a request of this user is about to add; a backend, which is no user, reserves nothing.
    pub async fn reserve(
        &self,
        project: ProjectId,
        user: Option<EntityId>,
        adds: Holdings,
    ) -> Result<Reservation, QuotaError> {
        self.inner.reserve(project, user, adds).await
    }
}

impl Inner {
    pub(crate) async fn reserve(
        &self,
        project: ProjectId,
        user: Option<EntityId>,
        adds: Holdings,
    ) -> Result<Reservation, QuotaError> {
        let Some(user) = user else {
            return Ok(Reservation { of: None, adds });
        };
        let read = self.store.holdings(project, user);
        self.quotas
            .reserve((project, user), adds, self.clock.now(), read)
            .await
    }
}

/// A user of a project.
type Whose = (ProjectId, EntityId);

/// What users have, as far as requests on this node asked.
pub(crate) struct Quotas {
    limits: QuotaLimits,
    users: Mutex<HashMap<Whose, Arc<Known>>>,
}

impl Quotas {
    pub fn new(limits: QuotaLimits) -> Self {
        Self {
            limits,
            users: Mutex::default(),
        }
    }

    async fn reserve(
        &self,
        whose: Whose,
        adds: Holdings,
        now: Time,
        read: impl Future<Output = Result<Holdings, StoreError>>,
    ) -> Result<Reservation, QuotaError> {
        let known = self.known(whose);
        let reading = known.reading.lock().await;
        if !known.counts().is_fresh(now) {
            known.counts().forget_added();
            let stored = read.await?;
            known.counts().stored = Some((now, stored));
        }
        drop(reading);
        known.counts().add(adds, &self.limits)?;
        Ok(Reservation {
            of: Some(known),
            adds,
        })
    }

    fn known(&self, whose: Whose) -> Arc<Known> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() >= USERS_MAX && !users.contains_key(&whose) {
            users.retain(|_, known| Arc::strong_count(known) > 1);
        }
        users.entry(whose).or_default().clone()
    }
}

/// What one user has.
#[derive(Default)]
struct Known {
    /// Held while the store is read.
    reading: tokio::sync::Mutex<()>,
    counts: Mutex<Counts>,
}

impl Known {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Counts {
    /// What the store said, and when.
    stored: Option<(Time, Holdings)>,
    /// What requests added that the store may not have counted. Includes `reserved`.
    added: Holdings,
    /// What requests under way will add.
    reserved: Holdings,
}

impl Counts {
    fn is_fresh(&self, now: Time) -> bool {
        // A clock that was set back makes an answer from the future, which does not count either.
        let is_fresh = |(then, _): (Time, Holdings)| then <= now && now < then.after(FRESH_FOR);
        self.stored.is_some_and(is_fresh)
    }

    /// The store is about to be read and counts what was added before. A request under way may be counted twice then,
    /// until the next read, and none is missed.
    fn forget_added(&mut self) {
        self.added = self.reserved;
    }

    fn add(&mut self, adds: Holdings, limits: &QuotaLimits) -> Result<(), QuotaExceeded> {
        let stored = self.stored.map_or(Holdings::default(), |(_, stored)| stored);
        let has = stored.plus(self.added);
        let quotas = [
            (
                "bytes stored",
                has.bytes,
                adds.bytes,
                limits.stored_bytes,
                "quotas.stored_bytes",
            ),
            ("spaces", has.spaces, adds.spaces, limits.spaces, "quotas.spaces"),
            (
                "open runs",
                has.open_runs,
                adds.open_runs,
                limits.open_runs,
                "quotas.open_runs",
            ),
        ];
        for (what, has, adds, max, setting) in quotas {
            if adds > 0 && has.saturating_add(adds) > max {
                return Err(QuotaExceeded {
                    what,
                    has,
                    adds,
                    max,
                    setting,
                });
            }
        }
        self.added = self.added.plus(adds);
        self.reserved = self.reserved.plus(adds);
        Ok(())
    }
}

/// What one request is about to add. Dropped without [`Reservation::keep`], it adds nothing.
pub struct Reservation {
    of: Option<Arc<Known>>,
    adds: Holdings,
}

impl Reservation {
    /// The request has added it.
    pub fn keep(mut self) {
        if let Some(known) = self.of.take() {
            let mut counts = known.counts();
            counts.reserved = counts.reserved.minus(self.adds);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(known) = self.of.take() {
            let mut counts = known.counts();
            counts.reserved = counts.reserved.minus(self.adds);
            counts.added = counts.added.minus(self.adds);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const SPACE: Holdings = Holdings {
        spaces: 1,
        bytes: 10,
        open_runs: 0,
    };

    fn user(number: u128) -> Whose {
        let entity = EntityId::from_bytes(number.to_be_bytes());
        (ProjectId::from_bytes([1; 16]), entity)
    }

    fn quotas() -> Quotas {
        Quotas::new(QuotaLimits {
            spaces: 5,
            stored_bytes: 1000,
            open_runs: 5,
        })
    }

    #[tokio::test]
    async fn the_store_is_read_once_a_second_however_many_ask() {
        let quotas = quotas();
        let reads = AtomicU64::new(0);
        let ask = |now| {
            let read = async {
                reads.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                Ok(Holdings { spaces: 5, ..SPACE })
            };
            quotas.reserve(user(0), SPACE, now, read)
        };
        let asked = (0..50).map(|n| ask(Time(n)));
        let answers = futures_util::future::join_all(asked).await;
        assert!(answers.iter().all(Result::is_err));
        assert_eq!(reads.load(Ordering::SeqCst), 1);
        assert!(ask(Time(999)).await.is_err());
        assert_eq!(
            reads.load(Ordering::SeqCst),
            1,
            "also a refused request reads nothing"
        );
        assert!(ask(Time(1000)).await.is_err());
        assert_eq!(reads.load(Ordering::SeqCst), 2);
        assert!(ask(Time(0)).await.is_err());
        assert_eq!(reads.load(Ordering::SeqCst), 3, "the clock was set back");
    }

    #[tokio::test]
    async fn requests_at_once_do_not_go_beyond_a_quota_together() {
        let quotas = quotas();
        let stored = |spaces| async move { Ok(Holdings { spaces, ..SPACE }) };
        let asked = (0..10).map(|_| quotas.reserve(user(0), SPACE, Time(0), stored(2)));
        let answers = futures_util::future::join_all(asked).await;
        let mut held: Vec<_> = answers.into_iter().flatten().collect();
        assert_eq!(held.len(), 3);
        // One came to nothing, one was stored, one is under way while the store is read again.
        drop(held.pop());
        held.pop().expect("one of three").keep();
        let late = quotas.reserve(user(0), SPACE, Time(1000), stored(3)).await;
        assert!(late.is_ok());
        let over = quotas.reserve(user(0), SPACE, Time(1000), stored(3)).await;
        assert!(matches!(over, Err(QuotaError::Exceeded(_))));
    }

    #[tokio::test]
    async fn users_who_ask_nothing_now_are_forgotten() {
        let quotas = quotas();
        let nothing = || async { Ok(Holdings::default()) };
        let held = quotas.reserve(user(0), SPACE, Time(0), nothing()).await;
        for number in 1..=USERS_MAX as u128 {
            let reserved = quotas.reserve(user(number), SPACE, Time(0), nothing()).await;
            reserved.expect("far from the quota").keep();
        }
        let users = quotas.users.lock().expect("no panic holds it");
        assert!(users.len() <= USERS_MAX && users.contains_key(&user(0)));
        drop(held);
    }
}
