//! Kernel values in columns. Ids are bound and read as their 16 bytes, times as their milliseconds.

use rusqlite::{Connection, Params, Row};
use toolgate_engine::store::StoreError;
use toolgate_kernel::event::Seq;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::{AgentName, ToolName};

use super::fault::Fault;

/// The rows of a query, each read by `read`.
pub(crate) fn rows<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    connection
        .prepare_cached(sql)?
        .query_and_then(params, read)?
        .collect()
}

/// The first row of a query.
pub(crate) fn first<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    connection
        .prepare_cached(sql)?
        .query_and_then(params, read)?
        .next()
        .transpose()
}

/// Runs a statement and returns the number of rows it changed.
pub(crate) fn change(connection: &Connection, sql: &str, params: impl Params) -> Result<usize, Fault> {
    Ok(connection.prepare_cached(sql)?.execute(params)?)
}

/// Runs a conditional insert; `Exists` if it changed nothing.
pub(crate) fn insert(connection: &Connection, sql: &str, params: impl Params) -> Result<(), Fault> {
    match change(connection, sql, params)? {
        0 => Err(StoreError::Exists.into()),
        _ => Ok(()),
    }
}

/// A limit or sequence number as an SQL integer; larger values are clamped, as there is nothing beyond.
pub(crate) fn bounded(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

pub(crate) fn seq(row: &Row<'_>, column: usize) -> Result<Seq, Fault> {
    Ok(Seq(row.get::<_, i64>(column)? as u64))
}

pub(crate) fn json(row: &Row<'_>, column: usize) -> Result<Json, Fault> {
    parse_json(row.get(column)?)
}

pub(crate) fn optional_json(row: &Row<'_>, column: usize) -> Result<Option<Json>, Fault> {
    row.get::<_, Option<String>>(column)?.map(parse_json).transpose()
}

/// Grants as they are stored; nothing when there are none.
pub(crate) fn grants_text(grants: &[String]) -> Option<String> {
    (!grants.is_empty()).then(|| serde_json::json!(grants).to_string())
}

pub(crate) fn grants(row: &Row<'_>, column: usize) -> Result<Vec<String>, Fault> {
    let text = row.get::<_, Option<String>>(column)?;
    let read = text.map(|text| serde_json::from_str(&text)).transpose();
    Ok(read
        .map_err(|error| StoreError::Corrupt(error.to_string()))?
        .unwrap_or_default())
}

pub(crate) fn agent_name(row: &Row<'_>, column: usize) -> Result<AgentName, Fault> {
    parse_agent_name(row.get(column)?)
}

pub(crate) fn optional_agent_name(row: &Row<'_>, column: usize) -> Result<Option<AgentName>, Fault> {
    row.get::<_, Option<String>>(column)?
        .map(parse_agent_name)
        .transpose()
}

pub(crate) fn tool_name(row: &Row<'_>, column: usize) -> Result<Option<ToolName>, Fault> {
    let name = row.get::<_, Option<String>>(column)?.map(ToolName::try_from);
    Ok(name
        .transpose()
        .map_err(|error| StoreError::Corrupt(error.to_string()))?)
}

fn parse_json(text: String) -> Result<Json, Fault> {
    Json::parse(text).map_err(|error| StoreError::Corrupt(error.to_string()).into())
}

fn parse_agent_name(text: String) -> Result<AgentName, Fault> {
    AgentName::try_from(text).map_err(|error| StoreError::Corrupt(error.to_string()).into())
}
