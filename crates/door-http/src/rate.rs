//! How often one key may ask.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use toolgate_kernel::id::{EntityId, KeyId};

use crate::Rate;

/// After so many checks, whoever has been silent is forgotten.
const CHECKS_PER_SWEEP: u32 = 4096;

/// Counts requests. The users of one public key count apart, so that none of them locks the others out.
pub(crate) struct Limiter {
    requests: DefaultKeyedRateLimiter<(KeyId, Option<EntityId>)>,
    checks: AtomicU32,
    clock: DefaultClock,
}

impl Limiter {
    /// A rate of zero counts as one.
    pub fn new(rate: Rate) -> Self {
        let at_least_one = |n: u32| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(at_least_one(rate.per_second)).allow_burst(at_least_one(rate.burst));
        Self {
            requests: RateLimiter::keyed(quota),
            checks: AtomicU32::new(0),
            clock: DefaultClock::default(),
        }
    }
    /// Counts one request; when it is one too many, says after how many seconds to come back.
    pub fn check(&self, key: KeyId, user: Option<EntityId>) -> Result<(), u64> {
        if self
            .checks
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(CHECKS_PER_SWEEP)
        {
            self.requests.retain_recent();
            self.requests.shrink_to_fit();
        }
        self.requests.check_key(&(key, user)).map_err(|refused| {
            let wait = refused.wait_time_from(self.clock.now());
            wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
        })
    }
}
