//! Retention: what has ended long ago is archived and deleted, by the rules of its project. One batch of a project is
//! under way at a time, whichever node works on it: the batch is a deletion ([`crate::deletion`]) with a fixed id.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;

use crate::Engine;
use crate::deletion::{DeletionError, Deletions};
use crate::store::StoreError;
use crate::usage::Day;

/// How often the rules are applied.
pub const APPLIED_EVERY: Duration = Duration::from_secs(60);
/// How soon the rules are applied again when a batch of a project was under way.
const UNDER_WAY_FOR: Duration = Duration::from_secs(5);
/// Longest time that is spent on one project before the next one has its turn.
const TURN: Duration = Duration::from_secs(10);

/// How long sums of what was consumed are kept at least: budgets of a month are checked against them.
const CONSUMPTION_KEPT: Duration = Duration::from_secs(62 * 24 * 3600);
/// Sums that are deleted in one write.
const CONSUMPTION_AT_ONCE: usize = 500;
/// How long a node that is gone is remembered.
const NODES_KEPT: Duration = Duration::from_secs(24 * 3600);

/// How long a project keeps what has ended; none for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rules {
    /// Run trees, from the end of their last run: rows, events, outputs that were kept as files.
    pub runs: Option<Duration>,
    /// Files of spaces, from their last change.
    pub files: Option<Duration>,
    /// Deliveries that were given up, from when they were queued.
    pub deliveries: Option<Duration>,
    /// Figures of tools, by day; also sums of what was consumed, but those of two months stay.
    pub usage: Option<Duration>,
}

impl Rules {
    /// Whether anything is ever deleted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The rules of projects, and where each archives what it deletes.
#[async_trait]
pub trait RetentionRules: Send + Sync {
    /// The rules of a project as they are now.
    async fn rules(&self, project: ProjectId) -> Result<Rules, StoreError>;
    /// The archive of a project; none when it archives nothing.
    async fn archive(&self, project: ProjectId) -> Result<Option<Arc<dyn Archive>>, StoreError>;
}

/// No project deletes anything by itself.
#[async_trait]
impl RetentionRules for Rules {
    async fn rules(&self, _: ProjectId) -> Result<Rules, StoreError> {
        Ok(*self)
    }
    async fn archive(&self, _: ProjectId) -> Result<Option<Arc<dyn Archive>>, StoreError> {
        Ok(None)
    }
}

/// Keeps what is deleted.
#[async_trait]
pub trait Archive: Send + Sync {
    /// Begins an object. One of the same name is replaced as a whole when it is finished, and not before.
    fn begin(&self, name: &str) -> Box<dyn ArchiveObject>;
}

/// An object that is being written: JSON lines, compressed.
#[async_trait]
pub trait ArchiveObject: Send {
    /// Adds a line, which ends with a line break.
    fn write(&mut self, line: &[u8]);
    /// Stores the object; it is safe when this returns.
    async fn finish(self: Box<Self>) -> Result<Archived, ArchiveError>;
}

/// An object of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// SHA-256 of the object, in hex.
    pub hash: String,
    /// Its size.
    pub bytes: u64,
}

/// Why an object was not stored. It names no secret.
#[derive(Debug, thiserror::Error)]
#[error("the archive did not take it: {0}")]
pub struct ArchiveError(pub String);

/// What is left when the rules of every project were applied once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Applied {
    /// Nothing that could be deleted now.
    Done,
    /// A batch of a project that was under way already.
    UnderWay,
    /// What a project had no time for in its turn.
    OutOfTime,
}

/// Applies the rules of all projects.
pub struct Retention {
    engine: Engine,
    deletions: Arc<Deletions>,
    rules: Arc<dyn RetentionRules>,
    every: Duration,
}

impl Retention {
    /// Applies these rules every so often.
    pub fn new(
        engine: Engine,
        deletions: Arc<Deletions>,
        rules: Arc<dyn RetentionRules>,
        every: Duration,
    ) -> Self {
        Self {
            engine,
            deletions,
            rules,
            every,
        }
    }

    /// Applies the rules until `stop` fires.
    pub async fn work(&self, stop: CancellationToken) {
        loop {
            let pause = async {
                let applied = self.apply().await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "the rules of retention are applied later");
                    Applied::Done
                });
                let pause = match applied {
                    Applied::Done => self.every,
                    Applied::UnderWay => self.every.min(UNDER_WAY_FOR),
                    // The other projects have had their turn.
                    Applied::OutOfTime => Duration::ZERO,
                };
                tokio::time::sleep(pause).await;
            };
            if stop.run_until_cancelled(pause).await.is_none() {
                return;
            }
        }
    }

    /// Applies the rules of every project once, each for a while. Says the most urgent of what is left.
    pub async fn apply(&self) -> Result<Applied, StoreError> {
        let mut applied = Applied::Done;
        let now = self.engine.inner.clock.now();
        self.engine
            .inner
            .store
            .forget_nodes(before(now, NODES_KEPT))
            .await?;
        for project in self.engine.projects().await? {
            let rules = self.rules.rules(project.id).await?;
            if rules.is_empty() {
                continue;
            }
            match self.apply_to(project.id, rules).await {
                Ok(of_project) => applied = applied.max(of_project),
                // Another node has its turn with this project, or a batch of the last process is being finished.
                Err(DeletionError::UnderWay) => applied = applied.max(Applied::UnderWay),
                Err(error) => {
                    tracing::warn!(project = project.name, %error, "what is too old is deleted later");
                }
            }
        }
        Ok(applied)
    }

    async fn apply_to(&self, project: ProjectId, rules: Rules) -> Result<Applied, DeletionError> {
        let (started, now) = (Instant::now(), self.engine.inner.clock.now());
        let mut applied = Applied::OutOfTime;
        while started.elapsed() < TURN {
            if !self.deletions.expire(project, rules, now).await? {
                applied = Applied::Done;
                break;
            }
        }
        if let Some(kept) = rules.usage {
            let store = &self.engine.inner.store;
            let removed = store.remove_usage(project, before_day(now, kept)).await?;
            metrics::counter!("toolgate_retention_usage_rows_total").increment(removed);
            self.remove_consumption(project, before_day(now, kept.max(CONSUMPTION_KEPT)))
                .await?;
        }
        Ok(applied)
    }

    async fn remove_consumption(&self, project: ProjectId, before: Day) -> Result<(), StoreError> {
        loop {
            let store = &self.engine.inner.store;
            let removed = store
                .remove_consumption(project, before, CONSUMPTION_AT_ONCE)
                .await?;
            if removed < CONSUMPTION_AT_ONCE as u64 {
                return Ok(());
            }
        }
    }
}

fn before_day(now: Time, kept: Duration) -> Day {
    Day::of(before(now, kept))
}

/// The time so long before.
pub(crate) fn before(now: Time, kept: Duration) -> Time {
    let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
    Time(now.0.saturating_sub(kept))
}
