//! Times. Nothing here has a clock: every time arrives from outside.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Most characters of a wrong time that an error repeats.
const BAD_TIME_CHARS_MAX: usize = 64;

/// A time in milliseconds since 1970, written as RFC 3339 in UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub i64);

impl Time {
    /// The time `span` later.
    pub fn after(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(span.as_millis().min(i64::MAX as u128) as i64),
        )
    }
    /// The day and the next one, for a model that does not know the date: `Today is Monday 2026-11-16, tomorrow is
    /// Tuesday 2026-11-17.` In UTC.
    pub fn today(self) -> String {
        let today = self.timestamp().to_zoned(jiff::tz::TimeZone::UTC).date();
        // The last day of the calendar has none after it.
        let tomorrow = today.tomorrow().unwrap_or(today);
        format!(
            "Today is {}, tomorrow is {}.",
            today.strftime("%A %Y-%m-%d"),
            tomorrow.strftime("%A %Y-%m-%d")
        )
    }
    fn timestamp(self) -> Timestamp {
        let edge = if self.0 < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        };
        Timestamp::from_millisecond(self.0).unwrap_or(edge)
    }
    /// Duration since `earlier`; zero if the clock went back.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).max(0) as u64)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
        out.write_str(&PRINTER.timestamp_to_string(&self.timestamp()))
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}
impl Serialize for Time {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}
/// A text that is not a time in RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time, expected one like \"2026-11-16T08:30:00Z\"")]
pub struct BadTime(String);

/// RFC 3339.
impl std::str::FromStr for Time {
    type Err = BadTime;
    fn from_str(text: &str) -> Result<Self, BadTime> {
        let moment: Timestamp = text
            .parse()
            .map_err(|_| BadTime(text.chars().take(BAD_TIME_CHARS_MAX).collect()))?;
        Ok(Self(moment.as_millisecond()))
    }
}
impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        text.parse().map_err(de::Error::custom)
    }
}
