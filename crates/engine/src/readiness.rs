//! Whether the node can take work. Asked by anybody, without a key, so the store is asked at most once a second and by
//! one asker at a time.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::store::StoreError;

/// How long an answer of the store counts.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// Longest wait for the store.
const PROBE_TIME: Duration = Duration::from_secs(5);

/// The store's last answer.
#[derive(Default)]
pub(crate) struct Readiness {
    last: Mutex<Option<(Instant, bool)>>,
}

impl Readiness {
    /// Whether the probe succeeds, or did within the last second. Whoever asks during a probe waits for its end.
    pub async fn get(&self, probe: impl Future<Output = Result<(), StoreError>>) -> bool {
        let mut last = self.last.lock().await;
        if let Some((when, ready)) = *last
            && when.elapsed() < FRESH_FOR
        {
            return ready;
        }
        let ready = match timeout(PROBE_TIME, probe).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::error!(%error, "not ready: the store fails");
                false
            }
            Err(_) => {
                tracing::error!(limit = ?PROBE_TIME, "not ready: the store does not answer in time");
                false
            }
        };
        *last = Some((Instant::now(), ready));
        ready
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_store_is_asked_once_a_second_however_many_ask() {
        let readiness = Readiness::default();
        let probes = AtomicU32::new(0);
        let probe = || async {
            probes.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            Ok(())
        };
        let asked = (0..50).map(|_| readiness.get(probe()));
        let answers = futures_util::future::join_all(asked).await;
        assert!(answers.into_iter().all(|ready| ready));
        assert_eq!(probes.load(Ordering::SeqCst), 1);
        tokio::time::advance(FRESH_FOR).await;
        let full = async { Err(StoreError::Unavailable("full".into())) };
        assert!(!readiness.get(full).await);
        assert!(
            !readiness.get(probe()).await,
            "the last answer counts for a second"
        );
        tokio::time::advance(FRESH_FOR).await;
        assert!(readiness.get(probe()).await);
        tokio::time::advance(FRESH_FOR).await;
        assert!(!readiness.get(std::future::pending()).await, "no answer is no");
    }
}
