//! What notices of other nodes would have told, read from the store: while the bus is away, after it was, and from time
//! to time in case a notice was lost that nobody knows of.
//!
//! A pass looks at the log of every space that is followed here and at the row of every run in memory, a few at a time,
//! and rests at least as long as it took: a store that is busy is not asked for more.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, Stream, StreamExt};
use tokio::sync::Notify;
use tokio::time::Instant;
use toolgate_kernel::id::{RunId, SpaceId};

use crate::Inner;
use crate::bus::{BusHealth, Gap};
use crate::deliver::Content;
use crate::store::StoreError;

/// How often the store is asked while the bus is away.
const AWAY_EVERY: Duration = Duration::from_secs(1);
/// The same while a node that was on the bus is silent.
const DOUBTFUL_EVERY: Duration = Duration::from_secs(2);
/// The same while everything seems well.
const JOINED_EVERY: Duration = Duration::from_secs(30);
/// Rows and logs that are asked for at once.
const LOOKS_AT_ONCE: usize = 8;
/// Spaces whose live events are asked for again after the connection broke: those of more come with the next step.
const WANTED_AGAIN_MAX: usize = 256;
/// How often everybody who serves looks whether access still holds, while notices may be lost.
const ACCESS_EVERY: Duration = Duration::from_secs(5);
/// Shortest time between two such looks: each costs as many reads as there are streams.
const ACCESS_PAUSE: Duration = Duration::from_secs(1);

/// Whether notices were lost since the last look.
#[derive(Default)]
pub(crate) struct Missed {
    gap: Mutex<Option<Gap>>,
    noted: Notify,
}

impl Missed {
    /// Has the store looked at soon.
    pub fn note(&self, gap: Gap) {
        let mut known = self.gap.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != Some(Gap::Connection) {
            *known = Some(gap);
        }
        self.noted.notify_one();
    }
    fn take(&self) -> Option<Gap> {
        self.gap.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Inner {
    /// Looks in the store for what this node was not told of, until it is stopped.
    pub(crate) async fn catch_up(self: Arc<Self>) {
        let mut access_doubted: Option<Instant> = None;
        // Notices were lost just after a look.
        let mut owes_look = false;
        let mut rest = Duration::ZERO;
        loop {
            let pause = poll_interval(self.bus.health()).map(|every| every.max(rest));
            let owed = owes_look.then_some(ACCESS_PAUSE);
            tokio::select! {
                () = self.halt.cancelled() => return,
                () = self.missed.noted.notified() => {}
                () = sleep_or_never(pause.into_iter().chain(owed).min()) => {}
            }
            let began = Instant::now();
            let gap = self.missed.take();
            let health = self.bus.health();
            // A notice that was lost may have told of access that has ended.
            owes_look |= gap.is_some();
            let is_older = |than| access_doubted.is_none_or(|last| began.duration_since(last) >= than);
            if (owes_look && is_older(ACCESS_PAUSE)) || (health.loses_notices() && is_older(ACCESS_EVERY)) {
                (access_doubted, owes_look) = (Some(began), false);
                self.revocations.doubt();
                // Something of them may have been deleted. They would not be used, but need not stay in memory either.
                self.pasts.clear();
            }
            if gap.is_some() || health == BusHealth::Away {
                self.run_changes.missed();
            }
            self.look_for_missed().await;
            if gap == Some(Gap::Connection) {
                let again = self.feed.followed().into_iter().take(WANTED_AGAIN_MAX);
                again.for_each(|space| self.feed.want_again(space));
            }
            metrics::counter!("toolgate_bus_catch_ups_total").increment(1);
            rest = began.elapsed();
        }
    }

    /// One pass over everything that is followed or in memory here.
    async fn look_for_missed(self: &Arc<Self>) {
        let spaces = stream::iter(self.feed.followed()).map(|space| self.look_at_space(space));
        let mut failed = failures(spaces.buffer_unordered(LOOKS_AT_ONCE)).await;
        let runs = stream::iter(self.active.runs()).map(|run| self.look_at_run(run));
        failed += failures(runs.buffer_unordered(LOOKS_AT_ONCE)).await;
        if failed > 0 {
            // The next pass looks again.
            tracing::warn!(failed, "the store does not tell what other nodes have done");
        }
    }

    async fn look_at_space(&self, space: SpaceId) -> Result<(), StoreError> {
        let tail = self.store.space_tail(space).await?;
        self.feed.log_reaches(space, tail);
        Ok(())
    }

    async fn look_at_run(self: &Arc<Self>, run: RunId) -> Result<(), StoreError> {
        let Some(record) = self.store.run(run).await? else {
            return Ok(());
        };
        // A run that has left memory meanwhile has read its log, or is found by whoever looks for work.
        self.active.send(run, Content::Stored(record.version));
        if record.wakes > 0 && self.active.send(run, Content::Poke) == Some(false) {
            self.adrift(run);
        }
        Ok(())
    }
}

async fn failures(looks: impl Stream<Item = Result<(), StoreError>>) -> usize {
    looks.filter(|looked| ready(looked.is_err())).count().await
}

/// How often to look without a reason; never when no notice can be lost.
fn poll_interval(health: BusHealth) -> Option<Duration> {
    match health {
        BusHealth::Direct => None,
        BusHealth::Joined => Some(JOINED_EVERY),
        BusHealth::Doubtful => Some(DOUBTFUL_EVERY),
        BusHealth::Away => Some(AWAY_EVERY),
    }
}

async fn sleep_or_never(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}
