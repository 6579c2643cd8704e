//! Rows of a PostgreSQL database.

use std::time::Duration;

use async_trait::async_trait;
use tokio_postgres::types::ToSql;
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use uuid::Uuid;

use super::Database;
use super::row::{Row, Value};
use super::tables::{Column, Kind, Of, Table};
use crate::postgres::column::{Param, first, get, text, unescape};
use crate::postgres::fault::Fault;
use crate::postgres::pool::Lease;
use crate::postgres::unfinished_import;
use crate::postgres::{self, PostgresAddress, PostgresOptions};

/// A PostgreSQL database, on one connection of its own.
pub struct PostgresDatabase {
    lease: Lease,
}

/// Longest time for a statement that reads or writes many rows.
const STATEMENT: Duration = Duration::from_secs(3600);

fn options() -> PostgresOptions {
    PostgresOptions {
        statement_timeout: STATEMENT,
        ..PostgresOptions::default()
    }
}

impl PostgresDatabase {
    /// Connects to a database to read it, and changes nothing; `Unavailable` if it is not of this version.
    pub async fn open(address: &PostgresAddress) -> Result<Self, StoreError> {
        let opened = async { Self::of(postgres::connect_to_read(address, options()).await?).await };
        opened.await.map_err(Fault::into_store_error)
    }

    /// Connects to a database to write it, migrated to this version. No gateway starts on it until this is dropped;
    /// `Unavailable` if one is starting or running, or if another import is under way.
    pub async fn create(address: &PostgresAddress) -> Result<Self, StoreError> {
        let opened = async {
            let lease = postgres::connect_and_migrate(address, options()).await?;
            if !postgres::hold_start(&lease).await? {
                let why = "a gateway is starting on the database, or another import is under way";
                return Err(StoreError::Unavailable(why.into()).into());
            }
            postgres::require_unused(&lease).await?;
            Self::of(lease).await
        };
        opened.await.map_err(Fault::into_store_error)
    }

    async fn of(lease: Lease) -> Result<Self, Fault> {
        lease
            .client
            .batch_execute("SET idle_in_transaction_session_timeout = 0")
            .await?;
        Ok(Self { lease })
    }

    async fn control(&self, sql: &str) -> Result<(), StoreError> {
        let done = self.lease.client.batch_execute(sql).await;
        done.map_err(|error| Fault::from(error).into_store_error())
    }

    async fn read(
        &self,
        table: &'static Table,
        project: Option<ProjectId>,
        after: Option<&Row>,
    ) -> Result<Vec<Row>, Fault> {
        let mut conditions = vec!["true".to_owned()];
        let mut values: Vec<Box<dyn ToSql + Sync + Send>> = Vec::new();
        if let Some(project) = project {
            values.push(Box::new(Uuid::from_bytes(project.to_bytes())));
            conditions.push(match table.of {
                Of::Column(name) => format!("{name} = $1"),
                Of::Space => "space IN (SELECT id FROM spaces WHERE project = $1)".into(),
            });
        }
        if let Some(after) = after {
            let places = (values.len() + 1..).take(table.key).map(|n| format!("${n}"));
            let places: Vec<String> = places.collect();
            conditions.push(format!("({}) > ({})", table.key_list(), places.join(", ")));
            values.extend(after.key(table).iter().map(one));
        }
        let sql = format!(
            "SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT {}",
            table.list(),
            source(table),
            conditions.join(" AND "),
            table.key_list(),
            table.page
        );
        let params: Vec<Param<'_>> = values.iter().map(|value| &**value as Param<'_>).collect();
        let rows = self.lease.db().query(&sql, &params).await?;
        let read = rows.iter().map(|row| {
            let columns = table.columns.iter().enumerate();
            let values = columns.map(|(n, column)| value(row, n, column.kind));
            Ok(Row(values.collect::<Result<_, Fault>>()?))
        });
        read.collect()
    }

    async fn write(
        &self,
        import: &str,
        lines: u64,
        table: &'static Table,
        rows: &[Row],
    ) -> Result<(), Fault> {
        // Again with every batch: a gateway of a version that does not wait for imports may have started.
        postgres::require_unused(&self.lease).await?;
        let db = self.lease.db();
        db.control("BEGIN").await??;
        // With the first rows: an import that stores nothing leaves nothing behind.
        db.control(unfinished_import::TABLE).await??;
        let arrays: Vec<Box<dyn ToSql + Sync + Send>> = table
            .columns
            .iter()
            .enumerate()
            .map(|(n, column)| array(column.kind, rows.iter().map(move |row| &row.0[n])))
            .collect();
        let params: Vec<Param<'_>> = arrays.iter().map(|array| &**array as Param<'_>).collect();
        let stored = match table.name {
            "records" => write_records(&db, table, &params).await,
            _ => db
                .execute(&insert_sql(table, table.columns), &params)
                .await
                .map(drop),
        };
        stored?;
        db.execute(ADVANCE, &[&import, &(lines as i64)]).await?;
        Ok(db.control("COMMIT").await??)
    }
}

