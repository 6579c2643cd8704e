//! A clock that follows tokio's: paused and moved by `tokio::time::pause` and `advance`.

use std::sync::atomic::{AtomicI64, Ordering};

use tokio::time::Instant;
use toolgate_engine::clock::Clock;
use toolgate_kernel::time::Time;

/// Starts at a fixed time.
pub struct HeldClock {
    start: Instant,
    /// Offset from tokio's clock, in milliseconds.
    off: AtomicI64,
}

impl HeldClock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            off: AtomicI64::new(0),
        }
    }
    /// Shifts the clock by `millis` milliseconds, forward or back.
    pub fn jump(&self, millis: i64) {
        self.off.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Default for HeldClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for HeldClock {
    fn now(&self) -> Time {
        const START: i64 = 1_800_000_000_000;
        Time(START + self.off.load(Ordering::SeqCst) + self.start.elapsed().as_millis() as i64)
    }
}
