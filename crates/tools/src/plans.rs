//! Tools for an agent's plans. Plans belong to the agent; when one is due, the agent runs in the plan's space.

mod change;
mod moment;

use std::time::Duration;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{Amendment, Change, Expected, Listing, NewRecord, Record};
use toolgate_engine::store::StoreError;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::{CallId, EntityId, SpaceId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Retry;
use toolgate_kernel::words::words;

use crate::cron::Cron;
use crate::records::{body, input, is_minted, named, of_agent};
use crate::toolkit::ServerTool;
pub(crate) use change::{CHANGEABLE, changed};
use moment::CreateInput;

pub(crate) const KIND: &str = "plan";
/// Most plans of one agent, finished ones included.
const PLANS_MAX: usize = 100;
/// Shortest time between two runs of a plan.
const EVERY_SECONDS_MIN: u64 = 60;
const EVERY_SECONDS_MAX: u64 = 366 * 24 * 3600;
const MESSAGE_CHARS_MAX: usize = 10_000;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Limits of plans.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanLimits {
    /// Shortest time from now to a plan's due time.
    pub ahead_min: Duration,
    /// Most runs that the plans of one agent start in an hour; further ones wait for the next hour.
    pub starts_per_hour: u32,
    /// Longest time that a due plan waits for the run under way in its space. Then it joins that run.
    pub wait_max: Duration,
}

impl Default for PlanLimits {
    fn default() -> Self {
        Self {
            wait_max: Duration::from_secs(24 * 3600),
            ahead_min: Duration::from_secs(60),
            starts_per_hour: 120,
        }
    }
}

/// Creates a plan.
pub(crate) struct CreatePlan {
    pub updater: RecordUpdater,
    pub limits: PlanLimits,
}
/// Reads one plan, or all.
pub(crate) struct GetPlan(pub RecordUpdater);
/// Cancels a plan.
pub(crate) struct CancelPlan(pub RecordUpdater);

/// A stored plan. Its due time is in its record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    /// Text of the message that is posted when it is due.
    pub message: String,
    pub schedule: Schedule,
    pub status: PlanStatus,
    /// Agent that runs, and the space it runs in.
    pub agent: AgentName,
    pub space: SpaceId,
    /// The person for whom the run that created it worked; none where nobody is known, and for plans of before this was
    /// stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<EntityId>,
    /// Due time of a start that was postponed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<Time>,
    /// Since when a run under way in the space keeps a start from being posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_since: Option<Time>,
    /// Due time of the last start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Time>,
    /// Number of runs started.
    #[serde(default)]
    pub runs: u64,
    /// Whether it waits for its agent, which is retired. Not a status, so that nodes of an earlier version can read it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Why the last start failed or is postponed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Schedule {
    At(Time),
    /// Interval, counted from the first due time.
    EverySeconds(u64),
    Cron {
        expression: String,
        #[serde(alias = "time_zone")]
        time_zone: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PlanStatus {
    Active,
    /// It ran for the last time.
    Done,
    /// Its agent or space no longer exists.
    Failed,
    /// Its agent cancelled it.
    Cancelled,
}

impl Schedule {
    /// The next due time after `due`, seen at `now`: times missed during downtime are skipped.
    pub fn next(&self, due: Time, now: Time) -> Option<Time> {
        match self {
            Self::At(_) => None,
            Self::EverySeconds(seconds) => {
                // Guards against stored values: an interval is never zero, and never overflows.
                let step = (*seconds).clamp(EVERY_SECONDS_MIN, EVERY_SECONDS_MAX) as i64 * 1000;
                let missed = now.0.saturating_sub(due.0).max(0) / step;
                let ahead = missed.saturating_add(1).saturating_mul(step);
                Some(Time(due.0.saturating_add(ahead)))
            }
            Self::Cron {
                expression,
                time_zone,
            } => {
                let zone = TimeZone::get(time_zone).ok()?;
                Cron::parse(expression).ok()?.next(now.max(due), &zone)
            }
        }
    }
}

#[async_trait]
impl ServerTool for CreatePlan {
    fn name(&self) -> &'static str {
        "createPlan"
    }
    fn action(&self) -> Action {
        Action {
            description: "Plan to do something later, once or again and again. When it is due you are given the message. \
                          Give exactly one of inSeconds, at, everySeconds and cron; leave the others out."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "message": {"type": "string", "minLength": 1, "maxLength": MESSAGE_CHARS_MAX, "description": "What you will be told when it is due. Members of the space read it then."},
                    "inSeconds": {"type": "integer", "minimum": 1, "maximum": EVERY_SECONDS_MAX, "description": "Once, so many seconds from now."},
                    "at": {"type": "string", "format": "date-time", "description": "Once, at this moment, a minute ahead or more."},
                    "everySeconds": {"type": "integer", "minimum": EVERY_SECONDS_MIN, "maximum": EVERY_SECONDS_MAX, "description": "Again and again, with so many seconds between."},
                    "cron": {"type": "string", "description": "Again and again, by a cron expression: minute, hour, day of the month, month, day of the week."},
                    "timeZone": {"type": "string", "description": "For cron: an IANA time zone. Default: UTC."},
                },
                "required": ["message"],
            }),
            timeout: TIMEOUT,
            // The plan is stored with the call's receipt, so a repeated call creates no second one.
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: CreateInput = input(given)?;
        let id = format!("plan_{}", context.call);
        let set = of_agent(context, KIND);
        let schedule = wanted.schedule(context.now, self.limits);
        let (schedule, due) =
            schedule.map_err(|words| CallFailure::new(ErrorCode::ValidationFailed, words))?;
        let plan = Plan {
            message: wanted.message,
            schedule,
            status: PlanStatus::Active,
            agent: context.agent.clone(),
            space: context.space,
            asked_by: context.works_for,
            waits_since: None,
            blocked_since: None,
            last: None,
            runs: 0,
            paused: false,
            reason: None,
        };
        let read = || plans(&self.updater, context);
        let decide = |records: Vec<Record>| {
            // A model that repeats itself in a run does not plan twice.
            let equal = records
                .iter()
                .find(|record| is_equal(record, &plan, due, context));
            let (changes, told) = match equal {
                Some(first) => (Vec::new(), kept(first)?),
                None => {
                    let mut changes = room(&records)?;
                    changes.push(Change::Put(put(id.clone(), &plan, Some(due))));
                    (changes, told(&id, &plan, Some(due), context.now))
                }
            };
            let amendment = Amendment {
                expected: Vec::new(),
                at_most: Some(PLANS_MAX as u64),
                changes,
                receipt: Some(context.receipt(told.clone().into())),
                ..Amendment::default()
            };
            Ok((amendment, told))
        };
        self.updater.update(set, context.now, read, decide).await
    }
}

