//! The seam to the wall clock.

use toolgate_kernel::time::Time;

/// Source of the times in the log. Timeouts and pauses use tokio's clock instead.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Time;
}

/// The system clock.
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
