//! Cron expressions of five fields in a time zone.
//!
//! Our own: with jiff's calendar it is short, and the crates that do this bring a second library for time.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};
use toolgate_kernel::time::Time;

/// How far ahead the next time is looked for: the 29th of February is at most eight years away.
const YEARS_AHEAD: i16 = 9;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A cron expression: minute, hour, day of the month, month, day of the week.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cron {
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
}

/// The numbers that a field allows, one bit each.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Field {
    allowed: u64,
    /// Written as `*`: of the two day fields such a one is ignored.
    any: bool,
}

impl Cron {
    /// Parses an expression; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(format!(
                "expected five fields (minute, hour, day of the month, month, day of the week) as in \"0 9 * * 1-5\", got {}",
                fields.len()
            ));
        };
        let mut weekdays = field(weekdays, 0, 7, &DAYS, 0).map_err(in_field("day of the week"))?;
        // Sunday is 0 and 7.
        weekdays.allowed |= weekdays.allowed >> 7 & 1;
        Ok(Self {
            minutes: field(minutes, 0, 59, &[], 0).map_err(in_field("minute"))?,
            hours: field(hours, 0, 23, &[], 0).map_err(in_field("hour"))?,
            days: field(days, 1, 31, &[], 0).map_err(in_field("day of the month"))?,
            months: field(months, 1, 12, &MONTHS, 1).map_err(in_field("month"))?,
            weekdays,
        })
    }

    /// The first time after `after` in a zone; none if there never is one, as on the 30th of February. A time
    /// of day that daylight saving skips is moved to the next that exists; one that occurs twice counts the first time.
    pub fn next(&self, after: Time, zone: &TimeZone) -> Option<Time> {
        let begin = jiff::Timestamp::from_millisecond(after.0).ok()?;
        let begin = begin.to_zoned(zone.clone()).datetime();
        let mut at = begin.with().second(0).subsec_nanosecond(0).build().ok()?;
        let end = begin.date().year().checked_add(YEARS_AHEAD)?;
        while at.date().year() <= end {
            if !self.months.allows(at.month()) {
                at = day_start(at.date().first_of_month().checked_add(1.month()).ok()?);
            } else if !self.allows_day(at.date()) {
                at = day_start(at.date().tomorrow().ok()?);
            } else if !self.hours.allows(at.hour()) {
                at = later(at.with().minute(0).build().ok()?, 1.hour())?;
            } else if !self.minutes.allows(at.minute()) {
                at = later(at, 1.minute())?;
            } else {
                let moment = zone.to_ambiguous_timestamp(at).compatible().ok()?;
                let moment = Time(moment.as_millisecond());
                if moment > after {
                    return Some(moment);
                }
                at = later(at, 1.minute())?;
            }
        }
        None
    }

    /// If both day fields are given, one match is enough, as in every cron.
    fn allows_day(&self, date: Date) -> bool {
        let by_month = self.days.allows(date.day());
        let by_week = self.weekdays.allows(number(date.weekday()));
        match (self.days.any, self.weekdays.any) {
            (false, false) => by_month || by_week,
            _ => by_month && by_week,
        }
    }
}

impl Field {
    fn allows(self, number: i8) -> bool {
        self.allowed >> number & 1 == 1
    }
}

fn number(day: Weekday) -> i8 {
    day.to_sunday_zero_offset()
}

fn day_start(date: Date) -> DateTime {
    date.at(0, 0, 0, 0)
}

fn later(at: DateTime, span: Span) -> Option<DateTime> {
    at.checked_add(span).ok()
}

fn in_field(name: &'static str) -> impl Fn(String) -> String {
    move |words| format!("in the field for the {name}: {words}")
}