const PROGRESS: &str = "SELECT lines FROM imports WHERE id = $1";
const ADVANCE: &str = "
    INSERT INTO imports (id, lines) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET lines = excluded.lines";
const ENDED: &str = "DELETE FROM imports WHERE id = $1";

#[async_trait]
impl Database for PostgresDatabase {
    async fn begin_snapshot(&mut self) -> Result<(), StoreError> {
        self.control("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            .await
    }

    async fn rows(
        &mut self,
        table: &'static Table,
        project: Option<ProjectId>,
        after: Option<&Row>,
    ) -> Result<Vec<Row>, StoreError> {
        self.read(table, project, after)
            .await
            .map_err(Fault::into_store_error)
    }

    async fn progress(&mut self, import: &str) -> Result<Option<u64>, StoreError> {
        let lines = async {
            let db = self.lease.db();
            if !unfinished_import::table_exists(&db).await? {
                return Ok(None);
            }
            first(&db, PROGRESS, &[&import], |row| get::<i64>(row, 0)).await
        };
        let lines = lines.await.map_err(Fault::into_store_error)?;
        Ok(lines.map(|lines| lines as u64))
    }

    async fn store(
        &mut self,
        import: &str,
        lines: u64,
        table: &'static Table,
        rows: &[Row],
    ) -> Result<(), StoreError> {
        let written = self.write(import, lines, table, rows).await;
        written.map_err(Fault::into_store_error)
    }

    async fn finish(&mut self, import: &str) -> Result<(), StoreError> {
        self.control(unfinished_import::HEADS).await?;
        let forgotten = async {
            let db = self.lease.db();
            match unfinished_import::table_exists(&db).await? {
                true => db.execute(ENDED, &[&import]).await.map(drop),
                false => Ok(()),
            }
        };
        forgotten.await.map_err(Fault::into_store_error)?;
        self.control("ANALYZE").await
    }
}

/// What the rows of a table are read from, in the columns of the format.
fn source(table: &Table) -> &'static str {
    match table.name {
        // Writers count in shards of their own.
        "tool_usage" => {
            "(SELECT project, tool, day, code, latency, sum(calls)::bigint AS calls FROM tool_usage
              GROUP BY project, tool, day, code, latency) AS usage"
        }
        "consumption" => {
            "(SELECT project, day, agent, \"user\", model, sum(runs)::bigint AS runs, sum(requests)::bigint AS requests,
                     sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens,
                     sum(cached_tokens)::bigint AS cached_tokens, sum(cost_micros)::bigint AS cost_micros,
                     sum(unpriced)::bigint AS unpriced
              FROM consumption GROUP BY project, day, agent, \"user\", model) AS consumption"
        }
        "records" => {
            "(SELECT *, EXISTS (SELECT 1 FROM searchable WHERE searchable.number = records.number) AS searchable
              FROM records) AS records"
        }
        name => name,
    }
}

