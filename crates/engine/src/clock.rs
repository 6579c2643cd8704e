//! The seam to time.

use toolgate_kernel::time::Time;

/// What time it is. Waiting is tokio's business; what the log says is this clock's.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Time;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Time(since.as_millis() as i64)
    }
}
