//! `toolgate store backup` and `restore`: copies of a SQLite database.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use toolgate_engine::store::StoreError;

use super::{Database, Place};
use crate::output;

#[derive(Debug, Args)]
pub struct Backup {
    /// File to write; it must not be there yet
    to: PathBuf,
    #[command(flatten)]
    place: Place,
}

impl Backup {
    /// Writes the copy, checked.
    pub fn run(self) -> anyhow::Result<()> {
        let database = sqlite(self.place, "backup", "pg_dump or pg_basebackup")?;
        let (from, to) = (database.display(), self.to.display());
        let report = match toolgate_store::backup(&database, &self.to) {
            Err(StoreError::Exists) => bail!("{to} is there already, choose another name"),
            other => other.with_context(|| format!("cannot copy {from} to {to}"))?,
        };
        let entries = report.entries;
        let Some(first) = report.damage.first() else {
            output::print(&format!(
                "copied {from} to {to}, which is whole: {entries} entries of the log were read\n"
            ))?;
            return Ok(());
        };
        output::print(&format!(
            "copied {from} to {to}: {entries} entries of the log were read\n"
        ))?;
        bail!(
            "rows of {from} contradict each other, and so do those of the copy, which is kept; `toolgate store check` names all, \
             the first one: {first}"
        );
    }
}

#[derive(Debug, Args)]
pub struct Restore {
    /// File that `toolgate store backup` has written
    from: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Replace a database that has anything in it; it is kept beside it, with `.before-restore` behind its name
    #[arg(long)]
    force: bool,
}

impl Restore {
    /// Puts the copy in place. The gateway must be stopped.
    pub fn run(self) -> anyhow::Result<()> {
        let database = sqlite(self.place, "restore", "pg_restore")?;
        let (from, to) = (self.from.display(), database.display());
        let restored = match toolgate_store::restore(&self.from, &database, self.force) {
            Err(StoreError::Exists) => {
                bail!("{to} has data; --force replaces it and keeps it beside the new one")
            }
            other => other.with_context(|| format!("cannot put {from} in the place of {to}"))?,
        };
        let entries = restored.report.entries;
        let kept = match &restored.before {
            Some(before) => format!("; what was there is {} now", before.display()),
            None => String::new(),
        };
        output::print(&format!(
            "{to} is {from} now, with {entries} entries of the log{kept}\n"
        ))?;
        if let Some(first) = restored.report.damage.first() {
            output::print(&format!(
                "its rows contradict each other; `toolgate store check` names all, the first one: {first}\n"
            ))?;
        }
        Ok(())
    }
}

fn sqlite(place: Place, command: &str, instead: &str) -> anyhow::Result<PathBuf> {
    match place.database()? {
        Database::Sqlite(path) => Ok(path),
        Database::Postgres(address) => bail!(
            "{address} is a PostgreSQL database, use {instead} for it; `toolgate store {command}` is for SQLite"
        ),
    }
}
