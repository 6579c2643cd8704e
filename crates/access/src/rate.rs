//! How often one caller may ask.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use toolgate_kernel::id::{EntityId, KeyId, ProjectId, SessionId};

use crate::{Rate, Rates};

/// After so many checks, whoever has been silent is forgotten.
const CHECKS_PER_SWEEP: u32 = 4096;

/// Attempts with one login code: a person needs one.
const LOGIN_CODE: Rate = Rate {
    per_second: 1,
    burst: 5,
};

/// Whose requests are counted together. The users of one public key count apart, so that none of them locks the
/// others out, and one user's requests with several keys count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Asker {
    Operator,
    Backend(KeyId),
    User(EntityId),
    /// A browser that has signed in.
    Session(SessionId),
    /// Everybody who shows a login code.
    Logins,
    /// Whoever shows a login code with this id, however its secret reads.
    LoginCode([u8; 16]),
    /// Whoever has this link of a backend, by its hash.
    Link([u8; 32]),
    /// Whoever has a link that a backend of this project made.
    LinksOfProject(ProjectId),
    /// Whoever has a link that this user made.
    LinksOfUser(EntityId),
}

/// Counts requests.
pub(crate) struct Limiter {
    secret: DefaultKeyedRateLimiter<Asker>,
    public: DefaultKeyedRateLimiter<Asker>,
    logins: DefaultKeyedRateLimiter<Asker>,
    /// Bursts of the three, as many cells as one request may cost.
    bursts: Rates,
    /// Nodes that share the rates.
    nodes: AtomicU32,
    checks: AtomicU32,
    clock: DefaultClock,
}

impl Limiter {
    /// A rate of zero counts as one.
    pub fn new(rates: Rates) -> Self {
        Self {
            secret: RateLimiter::keyed(quota(rates.secret)),
            public: RateLimiter::keyed(quota(rates.public)),
            logins: RateLimiter::keyed(quota(LOGIN_CODE)),
            bursts: rates,
            nodes: AtomicU32::new(1),
            checks: AtomicU32::new(0),
            clock: DefaultClock::default(),
        }
    }
    /// Has so many nodes share the rates: each lets through its part of them.
    pub fn share_among(&self, nodes: u32) {
        self.nodes.store(nodes.max(1), Ordering::Relaxed);
    }
    /// Counts one request; when it is one too many, says after how many seconds to come back.
    pub fn check(&self, asker: Asker) -> Result<(), u64> {
        if self
            .checks
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(CHECKS_PER_SWEEP)
        {
            for requests in [&self.secret, &self.public, &self.logins] {
                requests.retain_recent();
                requests.shrink_to_fit();
            }
        }
        let (requests, burst) = match asker {
            Asker::Operator
            | Asker::Backend(_)
            | Asker::Session(_)
            | Asker::Logins
            | Asker::LinksOfProject(_) => (&self.secret, self.bursts.secret.burst),
            Asker::LoginCode(_) => (&self.logins, LOGIN_CODE.burst),
            Asker::User(_) | Asker::Link(_) | Asker::LinksOfUser(_) => {
                (&self.public, self.bursts.public.burst)
            }
        };
        // With three nodes a request counts as three on each of them. One that would never fit counts as a whole burst.
        let cost = self.nodes.load(Ordering::Relaxed).min(burst);
        let cost = NonZeroU32::new(cost).unwrap_or(NonZeroU32::MIN);
        let Ok(checked) = requests.check_key_n(&asker, cost) else {
            return Ok(());
        };
        checked.map_err(|refused| {
            let wait = refused.wait_time_from(self.clock.now());
            wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
        })
    }
}

fn quota(rate: Rate) -> Quota {
    let at_least_one = |n: u32| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
    Quota::per_second(at_least_one(rate.per_second)).allow_burst(at_least_one(rate.burst))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn let_through(limiter: &Limiter, number: u8) -> usize {
        let asker = Asker::User(EntityId::from_bytes([number; 16]));
        (0..100).take_while(|_| limiter.check(asker).is_ok()).count()
    }

    #[test]
    fn each_of_several_nodes_lets_its_part_through() {
        let rate = Rate {
            per_second: 1,
            burst: 12,
        };
        let limiter = Limiter::new(Rates {
            secret: rate,
            public: rate,
        });
        for (number, (nodes, part)) in [(0, 12), (1, 12), (3, 4), (12, 1), (1_000, 1)]
            .into_iter()
            .enumerate()
        {
            limiter.share_among(nodes);
            assert_eq!(let_through(&limiter, number as u8), part, "{nodes} nodes");
        }
    }
}