/// Inserts rows that are given as one array per column.
fn insert_sql(table: &Table, columns: &[Column]) -> String {
    let names = columns.iter().map(|column| format!("\"{}\"", column.name));
    let names = names.collect::<Vec<_>>().join(", ");
    let arrays = (1..)
        .zip(columns)
        .map(|(n, column)| format!("${n}::{}[]", sql_type(column.kind)));
    let arrays = arrays.collect::<Vec<_>>().join(", ");
    // What this database has beside the columns of the format.
    let (more, values) = match table.name {
        "runs" => (", queued", ", status = 'queued'"),
        "tool_usage" | "consumption" => (", shard", ", 0"),
        _ => ("", ""),
    };
    format!(
        "INSERT INTO {} ({names}{more}) SELECT {names}{values} FROM unnest({arrays}) AS new ({names}) ON CONFLICT DO NOTHING",
        table.name
    )
}

/// Records, and for those that search finds, terms of no analysis: the gateway indexes them again.
async fn write_records(
    db: &crate::postgres::session::Db<'_>,
    table: &Table,
    params: &[Param<'_>],
) -> Result<(), Fault> {
    let stored = table.columns.len() - 1;
    db.execute(&insert_sql(table, &table.columns[..stored]), &params[..stored])
        .await?;
    const SEARCHABLE: &str = "
        INSERT INTO searchable (number, record_set, kind, analysis, terms)
        SELECT records.number, sets.number, records.kind, 0, '{}'
        FROM unnest($1::uuid[], $2::bytea[], $3::text[], $4::text[], $5::boolean[])
            AS new (project, owner, kind, id, searchable)
        JOIN records ON records.project = new.project AND records.owner = new.owner
            AND records.kind = new.kind COLLATE \"C\" AND records.id = new.id COLLATE \"C\"
        JOIN record_sets AS sets ON sets.project = records.project AND sets.owner = records.owner
            AND sets.kind = records.kind
        WHERE new.searchable ON CONFLICT DO NOTHING";
    let keys = [&params[..table.key], &params[stored..]].concat();
    db.execute(SEARCHABLE, &keys).await.map(drop)
}

fn sql_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Id => "uuid",
        Kind::Text => "text",
        Kind::Number => "bigint",
        Kind::Flag => "boolean",
        Kind::Bytes => "bytea",
    }
}

fn value(row: &tokio_postgres::Row, n: usize, kind: Kind) -> Result<Value, Fault> {
    Ok(match kind {
        Kind::Id => get::<Option<Uuid>>(row, n)?.map(|id| Value::Id(id.into_bytes())),
        Kind::Text => get::<Option<String>>(row, n)?.map(|text| Value::Text(unescape(text))),
        Kind::Number => get::<Option<i64>>(row, n)?.map(Value::Number),
        Kind::Flag => get::<Option<bool>>(row, n)?.map(Value::Flag),
        Kind::Bytes => get::<Option<Vec<u8>>>(row, n)?.map(Value::Bytes),
    }
    .unwrap_or(Value::Null))
}

fn one(value: &Value) -> Box<dyn ToSql + Sync + Send> {
    match value {
        Value::Null => Box::new(None::<i64>),
        Value::Id(id) => Box::new(Uuid::from_bytes(*id)),
        Value::Text(given) => Box::new(text(given).into_owned()),
        Value::Number(number) => Box::new(*number),
        Value::Flag(flag) => Box::new(*flag),
        Value::Bytes(bytes) => Box::new(bytes.clone()),
    }
}

fn array<'a>(kind: Kind, values: impl Iterator<Item = &'a Value>) -> Box<dyn ToSql + Sync + Send> {
    fn collect<'a, T>(
        values: impl Iterator<Item = &'a Value>,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Vec<Option<T>> {
        values.map(read).collect()
    }
    match kind {
        Kind::Id => Box::new(collect(values, |value| match value {
            Value::Id(id) => Some(Uuid::from_bytes(*id)),
            _ => None,
        })),
        Kind::Text => Box::new(collect(values, |value| match value {
            Value::Text(given) => Some(text(given).into_owned()),
            _ => None,
        })),
        Kind::Number => Box::new(collect(values, |value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })),
        Kind::Flag => Box::new(collect(values, |value| match value {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        })),
        Kind::Bytes => Box::new(collect(values, |value| match value {
            Value::Bytes(bytes) => Some(bytes.clone()),
            _ => None,
        })),
    }
}