/// A list of `*`, `n`, `n-m`, each perhaps with `/step`. `names` stand for numbers from `first` on.
fn field(text: &str, low: u8, high: u8, names: &[&str], first: u8) -> Result<Field, String> {
    let value = |word: &str| -> Result<u8, String> {
        let named = names.iter().position(|name| word.eq_ignore_ascii_case(name));
        let number = named.map(|at| at as u8 + first).or_else(|| word.parse().ok());
        let number = number.filter(|number| (low..=high).contains(number));
        number.ok_or_else(|| format!("expected a number from {low} to {high}, got {word:?}"))
    };
    let mut allowed = 0_u64;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            None => (part, 1),
            Some((range, step)) => match step.parse::<u8>() {
                Ok(step) if step > 0 => (range, step),
                _ => return Err(format!("expected a step from 1 on, got {step:?}")),
            },
        };
        let (from, to) = match (range, range.split_once('-')) {
            ("*", _) => (low, high),
            (_, Some((from, to))) => (value(from)?, value(to)?),
            (_, None) if part.contains('/') => (value(range)?, high),
            (_, None) => (value(range)?, value(range)?),
        };
        if from > to {
            return Err(format!("{part:?} ends before it begins"));
        }
        allowed |= (from..=to)
            .step_by(step.into())
            .fold(0, |bits, number| bits | 1 << number);
    }
    Ok(Field {
        allowed,
        any: text == "*",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(cron: &str, zone: &str, after: &str) -> String {
        let zone = TimeZone::get(zone).expect("a zone");
        let next = Cron::parse(cron)
            .expect("an expression")
            .next(after.parse().expect("a moment"), &zone);
        next.map_or("never".into(), |moment| moment.to_string())
    }

    #[test]
    fn the_next_moment_is_the_first_that_all_fields_allow() {
        let after = "2026-11-16T08:59:30Z";
        for (cron, expected) in [
            ("* * * * *", "2026-11-16T09:00:00.000Z"),
            ("*/15 * * * *", "2026-11-16T09:00:00.000Z"),
            ("30 8 * * *", "2026-11-17T08:30:00.000Z"),
            ("0 9 * * mon-fri", "2026-11-16T09:00:00.000Z"),
            ("0 9 * * 7", "2026-11-22T09:00:00.000Z"),
            ("0 0 1 jan *", "2027-01-01T00:00:00.000Z"),
            ("0 0 29 2 *", "2028-02-29T00:00:00.000Z"),
            ("0 0 13 * 5", "2026-11-20T00:00:00.000Z"),
            ("0 0 30 2 *", "never"),
        ] {
            assert_eq!(next(cron, "UTC", after), expected, "{cron}");
        }
    }

    #[test]
    fn the_time_of_day_is_that_of_the_zone_in_summer_and_in_winter() {
        let nine = |after| next("0 9 * * *", "Europe/Berlin", after);
        assert_eq!(nine("2026-07-01T00:00:00Z"), "2026-07-01T07:00:00.000Z");
        assert_eq!(nine("2026-12-01T00:00:00Z"), "2026-12-01T08:00:00.000Z");
    }

    #[test]
    fn an_hour_that_is_skipped_comes_late_and_one_that_is_twice_comes_once() {
        let half_past_two = |after| next("30 2 * * *", "Europe/Berlin", after);
        assert_eq!(half_past_two("2026-03-28T12:00:00Z"), "2026-03-29T01:30:00.000Z");
        assert_eq!(half_past_two("2026-10-24T12:00:00Z"), "2026-10-25T00:30:00.000Z");
        assert_eq!(half_past_two("2026-10-25T00:30:00Z"), "2026-10-26T01:30:00.000Z");
    }

    #[test]
    fn what_is_no_expression_is_told_with_its_field() {
        for (cron, words) in [
            ("* * * *", "five fields"),
            ("60 * * * *", "minute: expected a number from 0 to 59, got \"60\""),
            ("* * * * fun", "day of the week"),
            ("*/0 * * * *", "step"),
            ("5-1 * * * *", "ends before it begins"),
        ] {
            let error = Cron::parse(cron).expect_err(cron);
            assert!(error.contains(words), "{cron}: {error}");
        }
    }
}
