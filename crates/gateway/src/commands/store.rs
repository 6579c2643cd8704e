//! `toolgate store …`: looks after what is stored, without a running gateway or beside one.

mod check;
mod copies;
mod migrate;
mod transfer;
mod vacuum;

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use toolgate_store::PostgresAddress;

use crate::data::DataDir;
use crate::settings::Settings;
use crate::storage;

#[derive(Debug, Subcommand)]
pub enum Store {
    /// Read the whole database and report damage.
    Check(check::Check),
    /// Bring the database to this version of the gateway, and say what was done.
    Migrate(migrate::Migrate),
    /// Copy a SQLite database to a file, also while a gateway uses it, and check the copy.
    Backup(copies::Backup),
    /// Put a copy of a SQLite database in its place.
    Restore(copies::Restore),
    /// Write all projects, or one, to a file that any database can import.
    Export(transfer::Export),
    /// Read an exported file into an empty database.
    Import(transfer::Import),
    /// Rewrite a SQLite database without the room of deleted data; the gateway must be stopped.
    Vacuum(vacuum::Vacuum),
}

impl Store {
    /// Does it; the exit code tells whether the database is whole.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Check(check) => return check.run(),
            Self::Migrate(migrate) => migrate.run()?,
            Self::Backup(backup) => backup.run()?,
            Self::Restore(restore) => restore.run()?,
            Self::Export(export) => export.run()?,
            Self::Import(import) => import.run()?,
            Self::Vacuum(vacuum) => vacuum.run()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Which database is meant: the one that a gateway with the same settings uses.
#[derive(Debug, Args)]
struct Place {
    /// Data directory [default: ./toolgate-data]
    #[arg(long, value_name = "DIR", env = "TOOLGATE_DATA")]
    data: Option<PathBuf>,
    /// Settings file, for the data directory or the `store` (TOOLGATE_STORE) it names
    #[arg(long, value_name = "FILE", env = "TOOLGATE_CONFIG")]
    config: Option<PathBuf>,
}

/// A database.
enum Database {
    Sqlite(PathBuf),
    Postgres(Box<PostgresAddress>),
}

impl Place {
    fn database(self) -> anyhow::Result<Database> {
        let settings = Settings::of_process(self.config.as_deref())?;
        match &settings.store {
            Some(url) => Ok(Database::Postgres(Box::new(storage::address(url)?))),
            None => Ok(Database::Sqlite(
                DataDir::at(&self.data.unwrap_or(settings.data)).database(),
            )),
        }
    }
}

impl std::fmt::Display for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres(address) => write!(f, "{address}"),
        }
    }
}

/// Waits for what needs a runtime.
fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(work))
}
