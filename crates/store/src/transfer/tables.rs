//! The tables whose rows are carried over, and those that stay behind with the reason. A test reads the schema of each
//! database and demands that every table and every column is in one of the two lists.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An id: 32 hexadecimal digits.
    Id,
    /// A text.
    Text,
    /// An integer.
    Number,
    /// True or false.
    Flag,
    /// Bytes: Base64.
    Bytes,
}

/// A column and what it holds. Any may be empty in the format; whether it may is the database's to say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [Column],
    /// The first so many columns are the key.
    pub(super) key: usize,
    /// How its rows belong to projects.
    pub(super) of: Of,
    /// Rows that are read and written together: fewer where a row may be large.
    pub(super) page: usize,
}

/// How the rows of a table belong to projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// By this column.
    Column(&'static str),
    /// By the project of the space in the column `space`.
    Space,
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

macro_rules! columns {
    ($($name:ident: $kind:ident),* $(,)?) => {
        &[$(column(stringify!($name), Kind::$kind)),*]
    };
}

/// In an order in which nothing refers to a row that comes later, but for runs and their logs.
pub(super) const TABLES: &[Table] = &[
    Table {
        name: "projects",
        columns: columns![id: Id, name: Text, jwt_secret: Text, jwks_url: Text, jwt_issuer: Text, jwt_audience: Text,
            settings: Text, created: Number],
        key: 1,
        of: Of::Column("id"),
        page: 100,
    },
    Table {
        name: "keys",
        columns: columns![id: Id, project: Id, kind: Text, hash: Bytes, hint: Text, name: Text, created: Number],
        key: 1,
        of: Of::Column("project"),
        page: 1000,
    },
    Table {
        name: "entities",
        columns: columns![id: Id, project: Id, subject: Text, kind: Text, name: Text, metadata: Text, grants: Text,
            created: Number],
        key: 1,
        of: Of::Column("project"),
        page: 1000,
    },
    Table {
        name: "agents",
        columns: columns![project: Id, name: Text, revision: Number, config: Text, removed: Number, created: Number],
        key: 3,
        of: Of::Column("project"),
        page: 100,
    },
    Table {
        name: "definitions",
        columns: columns![project: Id, hash: Text, definition: Text],
        key: 2,
        of: Of::Column("project"),
        page: 200,
    },
    Table {
        name: "spaces",
        columns: columns![id: Id, project: Id, title: Text, agent: Text, metadata: Text, by_backend: Flag,
            created: Number],
        key: 1,
        of: Of::Column("project"),
        page: 1000,
    },
    Table {
        name: "members",
        columns: columns![space: Id, entity: Id, position: Number, role: Text, grants: Text],
        key: 2,
        of: Of::Space,
        page: 1000,
    },
    Table {
        name: "runs",
        columns: columns![id: Id, project: Id, space: Id, agent: Text, revision: Number, parent_run: Id,
            parent_call: Number, root: Id, status: Text, created: Number, updated: Number, version: Number,
            wake_at: Number, epoch: Number, tokens: Number, lane: Number, wakes: Number, open: Flag, asks: Flag,
            tool: Text, user: Id, title: Text],
        key: 1,
        of: Of::Column("project"),
        page: 1000,
    },
    Table {
        name: "log",
        columns: columns![space: Id, first: Number, last: Number, run: Id, time: Number, format: Number, events: Text],
        key: 2,
        of: Of::Space,
        page: 200,
    },
    // Without the floors an import would give places of deleted entries out again, to clients that have seen them.
    Table {
        name: "log_floors",
        columns: columns![space: Id, floor: Number, rewrites: Number],
        key: 1,
        of: Of::Space,
        page: 1000,
    },
    Table {
        name: "deleted",
        columns: columns![id: Bytes, project: Id, time: Number],
        key: 1,
        of: Of::Column("project"),
        page: 1000,
    },
    Table {
        name: "idempotency",
        columns: columns![project: Id, key: Text, request: Bytes, answer: Text, time: Number],
        key: 2,
        of: Of::Column("project"),
        page: 1000,
    },
    Table {
        name: "receipts",
        columns: columns![project: Id, key: Text, time: Number, answer: Text],
        key: 2,
        of: Of::Column("project"),
        page: 1000,
    },
    Table {
        name: "tool_usage",
        columns: columns![project: Id, tool: Text, day: Number, code: Text, latency: Number, calls: Number],
        key: 5,
        of: Of::Column("project"),
        page: 1000,
    },
    Table {
        name: "consumption",
        columns: columns![project: Id, day: Number, agent: Text, user: Id, model: Text, runs: Number, requests: Number,
            input_tokens: Number, output_tokens: Number, cached_tokens: Number, cost_micros: Number, unpriced: Number],
        key: 5,
        of: Of::Column("project"),
        page: 1000,
    },
    // A record that search finds is indexed again by the gateway: its terms are of no analysis.
    Table {
        name: "records",
        columns: columns![project: Id, owner: Bytes, kind: Text, id: Text, due: Number, created: Number,
            updated: Number, version: Number, body: Text, data: Bytes, searchable: Flag],
        key: 4,
        of: Of::Column("project"),
        page: 16,
    },
];

/// Tables, and columns of tables that are carried over, that stay behind. What follows from rows is made again by triggers,
/// by the import, or by the gateway that uses the database.
#[cfg(test)]
const LEFT_BEHIND: &[(&str, &str)] = &[
    ("heads", "follows from log and log_floors"),
    ("record_sets", "follows from records"),
    ("records.number", "every database numbers its records itself"),
    (
        "searchable",
        "follows from records, whose column `searchable` says which",
    ),
    ("record_terms", "follows from searchable"),
    ("runs.node", "leases concern the nodes of one database"),
    ("runs.queued", "follows from status"),
    ("runs.failure", "follows from status"),
    ("nodes", "heartbeats concern the nodes of one database"),
    ("tool_usage.shard", "sums are carried over"),
    ("consumption.shard", "sums are carried over"),
    ("probe", "what a readiness check wrote"),
    ("migrations", "versions of one database"),
    ("unfinished_migrations", "versions of one database"),
    ("imports", "an import under way"),
];

/// The table with this name.
pub(super) fn named(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

impl Table {
    /// The names of its columns for a statement.
    pub(super) fn list(&self) -> String {
        let names: Vec<String> = self
            .columns
            .iter()
            .map(|column| format!("\"{}\"", column.name))
            .collect();
        names.join(", ")
    }

    /// The names of its key's columns for a statement.
    pub(super) fn key_list(&self) -> String {
        let names = self.columns[..self.key].iter();
        let names: Vec<String> = names.map(|column| format!("\"{}\"", column.name)).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use toolgate_testkit::postgres_server::PostgresServer;

    use super::*;
    use crate::postgres::{PostgresAddress, PostgresOptions, connect_and_migrate};
    use crate::sqlite;

    /// Columns of a schema, as `table.column`, that are neither carried over nor left behind on purpose.
    fn forgotten(schema: &BTreeSet<(String, String)>) -> Vec<String> {
        let is_known = |table: &str, column: &str| {
            let carried =
                named(table).is_some_and(|table| table.columns.iter().any(|own| own.name == column));
            let full = format!("{table}.{column}");
            carried
                || LEFT_BEHIND
                    .iter()
                    .any(|(name, _)| *name == table || *name == full)
        };
        let unknown = schema.iter().filter(|(table, column)| !is_known(table, column));
        unknown
            .map(|(table, column)| format!("{table}.{column}"))
            .collect()
    }

    const ADVICE: &str = "add it to TABLES, or to LEFT_BEHIND with the reason";

    #[test]
    fn nothing_in_the_schema_of_sqlite_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let (connection, _lock) = sqlite::open_alone(&directory.path().join("toolgate.db")).unwrap();
        // The shadow tables of a virtual table are its own.
        let sql = "SELECT tables.name, columns.name
            FROM pragma_table_list AS tables JOIN pragma_table_info(tables.name) AS columns
            WHERE tables.schema = 'main' AND tables.type IN ('table', 'virtual') AND tables.name NOT LIKE 'sqlite_%'";
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        let schema: BTreeSet<(String, String)> = columns.collect::<Result<_, _>>().unwrap();
        assert!(schema.contains(&("log".into(), "events".into())), "{schema:?}");
        assert_eq!(forgotten(&schema), [""; 0], "{ADVICE}");
    }

    #[tokio::test]
    async fn nothing_in_the_schema_of_postgres_is_forgotten() {
        let address: PostgresAddress = PostgresServer::shared().database().parse().unwrap();
        let lease = connect_and_migrate(&address, PostgresOptions::default())
            .await
            .unwrap();
        let sql = "SELECT table_name::text, column_name::text FROM information_schema.columns
            WHERE table_schema = current_schema()";
        let rows = lease.client.query(sql, &[]).await.unwrap();
        let schema: BTreeSet<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert!(schema.contains(&("log".into(), "events".into())), "{schema:?}");
        assert_eq!(forgotten(&schema), [""; 0], "{ADVICE}");
    }

    /// The tests above demand that `TABLES` has every table, so a new one is an entry here too.
    #[test]
    fn the_deletion_of_a_project_names_every_table_that_is_carried_over() {
        for (store, statements) in [
            ("SQLite", sqlite::REMOVE_PROJECT),
            ("PostgreSQL", crate::postgres::REMOVE_PROJECT),
        ] {
            let is_named = |table: &&Table| {
                let begin = format!("DELETE FROM {} ", table.name);
                statements.iter().any(|sql| sql.starts_with(&begin))
            };
            let kept: Vec<&str> = TABLES
                .iter()
                .filter(|table| table.name != "projects" && !is_named(table))
                .map(|table| table.name)
                .collect();
            assert_eq!(kept, [""; 0], "{store} keeps rows of a project that was deleted");
        }
    }

    #[test]
    fn a_new_table_or_column_is_noticed() {
        let of =
            |table: &str, column: &str| forgotten(&BTreeSet::from([(table.to_owned(), column.to_owned())]));
        assert_eq!(of("inventions", "id"), ["inventions.id"]);
        assert_eq!(of("runs", "invention"), ["runs.invention"]);
        assert_eq!(of("nodes", "invention"), [""; 0]);
    }
}
