//! A clock that goes with tokio's: held and moved by `tokio::time::pause` and `advance`.

use tokio::time::Instant;
use toolgate_engine::clock::Clock;
use toolgate_kernel::time::Time;

/// Starts at a fixed moment.
pub struct HeldClock {
    start: Instant,
}

impl HeldClock {
    /// From now on.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
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
        Time(START + self.start.elapsed().as_millis() as i64)
    }
}
