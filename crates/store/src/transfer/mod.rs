//! Everything that is stored as rows of one format, from and to any database: what `toolgate store export` and `import` do.
//!
//! `tables` says what there is, `row` is the format, `sqlite` and `postgres` read and write it, `export` and `import` drive
//! them, `claims` is what stands in an import's way. A file is lines of JSON, compressed with gzip: a header, the rows table by table, and a manifest of counts and hashes.

mod claims;
mod export;
mod import;
mod postgres;
mod row;
mod sqlite;
mod tables;

pub use export::export;
pub use import::{Imported, import};
pub use postgres::PostgresDatabase;
pub use row::{Manifest, Row, Tally, Value};
pub use sqlite::SqliteDatabase;
pub use tables::Table;

use async_trait::async_trait;
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;

/// A database that rows are read from and written to.
#[async_trait]
pub trait Database: Send {
    /// From now on everything is read as it is at this moment.
    #[doc(hidden)]
    async fn begin_snapshot(&mut self) -> Result<(), StoreError>;
    /// Rows of a table after the key of `after`, in the order of their keys; none when all were read.
    #[doc(hidden)]
    async fn rows(
        &mut self,
        table: &'static Table,
        project: Option<ProjectId>,
        after: Option<&Row>,
    ) -> Result<Vec<Row>, StoreError>;
    /// How far the import with this id has come; none if it has not begun.
    #[doc(hidden)]
    async fn progress(&mut self, import: &str) -> Result<Option<u64>, StoreError>;
    /// Stores rows of a table and how far the import has come with them, in one transaction. A row that is there stays.
    #[doc(hidden)]
    async fn store(
        &mut self,
        import: &str,
        lines: u64,
        table: &'static Table,
        rows: &[Row],
    ) -> Result<(), StoreError>;
    /// Stores what follows from the rows, and forgets how far the import has come.
    #[doc(hidden)]
    async fn finish(&mut self, import: &str) -> Result<(), StoreError>;
}
