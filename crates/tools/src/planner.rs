//! Starts the runs of plans that are due: each once, also after downtime, also with several nodes.
//!
//! The run of a plan is named by the plan and its moment, so whoever starts it second starts nothing. Only then is
//! the plan moved on, unless somebody did meanwhile. A crash in between does the first again, which is nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolgate_engine::intake::PostError;
use toolgate_engine::records::{Change, Expected, Record, Records, Shelf};
use toolgate_engine::store::StoreError;
use toolgate_engine::{Engine, Occasion};

use crate::plans::{KIND, Plan, PlanStatus, put};

#[cfg(test)]
mod tests;

/// Longest time between two looks: another node may have made a plan.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Plans that are started in one go.
const BATCH: usize = 100;

/// Watches the plans of all projects.
pub struct Planner {
    engine: Engine,
    records: Arc<dyn Records>,
}

impl Planner {
    /// For the plans in `records`.
    pub fn new(engine: Engine, records: Arc<dyn Records>) -> Self {
        Self { engine, records }
    }

    /// Starts what is due until `stop` fires.
    pub async fn watch(self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.start_due().await {
                tracing::warn!(%error, "plans could not be looked at");
            }
            let pause = tokio::time::sleep(self.until_next().await);
            if stop.run_until_cancelled(pause).await.is_none() {
                return;
            }
        }
    }

    /// Starts the runs of all plans that are due now.
    pub async fn start_due(&self) -> Result<(), StoreError> {
        let now = self.engine.clock().now();
        for (shelf, record) in self.records.due_records(KIND, now, BATCH).await? {
            self.start(shelf, record).await?;
        }
        Ok(())
    }

    async fn until_next(&self) -> Duration {
        let now = self.engine.clock().now();
        match self.records.next_due(KIND).await {
            // What is due and could not be started waits for the next look.
            Ok(Some(due)) if due > now => due.since(now).min(LOOK_EVERY),
            Ok(_) | Err(_) => LOOK_EVERY,
        }
    }

    async fn start(&self, shelf: Shelf, record: Record) -> Result<(), StoreError> {
        let (Some(due), Ok(plan)) = (record.due, record.body.read::<Plan>()) else {
            tracing::error!(plan = record.id, "a stored plan cannot be read");
            return Ok(());
        };
        let occasion = Occasion {
            project: shelf.project,
            space: plan.space,
            agent: plan.agent.clone(),
            cause: format!("{:?}/{}", shelf.owner, record.id),
            due,
            text: plan.message.clone(),
        };
        let reason = match self.engine.start_once(occasion).await {
            Ok(run) => {
                tracing::info!(plan = record.id, %run, %due, "a plan was due");
                None
            }
            Err(error @ (PostError::NoSpace | PostError::NoAgent(_))) => Some(error.to_string()),
            Err(error) => {
                tracing::warn!(plan = record.id, %error, "a plan is due and could not be started; it is tried again");
                return Ok(());
            }
        };
        self.advance(shelf, &record, plan, reason).await
    }

    /// Moves a plan on to its next moment, or ends it.
    async fn advance(
        &self,
        shelf: Shelf,
        record: &Record,
        plan: Plan,
        reason: Option<String>,
    ) -> Result<(), StoreError> {
        let now = self.engine.clock().now();
        let due = record.due.unwrap_or(now);
        let next = match reason {
            None => plan.schedule.next(due, now),
            Some(_) => None,
        };
        let plan = Plan {
            status: match (&reason, next) {
                (Some(_), _) => PlanStatus::Failed,
                (None, None) => PlanStatus::Done,
                (None, Some(_)) => PlanStatus::Active,
            },
            last: Some(due),
            runs: plan.runs + u64::from(reason.is_none()),
            reason,
            ..plan
        };
        let unchanged = Expected {
            id: record.id.clone(),
            version: Some(record.version),
        };
        let change = Change::Put(put(record.id.clone(), &plan, next));
        match self
            .records
            .change_records(shelf, vec![unchanged], vec![change], now)
            .await
        {
            // Another node moved it on, or its agent cancelled it.
            Ok(()) | Err(StoreError::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
