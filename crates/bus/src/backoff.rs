//! How long to wait before a connection is tried again.

use std::time::Duration;

/// The first wait; doubles each time.
const FIRST: Duration = Duration::from_millis(50);
/// The longest wait, and so how long a bus that is back may go unnoticed.
const LONGEST: Duration = Duration::from_secs(2);

/// Waits that grow until something succeeds.
pub(crate) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// Waits, and longer the next time.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(LONGEST);
    }
    /// It has succeeded.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}
