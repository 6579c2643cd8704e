//! Usage of tools: number of calls, failures, latency. Each call that ends is counted in the same write
//! that ends it, so the counters are as durable as the log and cost one row.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use toolgate_kernel::call::{CallState, ErrorCode, Outcome};
use toolgate_kernel::event::Event;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::problem::preview;
use toolgate_kernel::run::Run;
use toolgate_kernel::time::Time;

use crate::Engine;
use crate::store::StoreError;

/// Days since 1970, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

const DAY_MILLIS: i64 = 24 * 3600 * 1000;

impl Day {
    /// The day of a time.
    pub fn of(time: Time) -> Self {
        Self(time.0.div_euclid(DAY_MILLIS))
    }
    /// Start of the day.
    pub fn start(self) -> Time {
        Time(self.0.saturating_mul(DAY_MILLIS))
    }
    /// The day after.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
    /// The first day of its month.
    pub fn month(self) -> Self {
        self.in_month(Date::first_of_month)
    }
    /// The first day of the month after its own.
    pub fn next_month(self) -> Self {
        self.in_month(Date::last_of_month).next()
    }

    fn in_month(self, day: impl Fn(Date) -> Date) -> Self {
        Self::from(day(self.date()))
    }

    fn date(self) -> Date {
        let moment = Timestamp::from_millisecond(self.start().0).unwrap_or(Timestamp::UNIX_EPOCH);
        TimeZone::UTC.to_datetime(moment).date()
    }
}

impl From<Date> for Day {
    fn from(date: Date) -> Self {
        let start = date
            .to_zoned(TimeZone::UTC)
            .map_or(0, |start| start.timestamp().as_millisecond());
        Self::of(Time(start))
    }
}

/// As `2026-11-18`.
impl fmt::Display for Day {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.date().fmt(out)
    }
}

/// A date such as `2026-11-18`, or the UTC day of a time such as `2026-11-18T09:00:00Z`.
impl FromStr for Day {
    type Err = BadDay;
    fn from_str(text: &str) -> Result<Self, BadDay> {
        match text.parse::<Time>() {
            Ok(time) => Ok(Self::of(time)),
            Err(_) => text
                .parse::<Date>()
                .map(Self::from)
                .map_err(|_| BadDay { seen: preview(text) }),
        }
    }
}

/// A text that is no day.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{seen} is not a day, expected one like \"2026-11-16\"")]
pub struct BadDay {
    seen: String,
}

/// A finished call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    /// Project that owns the run.
    pub project: ProjectId,
    /// Name of the tool, as the model used it.
    pub tool: Arc<str>,
    /// Error code; none if the call succeeded.
    pub code: Option<ErrorCode>,
    /// Latency.
    pub latency: Latency,
}

/// Latency of a call as one of a few hundred classes: exact up to 16 milliseconds, then within an eighth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Latency(pub u16);

/// Classes per doubling, as a power of two.
const FINENESS: u32 = 3;

impl Latency {
    /// The class of a latency.
    pub fn of(time: Duration) -> Self {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let doublings = millis.checked_ilog2().unwrap_or(0).saturating_sub(FINENESS);
        Self(((doublings << FINENESS) as u64 + (millis >> doublings)) as u16)
    }
    /// The longest latency of the class.
    pub fn at_most(self) -> Duration {
        let classes = 1u64 << FINENESS;
        let class = u64::from(self.0);
        let doublings = (class / classes).saturating_sub(1);
        let start = class - doublings * classes;
        let end = u128::from(start + 1) << doublings.min(64);
        Duration::from_millis(u64::try_from(end - 1).unwrap_or(u64::MAX))
    }
}

/// Calls of one tool with the same outcome and latency class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageRecord {
    /// Error code; none if they succeeded.
    pub code: Option<ErrorCode>,
    /// Latency class.
    pub latency: Latency,
    /// Number of calls.
    pub calls: u64,
}

/// Usage statistics of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    /// Finished calls.
    pub calls: u64,
    /// Failed calls, by error code.
    pub failures: BTreeMap<ErrorCode, u64>,
    /// Latency of executed calls; none if there are none.
    pub latency: Option<Percentiles>,
}

/// Percentiles of latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentiles {
    /// Median.
    pub p50: Duration,
    /// 90th percentile.
    pub p90: Duration,
    /// 99th percentile.
    pub p99: Duration,
}

impl Usage {
    /// Sums the counters of a store.
    pub fn sum(records: &[UsageRecord]) -> Self {
        let mut usage = Self::default();
        let mut executed: BTreeMap<Latency, u64> = BTreeMap::new();
        for record in records {
            usage.calls += record.calls;
            if let Some(code) = record.code {
                *usage.failures.entry(code).or_default() += record.calls;
            }
            if was_executed(record.code) {
                *executed.entry(record.latency).or_default() += record.calls;
            }
        }
        usage.latency = percentiles(&executed);
        usage
    }
}

