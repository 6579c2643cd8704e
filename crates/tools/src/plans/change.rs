//! Changes of a plan by hand.

use serde_json::{Map, Value};
use toolgate_engine::records::{NewRecord, Record};
use toolgate_kernel::members::Members;
use toolgate_kernel::time::Time;

use super::moment::CreateInput;
use super::{
    EVERY_SECONDS_MAX, EVERY_SECONDS_MIN, MESSAGE_CHARS_MAX, Plan, PlanLimits, PlanStatus, Schedule, put,
};

/// The members of a plan that can be changed.
pub(crate) const CHANGEABLE: [&str; 7] = [
    "message",
    "inSeconds",
    "at",
    "everySeconds",
    "cron",
    "timeZone",
    "status",
];
/// Those that say when it is due.
const TIMES: [&str; 5] = ["inSeconds", "at", "everySeconds", "cron", "timeZone"];

/// The plan with these changes. A new time makes a finished plan active again.
pub(crate) fn changed(
    record: &Record,
    changes: &Members<'_>,
    limits: PlanLimits,
    now: Time,
) -> Option<NewRecord> {
    let mut plan: Plan = record.body.read().ok()?;
    let mut due = record.due;
    if let Some(message) = changes.text("message", MESSAGE_CHARS_MAX) {
        plan.message = message.to_owned();
    }
    let is_cancelled = changes.choice("status", &[("cancelled", ())]).is_some();
    if TIMES.iter().any(|member| changes.get(member).is_some()) {
        if is_cancelled {
            changes.wrong("status", "a plan that is cancelled has no time");
        }
        let (schedule, first) = schedule(changes, limits, now)?;
        plan = Plan {
            schedule,
            status: PlanStatus::Active,
            waits_since: None,
            blocked_since: None,
            paused: false,
            reason: None,
            ..plan
        };
        due = Some(first);
    }
    if is_cancelled {
        plan.status = PlanStatus::Cancelled;
        due = None;
    }
    Some(put(record.id.clone(), &plan, due))
}

/// When the plan is due from now on, by the rules of `createPlan`.
fn schedule(changes: &Members<'_>, limits: PlanLimits, now: Time) -> Option<(Schedule, Time)> {
    changes.whole("inSeconds", 1..=EVERY_SECONDS_MAX);
    changes.whole("everySeconds", EVERY_SECONDS_MIN..=EVERY_SECONDS_MAX);
    let mut given: Map<String, Value> = TIMES
        .iter()
        .filter_map(|member| Some(((*member).to_owned(), changes.get(member)?.clone())))
        .collect();
    given.insert("message".into(), "".into());
    let wanted: CreateInput = serde_json::from_value(Value::Object(given))
        .map_err(|error| changes.lacks(format!("the time cannot be read: {error}")))
        .ok()?;
    wanted
        .schedule(now, limits)
        // What follows is advice to a model.
        .map_err(|words| changes.lacks(words.split(" Call createPlan").next().unwrap_or_default()))
        .ok()
}