#[async_trait]
impl ServerTool for GetPlan {
    fn name(&self) -> &'static str {
        "getPlan"
    }
    fn action(&self) -> Action {
        Action {
            description: "Read your plans, the next one first.".into(),
            parameters: json!({
                "type": "object",
                // An `id` is read too, but not offered: models that are offered one make one up.
                "properties": {},
            }),
            timeout: TIMEOUT,
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        // An id that the model made up counts as left out.
        if let Some(id) = given["id"].as_str().filter(|id| is_minted(id, "plan_")) {
            let missing = || {
                let words = format!("you have no plan {id:?}. Call getPlan again without id to read all.");
                CallFailure::new(ErrorCode::NotFound, words)
            };
            return kept(&known(&self.0, context, id).await?.ok_or_else(missing)?);
        }
        let mut records = plans(&self.0, context).await?;
        // Finished plans come last.
        records.sort_by_key(|record| (record.due.is_none(), record.due, record.created));
        // A record that cannot be read does not hide the others.
        let told: Vec<Value> = records.iter().filter_map(|record| kept(record).ok()).collect();
        Ok(json!({ "totalPlans": told.len(), "plans": told }))
    }
}

#[async_trait]
impl ServerTool for CancelPlan {
    fn name(&self) -> &'static str {
        "cancelPlan"
    }
    fn action(&self) -> Action {
        Action {
            description: "End one of your plans.".into(),
            parameters: json!({
                "type": "object",
                "properties": {"id": {"type": "string", "description": "Which."}},
                "required": ["id"],
            }),
            timeout: TIMEOUT,
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted = given["id"].as_str().unwrap_or_default();
        let read = || plans(&self.0, context);
        let decide = |records: Vec<Record>| {
            let record = chosen(&records, wanted)?;
            let mut plan: Plan = body(record)?;
            let due = match plan.status {
                PlanStatus::Active => {
                    plan.status = PlanStatus::Cancelled;
                    None
                }
                // It is finished already, and stays as it is.
                _ => record.due,
            };
            let told = json!({ "cancelled": told(&record.id, &plan, due, record.created) });
            let amendment = Amendment {
                expected: vec![as_it_is(record)],
                changes: vec![Change::Put(put(record.id.clone(), &plan, due))],
                receipt: Some(context.receipt(told.clone().into())),
                ..Amendment::default()
            };
            Ok((amendment, told))
        };
        let set = of_agent(context, KIND);
        self.0.update(set, context.now, read, decide).await
    }
}

