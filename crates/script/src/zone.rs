//! Moments in time zones, for `Intl.DateTimeFormat`.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use rquickjs::{Ctx, Exception, Result};

/// A moment (milliseconds since 1970) as the clocks of a time zone show it: year, month, day, weekday (0 is Sunday), hour,
/// minute, second, and how far the zone is from UTC in seconds; then its name as it is usually written, and what it is
/// called at that moment. As JSON, which is read faster than an array is made.
pub(crate) fn zoned(ctx: Ctx<'_>, millis: f64, zone: String) -> Result<String> {
    let invalid = || Exception::throw_range(&ctx, "Invalid time value");
    let known = known(&zone).ok_or_else(|| {
        let shown: String = zone.chars().take(64).collect();
        Exception::throw_range(&ctx, &format!("Invalid time zone specified: {shown}"))
    })?;
    if !millis.is_finite() {
        return Err(invalid());
    }
    let moment = Timestamp::from_millisecond(millis as i64).map_err(|_| invalid())?;
    let offset = known.to_offset_info(moment);
    let at = known.to_datetime(moment);
    let name = match known.iana_name() {
        Some(name) => name.to_owned(),
        None => zone,
    };
    let fields = serde_json::json!([
        at.year(),
        at.month(),
        at.day(),
        at.weekday().to_sunday_zero_offset(),
        at.hour(),
        at.minute(),
        at.second(),
        offset.offset().seconds(),
        name,
        offset.abbreviation(),
    ]);
    Ok(fields.to_string())
}

/// A zone by its name in any case, or by an offset like `+05:30`.
fn known(name: &str) -> Option<TimeZone> {
    if name.eq_ignore_ascii_case("utc") {
        return Some(TimeZone::UTC);
    }
    if let Some(sign) = name.chars().next().filter(|sign| ['+', '-'].contains(sign)) {
        let digits: String = name[1..].chars().filter(|digit| *digit != ':').collect();
        let number = |part: Option<&str>| part.map_or(Some(0), |part| part.parse::<i32>().ok());
        if !matches!(digits.len(), 2 | 4) {
            return None;
        }
        let (hours, minutes) = (number(digits.get(..2))?, number(digits.get(2..4))?);
        if hours > 23 || minutes > 59 {
            return None;
        }
        let seconds = hours * 3_600 + minutes * 60;
        let seconds = if sign == '-' { -seconds } else { seconds };
        return Offset::from_seconds(seconds).ok().map(TimeZone::fixed);
    }
    TimeZone::get(name).ok()
}
