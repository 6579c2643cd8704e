//! Work that keeps a thread busy, such as checking a large value against a schema: done off the runtime's threads, a
//! few pieces at a time, users in turns. Requests that need none of it do not wait for it.

use std::sync::Arc;

use toolgate_fair::{Limits, Permit, Queue, Share, Shares, Spare};

/// Pieces of work of one user at the same time.
const PER_USER: usize = 1;
/// Requests whose work waits or is done; further ones are refused. The work of runs is bounded by the number of runs.
const REQUESTS: Shares = Shares {
    all: 1024,
    tenant: 768,
    user: 64,
};

/// Too many requests wait for work of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "too many requests wait to be checked: at most {} of one user, {} of one project and {} in all, try again",
    REQUESTS.user,
    REQUESTS.tenant,
    REQUESTS.all
)]
pub struct TooManyWait;

/// Threads for work that keeps them busy.
pub(crate) struct BlockingPool {
    queue: Arc<Queue>,
    requests: Arc<Queue>,
}

impl BlockingPool {
    /// Half of the processors: the other half is for requests.
    pub fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let all = (processors / 2).max(1);
        let running = Shares {
            all,
            tenant: all,
            user: PER_USER,
        };
        // Whoever waits is a request that was admitted, or a run under way, and those are bounded where they begin.
        let limits = Limits {
            running,
            waiting: Shares::UNLIMITED,
            waiting_bytes: Shares::UNLIMITED,
            spare: Spare::NONE,
        };
        let requests = Limits {
            running: REQUESTS,
            ..limits
        };
        Self {
            queue: Queue::new(limits),
            requests: Queue::new(requests),
        }
    }

    /// Admits a request with work to do; it counts until the permit is dropped.
    pub fn admit(&self, share: Share) -> Result<Permit, TooManyWait> {
        self.requests.try_turn(share).ok_or(TooManyWait)
    }

    /// Does `work` when it is the turn of `share`.
    pub async fn run<T: Send + 'static>(&self, share: Share, work: impl FnOnce() -> T + Send + 'static) -> T {
        let permit = self.queue.turn(share, 0).await;
        let permit = permit.expect("there is room for everybody who waits");
        let work = tokio::task::spawn_blocking(move || {
            let done = work();
            // Also when nobody waits for the result any more, the turn lasts as long as the work.
            drop(permit);
            done
        });
        match work.await {
            Ok(done) => done,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime goes down, and this task with it.
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_user_has_so_many_requests_that_wait_and_others_are_not_concerned() {
        let pool = BlockingPool::new();
        let share = |user| Share {
            tenant: 1,
            user: Some(user),
        };
        let mut admitted: Vec<Permit> = (0..REQUESTS.user)
            .map(|_| pool.admit(share(1)).expect("there is room"))
            .collect();
        assert_eq!(pool.admit(share(1)).err(), Some(TooManyWait));
        assert!(pool.admit(share(2)).is_ok());
        // Runs do their work all the same.
        assert_eq!(pool.run(share(1), || 7).await, 7);
        admitted.pop();
        assert!(pool.admit(share(1)).is_ok());
    }
}