/// The record of a plan.
pub(crate) fn put(id: String, plan: &Plan, due: Option<Time>) -> NewRecord {
    NewRecord {
        id,
        body: serde_json::to_value(plan).expect("a plan is JSON").into(),
        text: None,
        data: None,
        due,
    }
}

/// Removals that make room for one more plan: finished plans, the oldest first.
fn room(records: &[Record]) -> Result<Vec<Change>, CallFailure> {
    if records.len() < PLANS_MAX {
        return Ok(Vec::new());
    }
    let over = records.iter().filter(|record| record.due.is_none());
    let oldest = over.min_by_key(|record| record.created).ok_or_else(|| {
        let words = format!("you may have {PLANS_MAX} plans; cancel some first");
        CallFailure::new(ErrorCode::LimitExceeded, words)
    })?;
    Ok(vec![Change::Remove(oldest.id.clone())])
}

async fn plans(updater: &RecordUpdater, context: &CallContext) -> Result<Vec<Record>, StoreError> {
    let listing = Listing {
        limit: PLANS_MAX,
        ..Listing::default()
    };
    let set = of_agent(context, KIND);
    updater.records().list_records(set, listing).await
}

async fn known(
    updater: &RecordUpdater,
    context: &CallContext,
    id: &str,
) -> Result<Option<Record>, StoreError> {
    let set = of_agent(context, KIND);
    updater.records().record(set, id).await
}

/// The plan of this id, or the only active one whose message this is; else a failure that names the active ones.
fn chosen<'r>(records: &'r [Record], wanted: &str) -> Result<&'r Record, CallFailure> {
    if let Some(record) = records.iter().find(|record| record.id == wanted) {
        return Ok(record);
    }
    let active = records.iter().filter(|record| record.due.is_some());
    let active: Vec<(&Record, String)> = active
        .filter_map(|record| Some((record, body::<Plan>(record).ok()?.message)))
        .collect();
    let mut titled = active
        .iter()
        .filter(|(_, message)| words(message).eq(words(wanted)));
    if let (Some((record, _)), None) = (titled.next(), titled.next()) {
        return Ok(record);
    }
    let there = active
        .iter()
        .map(|(record, message)| (record.id.as_str(), message.as_str()));
    let words = match active.is_empty() {
        true => format!("you have no plan {wanted:?}, and no other that could be cancelled"),
        false => format!(
            "you have no plan {wanted:?}. Your plans: {}. Call cancelPlan again with one of these ids.",
            named(there)
        ),
    };
    Err(CallFailure::new(ErrorCode::NotFound, words))
}

/// Whether a plan that this run made means the same as a new one. `inSeconds` counts from its call, so two of them are
/// equal by the time they leave.
fn is_equal(record: &Record, new: &Plan, due: Time, context: &CallContext) -> bool {
    let of_run = |call: &str| call.parse().is_ok_and(|call: CallId| call.run == context.run);
    let own = record.id.strip_prefix("plan_").is_some_and(of_run);
    let (true, Some(first_due), Ok(first)) = (own, record.due, body::<Plan>(record)) else {
        return false;
    };
    let same_span = || {
        let once = matches!(
            (&first.schedule, &new.schedule),
            (Schedule::At(_), Schedule::At(_))
        );
        once && first_due.since(record.created) == due.since(context.now)
    };
    first.message == new.message && (first.schedule == new.schedule || same_span())
}

fn as_it_is(record: &Record) -> Expected {
    Expected {
        id: record.id.clone(),
        version: Some(record.version),
    }
}

fn kept(record: &Record) -> Result<Value, CallFailure> {
    Ok(told(&record.id, &body(record)?, record.due, record.created))
}

fn told(id: &str, plan: &Plan, due: Option<Time>, created: Time) -> Value {
    let mut told = json!({
        "id": id,
        "message": plan.message,
        "status": if plan.paused { json!("paused") } else { json!(plan.status) },
        "schedule": plan.schedule,
        "nextAt": due,
        "runs": plan.runs,
        "createdAt": created,
    });
    if let Some(last) = plan.last {
        told["lastAt"] = json!(last);
    }
    if let Some(reason) = &plan.reason {
        told["reason"] = reason.clone().into();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_next_moment_whatever_is_stored() {
        let next = |seconds, due, now| Schedule::EverySeconds(seconds).next(Time(due), Time(now));
        assert_eq!(next(60, 0, 150_000), Some(Time(180_000)));
        assert_eq!(next(0, 0, 0), Some(Time(60_000)));
        assert_eq!(next(u64::MAX, i64::MAX, i64::MIN), Some(Time(i64::MAX)));
        assert!(next(60, i64::MIN, i64::MAX).is_some());
    }
}
