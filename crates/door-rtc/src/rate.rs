//! How often one peer may say something.

use std::time::Duration;

use tokio::time::Instant;

/// A bucket that fills with time and gives one token per message.
pub(crate) struct Bucket {
    tokens: f64,
    burst: f64,
    per_second: f64,
    filled: Instant,
    /// Messages refused since the last one that was let through.
    refused: u32,
}

impl Bucket {
    /// A full bucket. A rate of zero counts as one.
    pub fn new(per_second: u32, burst: u32) -> Self {
        let burst = f64::from(burst.max(1));
        Self {
            tokens: burst,
            burst,
            per_second: f64::from(per_second.max(1)),
            filled: Instant::now(),
            refused: 0,
        }
    }

    /// Takes a token for one message; without one, how long until there is one.
    pub fn take(&mut self) -> Result<(), Duration> {
        let now = Instant::now();
        let since = now.duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + since * self.per_second).min(self.burst);
        self.filled = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            self.refused = 0;
            return Ok(());
        }
        self.refused += 1;
        Err(Duration::from_secs_f64((1.0 - self.tokens) / self.per_second))
    }

    /// Messages refused since the last one that was let through.
    pub fn refused(&self) -> u32 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_the_rate_counts() {
        let mut bucket = Bucket::new(10, 3);
        for _ in 0..3 {
            assert!(bucket.take().is_ok());
        }
        assert!(bucket.take().is_err() && bucket.take().is_err());
        assert_eq!(bucket.refused(), 2);
        tokio::time::advance(Duration::from_millis(101)).await;
        assert!(bucket.take().is_ok() && bucket.refused() == 0);
        assert!(bucket.take().is_err());
    }
}
