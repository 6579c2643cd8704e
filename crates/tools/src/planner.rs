//! Starts the runs of plans that are due: each once, also after downtime, also with several nodes.
//!
//! A due plan posts a scheduled message, with the plan and the due time as idempotency key. Only then is the plan moved
//! on to its next time, unless it changed meanwhile. After a crash in between the message is posted again, which has no effect.

mod quota;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use toolgate_engine::intake::{PostError, UnderWay};
use toolgate_engine::records::{Change, Expected, NewRecord, Owner, Record, RecordSet, Records};
use toolgate_engine::store::StoreError;
use toolgate_engine::{Engine, ScheduledMessage};
use toolgate_kernel::time::Time;

use crate::due::{DueLoop, DueWork};
use crate::plans::{KIND, Plan, PlanLimits, PlanStatus, put};

#[cfg(test)]
mod tests;

/// Pause before the next attempt of a plan whose run cannot be started now.
const BUSY_PAUSE: Duration = Duration::from_secs(5);
/// Pause before the next look whether the agent of a paused plan is back.
const RETIRED_PAUSE: Duration = Duration::from_secs(60);
/// Shortest and longest pause between two looks whether the run is over that a plan waits for. In between it is a tenth
/// of the time waited so far.
const WAIT_PAUSE_MIN: Duration = Duration::from_secs(1);
const WAIT_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Scheduler of the plans of all projects.
pub struct Planner {
    engine: Engine,
    records: Arc<dyn Records>,
    limits: PlanLimits,
}

impl Planner {
    /// A scheduler of the plans in `records`.
    pub fn new(engine: Engine, records: Arc<dyn Records>, limits: PlanLimits) -> Self {
        Self {
            engine,
            records,
            limits,
        }
    }

    /// Starts due plans until `stop` fires.
    pub async fn watch(self, stop: CancellationToken) {
        DueLoop(&self).watch(stop).await;
    }

    /// Starts the runs of all plans that are due now.
    pub async fn start_due(&self) -> Result<(), StoreError> {
        DueLoop(self).work_off().await
    }
}

#[async_trait]
impl DueWork for Planner {
    type Item = (RecordSet, Record);
    const NAME: &'static str = "plan";
    const LOOK_EVERY: Duration = Duration::from_secs(1);

    fn now(&self) -> Time {
        self.engine.clock().now()
    }
    async fn due(&self, limit: usize) -> Result<Vec<(RecordSet, Record)>, StoreError> {
        self.records.due_records(KIND, self.now(), limit).await
    }
    async fn next_due(&self) -> Result<Option<Time>, StoreError> {
        self.records.next_due(KIND).await
    }
    async fn perform(&self, (set, record): &(RecordSet, Record)) -> Result<(), StoreError> {
        let plan = record.body.read::<Plan>();
        let plan = plan.map_err(|error| StoreError::Corrupt(format!("the plan {}: {error}", record.id)))?;
        self.start(*set, record, plan).await
    }
    async fn dead_letter(&self, (set, record): &(RecordSet, Record)) -> Result<(), StoreError> {
        let kept = NewRecord {
            id: record.id.clone(),
            body: record.body.clone(),
            text: None,
            data: record.data.clone(),
            due: None,
        };
        self.change(*set, record, kept).await
    }
}

/// Result of starting a due plan.
enum Outcome {
    /// The message was posted.
    Started,
    /// This start is skipped, for this reason.
    Missed(String),
    /// The plan has failed for good, for this reason.
    Over(String),
    /// The start is postponed to this time, for this reason.
    Later(Time, String),
    /// A run is under way in the space: the start is postponed to this time, for this reason.
    Blocked(Time, String),
    /// The agent is retired: the start is postponed until it is back, for this reason.
    Paused(String),
}

