//! When a new plan is due, as a model says it: one of several members, however many it fills in.

use std::time::Duration;

use jiff::tz::TimeZone;
use serde::Deserialize;
use toolgate_kernel::time::Time;

use super::{PlanLimits, Schedule};
use crate::cron::Cron;

/// Longest cron expression: more than one that lists every minute, hour, day and month.
const CRON_BYTES_MAX: usize = 512;
/// Seconds by which `at` and `inSeconds` may differ and still mean the same moment.
const SAME_MOMENT: Duration = Duration::from_secs(60);

/// Input of `createPlan`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateInput {
    pub message: String,
    at: Option<Time>,
    in_seconds: Option<u64>,
    every_seconds: Option<u64>,
    cron: Option<String>,
    time_zone: Option<String>,
}

/// The one member that says when.
enum When<'a> {
    In(Duration),
    At(Time),
    Every(u64),
    Cron(&'a str),
}

impl CreateInput {
    /// The schedule and its first due time; or what is wrong, with the next call.
    pub fn schedule(&self, now: Time, limits: PlanLimits) -> Result<(Schedule, Time), String> {
        let soonest = limits.ahead_min.as_secs();
        match self.when(now)? {
            When::At(moment) if moment <= now => Err(format!(
                "\"at\" is over: {moment}. {} Call createPlan again with the right day.",
                now.today()
            )),
            When::At(moment) if moment < now.after(limits.ahead_min) => Err(format!(
                "\"at\" must be {soonest} seconds ahead or more. Call createPlan again with inSeconds {soonest} instead of at."
            )),
            When::At(moment) => Ok((Schedule::At(moment), moment)),
            When::In(span) if span < limits.ahead_min => Err(format!(
                "\"inSeconds\" must be {soonest} or more. Call createPlan again with inSeconds {soonest}."
            )),
            When::In(span) => Ok((Schedule::At(now.after(span)), now.after(span))),
            When::Every(seconds) => Ok((
                Schedule::EverySeconds(seconds),
                now.after(Duration::from_secs(seconds)),
            )),
            When::Cron(expression) => self.cron(expression, now),
        }
    }

    /// The member that counts. A model that does not know the date adds an `at` that is over, which says nothing beside
    /// another member; and `at` may repeat what `inSeconds` says.
    fn when(&self, now: Time) -> Result<When<'_>, String> {
        let in_seconds = |seconds| When::In(Duration::from_secs(seconds));
        let others = [
            ("cron", self.cron.as_deref().map(When::Cron)),
            ("everySeconds", self.every_seconds.map(When::Every)),
            ("inSeconds", self.in_seconds.map(in_seconds)),
        ];
        let others = others.into_iter().filter_map(|(name, when)| Some((name, when?)));
        let mut given: Vec<(&str, When<'_>)> = others.collect();
        let says_more = |at: Time| match given.as_slice() {
            [] => true,
            [(_, When::In(span))] => {
                let other = now.after(*span);
                at > now && other.since(at).max(at.since(other)) > SAME_MOMENT
            }
            _ => at > now,
        };
        if let Some(at) = self.at.filter(|at| says_more(*at)) {
            given.push(("at", When::At(at)));
        }
        let names: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
        match names.as_slice() {
            [] => Err(
                "it is not said when. Call createPlan again with exactly one of inSeconds, at, \
                       everySeconds and cron."
                    .into(),
            ),
            [_] => Ok(given.remove(0).1),
            [first, rest @ ..] => Err(format!(
                "{} were given, and only one may be. Call createPlan again with {first} alone, without {}.",
                names.join(" and "),
                rest.join(" and ")
            )),
        }
    }

    fn cron(&self, expression: &str, now: Time) -> Result<(Schedule, Time), String> {
        if expression.len() > CRON_BYTES_MAX {
            let seen = expression.len();
            return Err(format!(
                "expected a \"cron\" of at most {CRON_BYTES_MAX} bytes, got {seen}"
            ));
        }
        let time_zone = self.time_zone.clone().unwrap_or_else(|| "UTC".into());
        let zone = TimeZone::get(&time_zone).map_err(|_| {
            format!("there is no time zone {time_zone:?}; expected one like \"Europe/Berlin\"")
        })?;
        let first = Cron::parse(expression)?.next(now, &zone);
        let first = first.ok_or_else(|| format!("{expression:?} never comes"))?;
        let expression = expression.to_owned();
        let schedule = Schedule::Cron {
            expression,
            time_zone,
        };
        Ok((schedule, first))
    }
}
