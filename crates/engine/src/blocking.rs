//! Work that keeps a thread busy, such as checking a large value against a schema: done off the runtime's threads, a
//! few pieces at a time, users in turns. Requests that need none of it do not wait for it.

use std::sync::Arc;

use toolgate_fair::{Limits, Queue, Share, Shares};

/// Pieces of work of one user at the same time.
const PER_USER: usize = 1;

/// Threads for work that keeps them busy.
pub(crate) struct BlockingPool {
    queue: Arc<Queue>,
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
        // Whoever waits is a request or a run under way, and those are bounded where they begin.
        let limits = Limits {
            running,
            waiting: Shares::UNLIMITED,
            waiting_bytes: Shares::UNLIMITED,
        };
        Self {
            queue: Queue::new(limits),
        }
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
