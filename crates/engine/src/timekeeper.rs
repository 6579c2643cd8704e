//! What nobody asks for: the heartbeat, deadlines, and runs that nobody drives.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_kernel::id::RunId;
use toolgate_kernel::time::Time;

use crate::store::StoreError;
use crate::{Engine, Inner};

/// How often the store is asked for runs that nobody drives, whatever the deadlines say: also what bounds the
/// harm of a clock that jumps.
const SCAN_EVERY: Duration = Duration::from_secs(5);
/// How soon a run is looked at again that the store would not take.
const ADRIFT_FOR: Duration = Duration::from_secs(1);
/// Runs looked at in one scan.
const SCAN_RUNS: usize = 1_000;

impl Engine {
    /// Heartbeat, recovery, timers, runs: until `stop` fires, then until what is under way is safe.
    pub async fn drive(&self, stop: CancellationToken) {
        let inner = &self.inner;
        inner.take_up(&stop).await;
        let beating = inner.tasks.spawn(beat(inner.clone()));
        let catching_up = inner.tasks.spawn(inner.clone().catch_up());
        loop {
            let pause = inner.pause();
            tokio::select! {
                () = stop.cancelled() => break,
                () = inner.look.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            inner.scan().await;
        }
        inner.stopping.cancel();
        let drained = async {
            while inner.active.count() > 0 {
                inner.look.notified().await;
            }
        };
        // What is not done by then is dropped; its run goes on from the log at the next start.
        let _ = tokio::time::timeout(inner.settings.drain, drained).await;
        inner.halt.cancel();
        inner.feed.cut();
        catching_up.abort();
        inner.tasks.close();
        inner.tasks.wait().await;
        beating.abort();
        // What could not be left in order is anybody's at once, not when the lease has run out.
        let gone = inner.store.heartbeat(inner.settings.node, Time(0)).await;
        if let Err(error) = gone {
            tracing::warn!(%error, "the store does not know that this node is gone; its runs wait for the end of its lease");
        }
    }
}

impl Inner {
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// A run must be looked at by this moment.
    pub(crate) fn wake(&self, moment: Time) {
        if self.next_wake.fetch_min(moment.0, Ordering::SeqCst) > moment.0 {
            self.look.notify_one();
        }
    }

    /// A run's task ended before its work: it is looked at again soon, and never at once.
    pub(crate) fn adrift(&self, run: RunId) {
        self.lock_adrift().push((run, Instant::now() + ADRIFT_FOR));
        self.look.notify_one();
    }

    fn lock_adrift(&self) -> MutexGuard<'_, Vec<(RunId, Instant)>> {
        self.adrift.lock().expect("no panic holds the list")
    }

    /// A run has left memory.
    pub(crate) fn left(&self) {
        if self.is_stopping() {
            self.look.notify_one();
        }
    }

    fn pause(&self) -> Duration {
        let soonest = self.lock_adrift().iter().map(|(_, when)| *when).min();
        let longest = soonest.map_or(SCAN_EVERY, |when| when.saturating_duration_since(Instant::now()));
        let next = Time(self.next_wake.load(Ordering::SeqCst));
        // A moment past the deadline, so that a clock of milliseconds has reached it.
        (next.since(self.clock.now()) + Duration::from_millis(1))
            .min(longest)
            .min(SCAN_EVERY)
    }

    /// At the start: every run that the last process of this node left behind. Only now can they be told from
    /// those of this process, so the store is asked until it answers.
    async fn take_up(self: &Arc<Self>, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let left = async {
                self.store.heartbeat(self.settings.node, Time(0)).await?;
                let left = self.store.claimable(self.clock.now(), usize::MAX).await?;
                self.store.heartbeat(self.settings.node, self.lease_end()).await?;
                Ok::<_, StoreError>(left)
            };
            match left.await {
                Ok(left) => {
                    if !left.is_empty() {
                        tracing::info!(runs = left.len(), "taking up runs where they were left");
                    }
                    return left.into_iter().for_each(|run| self.summon(run));
                }
                Err(error) => tracing::error!(%error, "the store does not tell which runs were left"),
            }
            tokio::time::sleep(ADRIFT_FOR).await;
        }
    }

    /// Looks at runs that nobody drives: those past a deadline, those of a node that died, queued ones that have no
    /// place in the queue of this node.
    async fn scan(self: &Arc<Self>) {
        let now = Instant::now();
        let (due, later): (Vec<_>, Vec<_>) = self.lock_adrift().drain(..).partition(|(_, when)| *when <= now);
        self.lock_adrift().extend(later);
        due.into_iter().for_each(|(run, _)| self.poke(run));
        self.next_wake.store(i64::MAX, Ordering::SeqCst);
        let found = async {
            // Those of newer versions, and those whose turn will come, would otherwise hide what comes behind them.
            let limit = SCAN_RUNS + self.beyond.count() + self.seats.waiting();
            let mut left = self.store.claimable(self.clock.now(), limit).await?;
            left.retain(|run| !self.beyond.contains(*run) && !self.seats.is_awaited_by(*run));
            Ok::<_, StoreError>((left, self.store.next_wake().await?))
        };
        match found.await {
            Ok((left, next)) => {
                left.into_iter().for_each(|run| self.summon(run));
                let next = next.filter(|next| *next > self.clock.now());
                self.next_wake
                    .fetch_min(next.map_or(i64::MAX, |next| next.0), Ordering::SeqCst);
            }
            Err(error) => tracing::warn!(%error, "the store does not tell which runs are due"),
        }
    }

    fn lease_end(&self) -> Time {
        self.clock.now().after(self.settings.node_lease)
    }
}

/// Runs that only a newer version can drive.
#[derive(Default)]
pub(crate) struct Beyond(Mutex<HashSet<RunId>>);

/// Such runs that are remembered; beyond that they are looked at again.
const BEYOND_MAX: usize = 100_000;

impl Beyond {
    pub fn add(&self, run: RunId) {
        let mut runs = self.lock();
        if runs.len() >= BEYOND_MAX {
            runs.clear();
        }
        runs.insert(run);
    }
    fn count(&self) -> usize {
        self.lock().len()
    }
    fn contains(&self, run: RunId) -> bool {
        self.lock().contains(&run)
    }
    fn lock(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.0.lock().expect("no panic holds the set")
    }
}

/// Says that this node lives, until the engine halts.
async fn beat(inner: Arc<Inner>) {
    let every = inner.settings.node_lease / 3;
    while !inner.halt.is_cancelled() {
        tokio::select! {
            () = inner.halt.cancelled() => return,
            () = tokio::time::sleep(every) => {}
        }
        if let Err(error) = inner
            .store
            .heartbeat(inner.settings.node, inner.lease_end())
            .await
        {
            tracing::warn!(%error, "the heartbeat was not stored");
        }
    }
}
