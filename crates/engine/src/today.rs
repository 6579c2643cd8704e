//! The date, as a model is told it.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use toolgate_kernel::time::Time;

/// One sentence: the day of the week, the date, and the time zone in which it is that day; UTC if the zone is unknown.
/// Without the time of day, which would change the beginning of every request.
pub(crate) fn today(now: Time, zone: Option<&str>) -> String {
    let now = Timestamp::from_millisecond(now.0).unwrap_or(Timestamp::UNIX_EPOCH);
    let known = zone.and_then(|name| Some((name, TimeZone::get(name).ok()?)));
    match known {
        Some((name, zone)) => {
            let date = now.to_zoned(zone);
            let (day, offset) = (date.strftime("%A, %Y-%m-%d"), date.strftime("%:z"));
            format!("Today is {day} (time zone {name}, UTC{offset}).")
        }
        None => {
            let day = now.to_zoned(TimeZone::UTC);
            format!("Today is {} (UTC).", day.strftime("%A, %Y-%m-%d"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(moment: &str, zone: Option<&str>, expected: &str) {
        assert_eq!(today(moment.parse().unwrap(), zone), expected);
    }

    #[test]
    fn the_date_is_that_of_the_time_zone() {
        let late = "2026-11-16T23:30:00Z";
        check(late, None, "Today is Monday, 2026-11-16 (UTC).");
        let rome = "Today is Tuesday, 2026-11-17 (time zone Europe/Rome, UTC+01:00).";
        check(late, Some("Europe/Rome"), rome);
        check(late, Some("Middle/Earth"), "Today is Monday, 2026-11-16 (UTC).");
    }
}
