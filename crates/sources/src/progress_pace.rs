//! How often the progress of a call is told. A server may tell it thousands of times a second, and each time every reader of
//! the space would be told.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_mcp::Progress;

/// How often progress is told within [`SPAN`]. What comes beyond it waits for the next span; of several the last does.
const TOLD_MAX: u32 = 10;
const SPAN: Duration = Duration::from_secs(1);

/// The progress of one call.
pub(crate) struct ProgressPace {
    since: Instant,
    told: u32,
    held: Option<Progress>,
}

impl ProgressPace {
    pub fn new() -> Self {
        Self {
            since: Instant::now(),
            told: 0,
            held: None,
        }
    }

    /// What is to be told now that the server tells this.
    pub fn heard(&mut self, progress: Progress) -> Option<Progress> {
        if self.since.elapsed() >= SPAN {
            (self.since, self.told) = (Instant::now(), 0);
        }
        self.held = Some(progress);
        if self.told >= TOLD_MAX {
            return None;
        }
        self.told += 1;
        self.held.take()
    }

    /// Waits until there is something that was held back and is to be told now. Never ends when there is not.
    pub async fn due(&mut self) -> Progress {
        if self.held.is_none() {
            return std::future::pending().await;
        }
        tokio::time::sleep_until(self.since + SPAN).await;
        (self.since, self.told) = (Instant::now(), 1);
        self.held.take().expect("nobody else takes it")
    }

    /// What was held back, at the end of the call.
    pub fn rest(&mut self) -> Option<Progress> {
        self.held.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(progress: u32) -> Progress {
        Progress {
            progress: progress.into(),
            total: None,
            message: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progress_is_told_a_few_times_a_second_and_the_last_is_never_lost() {
        let mut pace = ProgressPace::new();
        let told: Vec<Progress> = (0..1_000).filter_map(|number| pace.heard(at(number))).collect();
        assert_eq!(told.len(), TOLD_MAX as usize);
        let began = Instant::now();
        assert_eq!(pace.due().await, at(999));
        assert_eq!(began.elapsed(), SPAN);
        assert_eq!(pace.heard(at(1_000)), Some(at(1_000)));
        let told = (0..1_000).filter_map(|number| pace.heard(at(number))).count();
        assert_eq!(told, TOLD_MAX as usize - 2);
        assert_eq!(pace.rest(), Some(at(999)));
        assert_eq!(pace.rest(), None);
    }
}
