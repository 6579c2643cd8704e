//! Rows of a SQLite file.

use std::path::Path;

use async_trait::async_trait;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, ToSql, params, params_from_iter};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;

use super::Database;
use super::row::{Row, Value};
use super::tables::{Kind, Of, Table};
use crate::sqlite;
use crate::sqlite::fault::Fault;
use crate::sqlite::lock::DataLock;
use crate::sqlite::unfinished_import::{self, table_exists};

/// A SQLite file, for reading while a gateway uses it, or for writing while none does.
pub struct SqliteDatabase {
    connection: Connection,
    _lock: Option<DataLock>,
}

impl SqliteDatabase {
    /// Opens the file at `path` to be read; `Unavailable` if it is not there, or not of this version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.is_file() {
            let why = format!("{} is not there, or is not a file", path.display());
            return Err(StoreError::Unavailable(why));
        }
        let connection = sqlite::readers::open(path).map_err(Fault::into_store_error)?;
        sqlite::migrate::require_current(&connection).map_err(Fault::into_store_error)?;
        Ok(Self {
            connection,
            _lock: None,
        })
    }

    /// Opens or creates the file at `path` to be written, migrated to this version; `Unavailable` if a gateway uses it.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let (connection, lock) = sqlite::open_alone(path)?;
        Ok(Self {
            connection,
            _lock: Some(lock),
        })
    }
}

const PROGRESS: &str = "SELECT lines FROM imports WHERE id = ?1";
const ADVANCE: &str = "
    INSERT INTO imports (id, lines) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET lines = excluded.lines";
const ENDED: &str = "DELETE FROM imports WHERE id = ?1";

#[async_trait]
impl Database for SqliteDatabase {
    async fn begin_snapshot(&mut self) -> Result<(), StoreError> {
        self.connection.execute_batch("BEGIN").map_err(failed)
    }

    async fn rows(
        &mut self,
        table: &'static Table,
        project: Option<ProjectId>,
        after: Option<&Row>,
    ) -> Result<Vec<Row>, StoreError> {
        let mut conditions = vec!["1 = 1".to_owned()];
        let mut values: Vec<Value> = Vec::new();
        if let Some(project) = project {
            conditions.push(match table.of {
                Of::Column(name) => format!("{name} = ?"),
                Of::Space => "space IN (SELECT id FROM spaces WHERE project = ?)".into(),
            });
            values.push(Value::Id(project.to_bytes()));
        }
        if let Some(after) = after {
            let places = vec!["?"; table.key].join(", ");
            conditions.push(format!("({}) > ({places})", table.key_list()));
            values.extend_from_slice(after.key(table));
        }
        let source = match table.name {
            "records" => {
                "(SELECT *, EXISTS (SELECT 1 FROM searchable WHERE searchable.number = records.number) AS searchable FROM records)"
            }
            name => name,
        };
        let sql = format!(
            "SELECT {} FROM {source} WHERE {} ORDER BY {} LIMIT {}",
            table.list(),
            conditions.join(" AND "),
            table.key_list(),
            table.page
        );
        let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
        let rows = statement.query_and_then(params_from_iter(&values), |row| {
            let values = table.columns.iter().enumerate();
            let values = values.map(|(n, column)| Ok(read(row.get_ref(n)?, column.kind)?));
            Ok(Row(values.collect::<Result<_, Fault>>()?))
        });
        let rows: Result<_, Fault> = rows.map_err(failed)?.collect();
        rows.map_err(Fault::into_store_error)
    }

    async fn progress(&mut self, import: &str) -> Result<Option<u64>, StoreError> {
        if !table_exists(&self.connection).map_err(Fault::into_store_error)? {
            return Ok(None);
        }
        let lines = self
            .connection
            .query_row(PROGRESS, [import], |row| row.get::<_, i64>(0));
        Ok(lines.optional().map_err(failed)?.map(|lines| lines as u64))
    }

    async fn store(
        &mut self,
        import: &str,
        lines: u64,
        table: &'static Table,
        rows: &[Row],
    ) -> Result<(), StoreError> {
        let transaction = self.connection.transaction().map_err(failed)?;
        // With the first rows: an import that stores nothing leaves nothing behind.
        transaction
            .execute_batch(unfinished_import::TABLE)
            .map_err(failed)?;
        {
            let columns = match table.name {
                "records" => &table.columns[..table.columns.len() - 1],
                _ => table.columns,
            };
            let names: Vec<String> = columns
                .iter()
                .map(|column| format!("\"{}\"", column.name))
                .collect();
            let places = vec!["?"; columns.len()].join(", ");
            let sql = format!(
                "INSERT OR IGNORE INTO {} ({}) VALUES ({places})",
                table.name,
                names.join(", ")
            );
            let mut statement = transaction.prepare_cached(&sql).map_err(failed)?;
            for row in rows {
                statement
                    .execute(params_from_iter(&row.0[..columns.len()]))
                    .map_err(failed)?;
                if table.name == "records" && row.0.last() == Some(&Value::Flag(true)) {
                    transaction
                        .prepare_cached(SEARCHABLE)
                        .and_then(|mut statement| statement.execute(params_from_iter(row.key(table))))
                        .map_err(failed)?;
                }
            }
            transaction
                .execute(ADVANCE, params![import, lines as i64])
                .map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }

    async fn finish(&mut self, import: &str) -> Result<(), StoreError> {
        if table_exists(&self.connection).map_err(Fault::into_store_error)? {
            self.connection.execute(ENDED, [import]).map_err(failed)?;
        }
        Ok(())
    }
}

// Terms of no analysis: the gateway indexes the record again.
const SEARCHABLE: &str = "
    INSERT OR IGNORE INTO searchable (number, record_set, kind, analysis)
    SELECT records.number, record_sets.number, records.kind, 0
    FROM records JOIN record_sets USING (project, owner, kind)
    WHERE records.project = ?1 AND records.owner = ?2 AND records.kind = ?3 AND records.id = ?4";

fn read(value: ValueRef<'_>, kind: Kind) -> Result<Value, StoreError> {
    let misfit = || StoreError::Corrupt(format!("a column holds {value:?} instead of {kind:?}"));
    Ok(match (value, kind) {
        (ValueRef::Null, _) => Value::Null,
        (ValueRef::Blob(bytes), Kind::Id) => Value::Id(bytes.try_into().map_err(|_| misfit())?),
        (ValueRef::Blob(bytes), Kind::Bytes) => Value::Bytes(bytes.to_vec()),
        (ValueRef::Text(text), Kind::Text) => {
            Value::Text(std::str::from_utf8(text).map_err(|_| misfit())?.to_owned())
        }
        (ValueRef::Integer(number), Kind::Number) => Value::Number(number),
        (ValueRef::Integer(number), Kind::Flag) => Value::Flag(number != 0),
        _ => return Err(misfit()),
    })
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Id(id) => ValueRef::Blob(id),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Flag(flag) => ValueRef::Integer(i64::from(*flag)),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn failed(error: rusqlite::Error) -> StoreError {
    Fault::from(error).into_store_error()
}
