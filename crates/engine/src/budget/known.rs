//! What was consumed, as far as this node knows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;

use super::{BudgetExceeded, Period};
use crate::Inner;
use crate::consumption::{Consumed, Consumer, Consumption, Days};
use crate::store::StoreError;
use crate::usage::Day;

/// How long what the store said of today counts.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// How long what the store said of the earlier days of the month counts: they change only by nodes whose clocks are late.
const EARLIER_FRESH_FOR: Duration = Duration::from_mins(5);
/// Projects, users and agents whose sums are kept; beyond it those that nobody asks about now are dropped and read again.
const KNOWN_MAX: usize = 10_000;

/// Whose consumption.
pub(super) type Key = (ProjectId, Consumer);

/// Sums of what was consumed, as far as runs on this node asked.
#[derive(Default)]
pub(crate) struct Budgets {
    known: Mutex<HashMap<Key, Arc<Known>>>,
}

/// What was consumed today and in this month.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    today: Consumed,
    month: Consumed,
}

impl Used {
    pub fn of(&self, period: Period) -> Consumed {
        match period {
            Period::Day => self.today,
            Period::Month => self.month,
        }
    }
}

impl Budgets {
    /// What was consumed so far. Reads the store unless it did a moment ago; one reader at a time.
    pub(super) async fn fresh(&self, inner: &Inner, key: Key, now: Time) -> Result<Arc<Known>, StoreError> {
        let known = self.known(&key);
        let reading = known.reading.lock().await;
        let stale = known.counts().stale(now);
        if let Some(stale) = stale {
            known.counts().forget_added();
            let read = stale.read(inner, key, now).await?;
            known.counts().read = Some(read);
        }
        drop(reading);
        Ok(known)
    }

    /// Counts what an append of this node has added, for those whose sums are kept here.
    pub fn add(&self, consumption: &Consumption) {
        let Consumption {
            project,
            agent,
            user,
            consumed,
            ..
        } = consumption;
        let consumers = [
            Some(Consumer::Project),
            user.map(Consumer::User),
            Some(Consumer::Agent(agent.clone())),
        ];
        let known = self.lock();
        for consumer in consumers.into_iter().flatten() {
            if let Some(known) = known.get(&(*project, consumer)) {
                let mut counts = known.counts();
                counts.added = counts.added + *consumed;
            }
        }
    }

