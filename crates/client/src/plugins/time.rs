//! The current time in any time zone.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plugin::Plugin;
use crate::tool::{Tool, ToolError};

/// The plugin `time` with the tools `get_current_time` and `convert_time`.
pub fn plugin() -> Plugin {
    Plugin::new("time", env!("CARGO_PKG_VERSION"))
        .tool(Tool::typed(
            "get_current_time",
            "Returns the current date and time in a time zone.",
            |asked: GetCurrentTime| async move { moment(Timestamp::now(), asked.timezone.as_deref()) },
        ))
        .tool(Tool::typed(
            "convert_time",
            "Converts a time to another time zone.",
            |asked: ConvertTime| async move {
                let time: Timestamp = asked.time.parse()?;
                moment(time, Some(&asked.timezone))
            },
        ))
}

#[derive(Deserialize, JsonSchema)]
struct GetCurrentTime {
    /// IANA time zone such as "Europe/Berlin" or "UTC"; this machine's time zone by default.
    timezone: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct ConvertTime {
    /// RFC 3339, such as "2026-11-16T12:00:00Z" or "2026-11-16T12:00:00-05:00".
    time: String,
    /// IANA time zone such as "Asia/Tokyo".
    timezone: String,
}

#[derive(Serialize)]
struct Moment {
    /// RFC 3339, in the time zone.
    time: String,
    timezone: String,
    weekday: String,
}

fn moment(time: Timestamp, zone: Option<&str>) -> Result<Moment, ToolError> {
    let zone = match zone {
        None => TimeZone::system(),
        Some(name) => TimeZone::get(name).map_err(|_| {
            ToolError::new(format_args!(
                "{name:?} is not a time zone, expected a name like \"America/New_York\""
            ))
        })?,
    };
    let zoned: Zoned = time.to_zoned(zone);
    Ok(Moment {
        time: zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        timezone: zoned.time_zone().iana_name().unwrap_or("local").to_owned(),
        weekday: zoned.strftime("%A").to_string(),
    })
}