/// Whether calls with this outcome count for latency: only those that were executed do.
fn was_executed(code: Option<ErrorCode>) -> bool {
    match code {
        None | Some(ErrorCode::ExecutionFailed | ErrorCode::InvalidOutput | ErrorCode::Timeout) => true,
        Some(
            ErrorCode::NotFound
            | ErrorCode::ValidationFailed
            | ErrorCode::PrerequisitesNotMet
            | ErrorCode::PermissionDenied
            | ErrorCode::LimitExceeded
            | ErrorCode::Denied
            | ErrorCode::Cancelled
            | ErrorCode::Superseded
            | ErrorCode::Interrupted
            | ErrorCode::Unavailable,
        ) => false,
    }
}

fn percentiles(calls: &BTreeMap<Latency, u64>) -> Option<Percentiles> {
    let all: u64 = calls.values().sum();
    let last = calls.keys().next_back()?;
    let within = |percent: u64| {
        let wanted = (all * percent).div_ceil(100);
        let mut seen = 0;
        let reached = |(latency, calls): (&Latency, &u64)| {
            seen += calls;
            (seen >= wanted).then_some(*latency)
        };
        calls.iter().find_map(reached).unwrap_or(*last).at_most()
    };
    Some(Percentiles {
        p50: within(50),
        p90: within(90),
        p99: within(99),
    })
}

/// Calls that ended with these events of `run`, which has applied them. A name that the model made up is no
/// tool, and not counted.
pub(crate) fn of(run: &Run, project: ProjectId, events: &[Event]) -> Vec<ToolUse> {
    let ended = events.iter().filter_map(Event::settles);
    ended
        .filter_map(|id| {
            let call = run.call(id)?;
            let (CallState::Settled(settled), Some(_)) = (&call.state, &call.definition) else {
                return None;
            };
            let code = match &settled.outcome {
                Outcome::Output(_) => None,
                Outcome::Error { code, .. } => Some(*code),
            };
            Some(ToolUse {
                project,
                tool: call.tool.name.clone(),
                code,
                latency: Latency::of(settled.time.since(call.since)),
            })
        })
        .collect()
}

impl Engine {
    /// Usage statistics of a tool since the day of a time, that day included.
    pub async fn usage(&self, project: ProjectId, tool: &str, since: Time) -> Result<Usage, StoreError> {
        let records = self.inner.store.usage(project, tool, Day::of(since)).await?;
        Ok(Usage::sum(&records))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_exact_when_short_and_within_an_eighth_when_long() {
        for millis in (0..5_000).chain([86_400_000, 2_592_000_000, u64::MAX / 2, u64::MAX]) {
            let told = Latency::of(Duration::from_millis(millis)).at_most().as_millis() as u64;
            assert!(told >= millis, "{told} for {millis}");
            let most = if millis < 16 {
                millis
            } else {
                millis.saturating_add(millis / 8)
            };
            assert!(told <= most, "{told} for {millis}");
        }
    }

    #[test]
    fn a_day_knows_its_month_and_is_written_as_a_date() {
        let day = |text: &str| text.parse::<Day>().expect("a day");
        assert_eq!(day("1970-01-02"), Day(1));
        assert_eq!(day("2026-11-18T23:59:59+02:00"), day("2026-11-18"));
        assert_eq!(day("2026-11-18T23:59:59-02:00"), day("2026-11-19"));
        assert_eq!(day("2028-02-29").month(), day("2028-02-01"));
        assert_eq!(day("2028-02-29").next_month(), day("2028-03-01"));
        assert_eq!(day("2026-12-31").next_month(), day("2027-01-01"));
        assert_eq!(day("2026-12-31").to_string(), "2026-12-31");
        assert!("2026-02-30".parse::<Day>().is_err() && "today".parse::<Day>().is_err());
    }

    #[test]
    fn longer_times_are_in_later_classes() {
        let class = |millis| Latency::of(Duration::from_millis(millis));
        assert!((0..100_000).all(|millis| class(millis) <= class(millis + 1)));
        assert_eq!(class(u64::MAX).0, 495);
    }

    #[test]
    fn percentiles_are_over_what_was_executed() {
        let record = |code, millis, calls| UsageRecord {
            code,
            latency: Latency::of(Duration::from_millis(millis)),
            calls,
        };
        let usage = Usage::sum(&[
            record(None, 1, 90),
            record(None, 15, 8),
            record(Some(ErrorCode::Timeout), 1_000, 2),
            record(Some(ErrorCode::ValidationFailed), 0, 500),
        ]);
        assert_eq!(usage.calls, 600);
        assert_eq!(
            usage.failures,
            BTreeMap::from([(ErrorCode::ValidationFailed, 500), (ErrorCode::Timeout, 2)])
        );
        let millis = |time: Duration| time.as_millis();
        let latency = usage.latency.expect("some were executed");
        assert_eq!(
            (millis(latency.p50), millis(latency.p90), millis(latency.p99)),
            (1, 1, 1_023)
        );
        assert_eq!(Usage::sum(&[]), Usage::default());
    }
}