    fn known(&self, key: &Key) -> Arc<Known> {
        let mut known = self.lock();
        if known.len() >= KNOWN_MAX && !known.contains_key(key) {
            known.retain(|_, known| Arc::strong_count(known) > 1);
        }
        known.entry(key.clone()).or_default().clone()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Known>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of one project, user or agent.
#[derive(Default)]
pub(super) struct Known {
    /// Held while the store is read.
    reading: tokio::sync::Mutex<()>,
    counts: Mutex<Counts>,
}

impl Known {
    /// What was consumed so far.
    pub fn used(&self) -> Used {
        self.counts().used()
    }

    /// Counts a run that is about to start, if `check` admits it after what was consumed.
    pub fn reserve_run(
        &self,
        check: impl FnOnce(Used) -> Result<(), BudgetExceeded>,
    ) -> Result<(), BudgetExceeded> {
        let mut counts = self.counts();
        check(counts.used())?;
        counts.added = counts.added + Consumed::RUN;
        counts.starting += 1;
        Ok(())
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Counts {
    /// What the store said.
    read: Option<Read>,
    /// What this node added that the store may not have told. Includes the runs that are starting.
    added: Consumed,
    /// Runs that are about to be stored.
    starting: u64,
}

/// What the store said, and when.
#[derive(Clone, Copy)]
struct Read {
    at: Time,
    today: Consumed,
    earlier: Earlier,
}

/// The days of the month before today.
#[derive(Clone, Copy)]
struct Earlier {
    at: Time,
    today: Day,
    consumed: Consumed,
}

/// What has to be read.
struct Stale {
    /// The days before today, if these are known.
    earlier: Option<Earlier>,
}

impl Stale {
    async fn read(self, inner: &Inner, (project, consumer): Key, now: Time) -> Result<Read, StoreError> {
        let today = Day::of(now);
        let earlier = match self.earlier {
            Some(earlier) => earlier,
            None if today.month() == today => Earlier {
                at: now,
                today,
                consumed: Consumed::default(),
            },
            None => {
                let days = Days {
                    first: today.month(),
                    last: Day(today.0 - 1),
                };
                let consumed = inner.store.consumed(project, consumer.clone(), days).await?;
                Earlier {
                    at: now,
                    today,
                    consumed,
                }
            }
        };
        let days = Days {
            first: today,
            last: today,
        };
        Ok(Read {
            at: now,
            today: inner.store.consumed(project, consumer, days).await?,
            earlier,
        })
    }
}

impl Counts {
    /// What has to be read before the sums hold at `now`; none if they do.
    fn stale(&self, now: Time) -> Option<Stale> {
        // A clock that was set back makes an answer from the future, which does not count either.
        let within = |then: Time, span| then <= now && now < then.after(span);
        let today = Day::of(now);
        let Some(read) = self.read else {
            return Some(Stale { earlier: None });
        };
        let earlier = read.earlier;
        let knows_earlier = earlier.today == today && within(earlier.at, EARLIER_FRESH_FOR);
        match knows_earlier && within(read.at, FRESH_FOR) {
            true => None,
            false => Some(Stale {
                earlier: Some(earlier).filter(|_| knows_earlier),
            }),
        }
    }

    /// The store is about to be read and tells what was added before. What is stored meanwhile may be counted twice until
    /// the next read, and nothing is missed.
    fn forget_added(&mut self) {
        self.added = Consumed {
            runs: self.starting,
            ..Consumed::default()
        };
    }

    fn used(&self) -> Used {
        let (today, earlier) = self
            .read
            .map_or_else(Default::default, |read| (read.today, read.earlier.consumed));
        let today = today + self.added;
        Used {
            today,
            month: today + earlier,
        }
    }
}

/// A run that the budgets admit: held until it is stored and counted, or not started after all.
#[derive(Default)]
pub(crate) struct AdmittedRun(Vec<Arc<Known>>);

impl AdmittedRun {
    pub(super) fn add(&mut self, known: Arc<Known>) {
        self.0.push(known);
    }
}

impl Drop for AdmittedRun {
    fn drop(&mut self) {
        for known in &self.0 {
            let mut counts = known.counts();
            counts.starting = counts.starting.saturating_sub(1);
            counts.added = counts.added - Consumed::RUN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten in the morning of the second day of a month.
    const NOW: Time = Time(1_801_562_400_000);

    fn read_at(at: Time) -> Counts {
        Counts {
            read: Some(Read {
                at,
                today: Consumed::RUN,
                earlier: Earlier {
                    at,
                    today: Day::of(at),
                    consumed: Consumed::RUN,
                },
            }),
            ..Counts::default()
        }
    }

    #[test]
    fn sums_are_read_again_after_a_second_and_those_of_earlier_days_after_minutes_or_a_day() {
        let counts = read_at(NOW);
        let knows_earlier = |millis: i64| {
            counts
                .stale(Time(NOW.0 + millis))
                .map(|stale| stale.earlier.is_some())
        };
        assert_eq!(knows_earlier(0), None);
        assert_eq!(knows_earlier(999), None);
        assert_eq!(knows_earlier(1_000), Some(true));
        assert_eq!(knows_earlier(299_999), Some(true));
        assert_eq!(knows_earlier(300_000), Some(false));
        assert_eq!(knows_earlier(-1), Some(false), "the clock was set back");
        let midnight = Day::of(NOW).next().start();
        let counts = read_at(Time(midnight.0 - 1));
        let stale = counts.stale(midnight).expect("another day");
        assert!(stale.earlier.is_none());
    }

    #[test]
    fn what_is_added_counts_today_and_in_the_month_until_the_store_tells_it() {
        let mut counts = read_at(NOW);
        counts.added = Consumed::RUN + Consumed::RUN;
        counts.starting = 1;
        let used = counts.used();
        assert_eq!((used.today.runs, used.month.runs), (3, 4));
        // The run that is not stored yet is not in what the store is about to tell.
        counts.forget_added();
        assert_eq!(counts.used().today.runs, 2);
    }
}
