//! Scheduler of stored work: queries for due items, performs them one by one, and sleeps until the next is due.
//!
//! One item never blocks others. An item that cannot be read or that panics is dead-lettered, and after a failure of
//! the store it pauses.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use toolgate_engine::store::StoreError;
use toolgate_kernel::time::Time;

/// Items per query.
const BATCH: usize = 100;
/// Most queries per pass: an item that stays due is left for the next pass.
const BATCHES_MAX: usize = 100;
/// Shortest time between two passes.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Pause after a failure of the store.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(5);

/// A kind of work with due times.
#[async_trait]
pub(crate) trait DueWork: Send + Sync {
    /// One item of work.
    type Item: Send + Sync;
    /// Name of the item, for the log.
    const NAME: &'static str;
    /// Longest time between two passes: other nodes create work too.
    const LOOK_EVERY: Duration;

    /// The current time.
    fn now(&self) -> Time;
    /// Items that are due now, earliest first.
    async fn due(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError>;
    /// Time at which the next item is due.
    async fn next_due(&self) -> Result<Option<Time>, StoreError>;
    /// Performs an item. Afterwards it is no longer due, unless the store failed.
    async fn perform(&self, item: &Self::Item) -> Result<(), StoreError>;
    /// Stores that an item can never be performed, so that it is no longer due.
    async fn dead_letter(&self, item: &Self::Item) -> Result<(), StoreError>;
    /// Completes when there may be work earlier than the last pass has seen.
    async fn woken(&self) {
        std::future::pending().await
    }
}

/// Performs work when it is due.
pub(crate) struct DueLoop<'a, W>(pub &'a W);

impl<W: DueWork> DueLoop<'_, W> {
    /// Performs due work until `stop` fires. The item in progress is then dropped.
    pub async fn watch(&self, stop: CancellationToken) {
        while let Some(looked) = stop.run_until_cancelled(self.work_off()).await {
            let rest = async {
                match looked {
                    Err(error) => {
                        tracing::warn!(%error, "the store fails; {} work is left alone for a while", W::NAME);
                        tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                    }
                    Ok(()) => {
                        let sleep = tokio::time::sleep(self.until_next().await);
                        tokio::select! {
                            () = sleep => {}
                            () = self.0.woken() => {}
                        }
                    }
                }
            };
            if stop.run_until_cancelled(rest).await.is_none() {
                return;
            }
        }
    }

    /// Performs everything that is due now, once; stops at the first failure of the store.
    pub async fn work_off(&self) -> Result<(), StoreError> {
        for _ in 0..BATCHES_MAX {
            let items = self.0.due(BATCH).await?;
            for item in &items {
                self.perform(item).await?;
            }
            if items.len() < BATCH {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn perform(&self, item: &W::Item) -> Result<(), StoreError> {
        let done = AssertUnwindSafe(self.0.perform(item)).catch_unwind().await;
        let why = match done {
            Ok(Err(StoreError::Corrupt(why))) => why,
            Ok(done) => return done,
            Err(_) => "it broke down".to_owned(),
        };
        tracing::error!(why, "a {} is dead-lettered", W::NAME);
        match self.0.dead_letter(item).await {
            // Another node has handled it.
            Err(StoreError::Conflict) => Ok(()),
            done => done,
        }
    }

    async fn until_next(&self) -> Duration {
        match self.0.next_due().await {
            Ok(Some(due)) => due.since(self.0.now()).clamp(PAUSE_MIN, W::LOOK_EVERY),
            Ok(None) | Err(_) => W::LOOK_EVERY,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Words that are due until they are performed or dead-lettered.
    #[derive(Default)]
    struct Words {
        due: Mutex<Vec<&'static str>>,
        done: Mutex<Vec<String>>,
    }

    impl Words {
        fn end(&self, word: &str, how: &str) {
            self.due.lock().unwrap().retain(|other| *other != word);
            self.done.lock().unwrap().push(format!("{word} {how}"));
        }
    }

    #[async_trait]
    impl DueWork for Words {
        type Item = &'static str;
        const NAME: &'static str = "word";
        const LOOK_EVERY: Duration = Duration::from_secs(1);

        fn now(&self) -> Time {
            Time(1)
        }
        async fn due(&self, limit: usize) -> Result<Vec<&'static str>, StoreError> {
            Ok(self.due.lock().unwrap().iter().copied().take(limit).collect())
        }
        async fn next_due(&self) -> Result<Option<Time>, StoreError> {
            Ok(Some(Time(0)))
        }
        async fn perform(&self, word: &&'static str) -> Result<(), StoreError> {
            match *word {
                "panics" => panic!("as the test wants"),
                "unreadable" => Err(StoreError::Corrupt("on purpose".into())),
                "unlucky" => {
                    self.done.lock().unwrap().push("unlucky tried".into());
                    Err(StoreError::Timeout)
                }
                word => {
                    self.end(word, "done");
                    Ok(())
                }
            }
        }
        async fn dead_letter(&self, word: &&'static str) -> Result<(), StoreError> {
            self.end(word, "dead-lettered");
            Ok(())
        }
    }

    async fn check(due: &[&'static str], expected: &[&str]) {
        let words = Words {
            due: Mutex::new(due.to_vec()),
            ..Words::default()
        };
        let due_loop = DueLoop(&words);
        let watching = due_loop.watch(CancellationToken::new());
        // It pauses between passes, so the held clock shows how many there were.
        let looked = tokio::time::timeout(PAUSE_AFTER_ERROR * 2 - PAUSE_MIN, watching).await;
        assert!(looked.is_err(), "it goes on for ever");
        assert_eq!(*words.done.lock().unwrap(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn what_breaks_is_dead_lettered_and_holds_up_no_other() {
        check(
            &["one", "panics", "two", "unreadable", "three"],
            &[
                "one done",
                "panics dead-lettered",
                "two done",
                "unreadable dead-lettered",
                "three done",
            ],
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_fails_is_left_alone_for_a_while() {
        check(
            &["one", "unlucky", "two"],
            &["one done", "unlucky tried", "unlucky tried"],
        )
        .await;
    }
}