impl Planner {
    async fn start(&self, set: RecordSet, record: &Record, plan: Plan) -> Result<(), StoreError> {
        let now = self.now();
        // A postponed start keeps its original due time, which is part of the idempotency key.
        let due = plan.waits_since.or(record.due).unwrap_or(now);
        let outcome = self.tell(set, record, &plan, due, now).await?;
        let next = match &outcome {
            Outcome::Started | Outcome::Missed(_) => plan.schedule.next(due, now),
            Outcome::Over(_) => None,
            Outcome::Later(moment, _) | Outcome::Blocked(moment, _) => Some(*moment),
            Outcome::Paused(_) => Some(now.after(RETIRED_PAUSE)),
        };
        let is_postponed = matches!(
            outcome,
            Outcome::Later(..) | Outcome::Blocked(..) | Outcome::Paused(_)
        );
        let plan = Plan {
            status: match (&outcome, next) {
                (_, Some(_)) => PlanStatus::Active,
                (Outcome::Started, None) => PlanStatus::Done,
                (_, None) => PlanStatus::Failed,
            },
            waits_since: is_postponed.then_some(due),
            blocked_since: match outcome {
                Outcome::Blocked(..) => plan.blocked_since.or(Some(now)),
                Outcome::Later(..) => plan.blocked_since,
                Outcome::Started | Outcome::Missed(_) | Outcome::Over(_) | Outcome::Paused(_) => None,
            },
            last: if is_postponed { plan.last } else { Some(due) },
            paused: matches!(outcome, Outcome::Paused(_)),
            runs: plan.runs + u64::from(matches!(outcome, Outcome::Started)),
            reason: match outcome {
                Outcome::Started => None,
                Outcome::Missed(why)
                | Outcome::Over(why)
                | Outcome::Later(_, why)
                | Outcome::Blocked(_, why)
                | Outcome::Paused(why) => Some(why),
            },
            ..plan
        };
        self.change(set, record, put(record.id.clone(), &plan, next))
            .await
    }

    async fn tell(
        &self,
        set: RecordSet,
        record: &Record,
        plan: &Plan,
        due: Time,
        now: Time,
    ) -> Result<Outcome, StoreError> {
        let max = self.limits.starts_per_hour;
        let name = format!("{}/{}", record.id, due.0);
        if let Some(hour) = quota::take(&self.records, set, &name, max, now).await? {
            let words =
                format!("your plans may start {max} runs an hour, and did; this one waits for the next");
            return Ok(Outcome::Later(hour, words));
        }
        // A plan that was paused, or whose gateway was down, has not waited for a run meanwhile.
        let blocked_since = plan.blocked_since.unwrap_or(now);
        let message = ScheduledMessage {
            project: set.project,
            space: plan.space,
            agent: plan.agent.clone(),
            cause: cause(&set, record),
            due,
            text: plan.message.clone(),
            plan_id: record.id.clone(),
            asked_by: plan.asked_by,
            under_way: match now < blocked_since.after(self.limits.wait_max) {
                true => UnderWay::Wait,
                false => UnderWay::Join,
            },
        };
        Ok(match self.engine.post_scheduled(message).await {
            Ok(run) => {
                tracing::info!(plan = record.id, %run, %due, "a plan was due");
                Outcome::Started
            }
            Err(error @ PostError::RunUnderWay(_)) => {
                let pause = (now.since(blocked_since) / 10).clamp(WAIT_PAUSE_MIN, WAIT_PAUSE_MAX);
                Outcome::Blocked(now.after(pause), error.to_string())
            }
            Err(error @ PostError::NoSpace) => Outcome::Over(error.to_string()),
            Err(error @ PostError::NoAgent(_)) => Outcome::Paused(error.to_string()),
            // The agent may be stored again, in a readable form; the space's owner may make room; a budget begins anew.
            Err(
                error @ (PostError::Quota(_)
                | PostError::Budget(_)
                | PostError::Unpriced(_)
                | PostError::Store(StoreError::Corrupt(_))),
            ) => Outcome::Missed(error.to_string()),
            Err(PostError::Store(error)) => return Err(error),
            Err(
                error @ (PostError::Busy(_)
                | PostError::TooManyWait(_)
                | PostError::Tools(_)
                | PostError::NoTool(_)
                | PostError::Arguments(_)
                | PostError::KeyReused
                | PostError::MessageIdReused
                | PostError::HistoryNotTaken
                | PostError::NotUnderWay(_)
                | PostError::OtherTools(_)),
            ) => {
                tracing::warn!(plan = record.id, %error, "a plan is due and could not be started; it is tried again");
                Outcome::Later(now.after(BUSY_PAUSE), error.to_string())
            }
        })
    }

    async fn change(&self, set: RecordSet, record: &Record, plan: NewRecord) -> Result<(), StoreError> {
        let unchanged = Expected {
            id: record.id.clone(),
            version: Some(record.version),
        };
        let now = self.now();
        let changed = self
            .records
            .change_records(set, vec![unchanged], vec![Change::Put(plan)], now);
        match changed.await {
            // Another node rescheduled it, or its agent cancelled it.
            Ok(()) | Err(StoreError::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Identifies a plan in its project. Part of stored idempotency keys: its form must not change.
fn cause(set: &RecordSet, record: &Record) -> String {
    let owner = match set.owner {
        Owner::Project => "project".to_owned(),
        Owner::Entity(entity) => entity.to_string(),
        Owner::Space(space) => space.to_string(),
    };
    format!("{owner}/{}", record.id)
}
