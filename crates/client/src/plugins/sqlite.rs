//! Read-only access to a SQLite database for an agent.
//!
//! The database is opened read-only, and an authorizer allows nothing but selecting from it, so that no
//! statement can write or open another file. Rows, bytes and time are limited.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plugin::Plugin;
use crate::tool::{Tool, ToolError};

/// Most rows of one result.
const ROWS_MAX: usize = 500;
/// Approximate limit on the bytes of one result.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of one value or row: SQLite never builds a larger one. Rows with a photograph still fit.
const VALUE_BYTES_MAX: i32 = 16 * 1024 * 1024;
/// Timeout of one query.
const QUERY_TIME_MAX: Duration = Duration::from_secs(10);
/// Virtual machine steps between two checks of the deadline.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

/// The plugin `sqlite` with the tools `list_tables` and `sql_query`. Fails if the file is not a database.
pub fn plugin(file: impl AsRef<Path>) -> Result<Plugin, rusqlite::Error> {
    // Made absolute now, because the program may change its working directory.
    let file = std::path::absolute(file.as_ref()).unwrap_or_else(|_| file.as_ref().into());
    tables(&open(&file)?)?;
    let other = file.clone();
    Ok(Plugin::new("sqlite", env!("CARGO_PKG_VERSION"))
        .tool(Tool::typed(
            "list_tables",
            "Lists the tables and views of the database, each with its CREATE statement.",
            move |_: ListTables| in_background(file.clone(), |connection| Ok(tables(&connection)?)),
        ))
        .tool(Tool::typed(
            "sql_query",
            "Runs one SELECT on the SQLite database and returns its rows. The database is read-only.",
            move |query: SqlQuery| {
                in_background(other.clone(), move |connection| select(connection, &query.query))
            },
        )))
}

#[derive(Deserialize, JsonSchema)]
struct ListTables {}

#[derive(Deserialize, JsonSchema)]
struct SqlQuery {
    /// One SELECT statement in SQLite's dialect.
    query: String,
}

#[derive(Serialize)]
struct Table {
    name: String,
    kind: String,
    sql: String,
}

#[derive(Serialize)]
struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    /// Whether there are more rows.
    truncated: bool,
}

async fn in_background<T: Send + 'static>(
    file: PathBuf,
    work: impl FnOnce(Connection) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(move || work(open(&file)?)).await?
}

fn open(file: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

fn tables(connection: &Connection) -> Result<Vec<Table>, rusqlite::Error> {
    let mut statement = connection.prepare(
        "SELECT name, type, sql FROM sqlite_schema
         WHERE type IN ('table', 'view') AND sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         ORDER BY name",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(Table {
            name: row.get(0)?,
            kind: row.get(1)?,
            sql: row.get(2)?,
        })
    })?;
    rows.collect()
}

fn select(mut connection: Connection, sql: &str) -> Result<Rows, ToolError> {
    let deadline = Instant::now() + QUERY_TIME_MAX;
    connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(move || Instant::now() > deadline))?;
    connection.authorizer(Some(only_reading))?;
    let mut statement = connection
        .prepare(sql)
        .map_err(|error| query_error(error, deadline))?;
    if !statement.readonly() {
        return Err(ToolError::new(
            "only SELECT is allowed: this statement would change the database",
        ));
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let width = columns.len();
    let mut answer = Rows {
        columns,
        rows: Vec::new(),
        truncated: false,
    };
    let mut bytes = 0;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next().map_err(|error| query_error(error, deadline))? {
        let values: Result<Vec<Value>, _> = (0..width).map(|at| row.get_ref(at).map(json)).collect();
        let values = values?;
        bytes += values.iter().map(size).sum::<usize>();
        if answer.rows.len() == ROWS_MAX || bytes > ANSWER_BYTES_MAX {
            answer.truncated = true;
            break;
        }
        answer.rows.push(values);
    }
    Ok(answer)
}

/// Allows reading tables and calling functions, and nothing else: no `ATTACH`, no `PRAGMA`, no extension.
fn only_reading(asked: AuthContext<'_>) -> Authorization {
    match asked.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if !function_name.eq_ignore_ascii_case("load_extension") => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

fn query_error(error: rusqlite::Error, deadline: Instant) -> ToolError {
    if Instant::now() > deadline {
        return ToolError::new(format_args!(
            "the query took longer than {QUERY_TIME_MAX:?} and was stopped"
        ));
    }
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::AuthorizationForStatementDenied) => {
            ToolError::new("only SELECT on the tables of this database is allowed")
        }
        _ => error.into(),
    }
}

fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => format!("<{} bytes>", bytes.len()).into(),
    }
}

fn size(value: &Value) -> usize {
    /// Estimated bytes of a number, and of the JSON around a value.
    const SMALL: usize = 16;
    value.as_str().map_or(SMALL, |text| text.len() + SMALL)
}
