//! The tables whose rows are carried over. Indexes, counters of record sets and search terms follow from them; leases and
//! probes concern the nodes of one database and stay behind.

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
