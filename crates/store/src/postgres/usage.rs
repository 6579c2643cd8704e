//! Usage counters of tools: one row for the calls of a day with the same outcome and latency class.

use std::collections::BTreeMap;

use tokio_postgres::Row;
use toolgate_engine::store::StoreError;
use toolgate_engine::usage::{Day, Latency, UsageRecord};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::ProjectId;
use uuid::Uuid;

use super::batch::{Trip, pairs};
use super::column::{Id, get, number, rows, small, text};
use super::fault::Fault;
use super::plan::UsageKey;
use super::session::Db;

const COUNT: &str = "
    INSERT INTO tool_usage (project, tool, day, code, latency, shard, calls)
    SELECT project, tool, day, code, latency, $7, calls
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[])
        AS more (project, tool, day, code, latency, calls)
    ON CONFLICT (project, tool, day, code, latency, shard) DO UPDATE SET calls = tool_usage.calls + excluded.calls";

/// Calls to count, as parameters. In the order of their keys, so that two writers do not wait for each other.
pub(super) struct Columns {
    projects: Vec<Uuid>,
    tools: Vec<String>,
    days: Vec<i64>,
    codes: Vec<&'static str>,
    latencies: Vec<i64>,
    calls: Vec<i64>,
    shard: i64,
}

impl Columns {
    pub(super) fn of(usage: &BTreeMap<UsageKey, u64>, shard: i64) -> Self {
        let (projects, tools) = pairs(usage.keys().map(|(project, tool, ..)| (*project, tool.as_str())));
        Self {
            projects,
            tools,
            days: usage.keys().map(|(_, _, day, ..)| *day).collect(),
            codes: usage.keys().map(|(.., code, _)| *code).collect(),
            latencies: usage.keys().map(|(.., latency)| i64::from(*latency)).collect(),
            calls: usage.values().map(|calls| *calls as i64).collect(),
            shard,
        }
    }

    pub(super) async fn add_to<'t>(&'t self, trip: &mut Trip<'t>) -> Result<(), Fault> {
        let params = vec![
            &self.projects as _,
            &self.tools as _,
            &self.days as _,
            &self.codes as _,
            &self.latencies as _,
            &self.calls as _,
            &self.shard as _,
        ];
        trip.add_if(!self.calls.is_empty(), COUNT, params).await.map(drop)
    }
}

pub(super) const SINCE: &str = "
    SELECT code, latency, sum(calls)::bigint FROM tool_usage WHERE project = $1 AND tool = $2 AND day >= $3
    GROUP BY code, latency";

pub(super) async fn since(
    db: &Db<'_>,
    project: ProjectId,
    tool: &str,
    day: Day,
) -> Result<Vec<UsageRecord>, Fault> {
    rows(db, SINCE, &[&project.uuid(), &text(tool), &day.0], record).await
}

pub(super) const OF_PROJECT: &str = "
    SELECT code, latency, sum(calls)::bigint FROM tool_usage WHERE project = $1 AND day >= $2
    GROUP BY code, latency";

/// The figures of all tools of a project together.
pub(super) async fn of_project(db: &Db<'_>, project: ProjectId, day: Day) -> Result<Vec<UsageRecord>, Fault> {
    rows(db, OF_PROJECT, &[&project.uuid(), &day.0], record).await
}

fn record(row: &Row) -> Result<UsageRecord, Fault> {
    Ok(UsageRecord {
        code: code(&get::<String>(row, 0)?)?,
        latency: Latency(small(row, 1)?),
        calls: number(row, 2)?,
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
