//! Usage counters of tools: one row for the calls of a day with the same outcome and latency class.

use rusqlite::{Connection, Row, params};
use toolgate_engine::store::StoreError;
use toolgate_engine::usage::{Day, Latency, ToolUse, UsageRecord};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::ProjectId;

use super::column::{change, rows};
use super::fault::Fault;

const COUNT: &str = "
    INSERT INTO tool_usage (project, tool, day, code, latency, calls) VALUES (?1, ?2, ?3, ?4, ?5, 1)
    ON CONFLICT DO UPDATE SET calls = calls + 1";

/// Counts a call that ended on `day`.
pub(crate) fn count(connection: &Connection, used: &ToolUse, day: Day) -> Result<(), Fault> {
    let code = used.code.map_or("", ErrorCode::as_str);
    let row = params![used.project.to_bytes(), &*used.tool, day.0, code, used.latency.0];
    change(connection, COUNT, row).map(drop)
}

const SINCE: &str = "
    SELECT code, latency, sum(calls) FROM tool_usage WHERE project = ?1 AND tool = ?2 AND day >= ?3
    GROUP BY code, latency";

pub(crate) fn since(
    connection: &Connection,
    project: ProjectId,
    tool: &str,
    day: Day,
) -> Result<Vec<UsageRecord>, Fault> {
    rows(
        connection,
        SINCE,
        params![project.to_bytes(), tool, day.0],
        record,
    )
}

const OF_PROJECT: &str = "
    SELECT code, latency, sum(calls) FROM tool_usage WHERE project = ?1 AND day >= ?2 GROUP BY code, latency";

/// The figures of all tools of a project together.
pub(crate) fn of_project(
    connection: &Connection,
    project: ProjectId,
    day: Day,
) -> Result<Vec<UsageRecord>, Fault> {
    rows(connection, OF_PROJECT, params![project.to_bytes(), day.0], record)
}

fn record(row: &Row<'_>) -> Result<UsageRecord, Fault> {
    Ok(UsageRecord {
        code: code(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?,
        latency: Latency(row.get(1)?),
        calls: row.get::<_, i64>(2)? as u64,
    })
}

fn code(text: &str) -> Result<Option<ErrorCode>, Fault> {
    if text.is_empty() {
        return Ok(None);
    }
    let known = ErrorCode::parse(text);
    known
        .map(Some)
        .ok_or_else(|| StoreError::Corrupt(format!("a call that ended with {text:?}")).into())
}
