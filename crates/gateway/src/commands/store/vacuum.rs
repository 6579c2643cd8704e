//! `toolgate store vacuum`: gives the room of deleted data back to the file system.

use anyhow::{Context, bail};
use clap::Args;
use toolgate_store::vacuum_database;

use super::{Database, Place};
use crate::output;

#[derive(Debug, Args)]
pub struct Vacuum {
    #[command(flatten)]
    place: Place,
}

impl Vacuum {
    /// Rewrites the database and prints its size before and after. No gateway may use it meanwhile.
    pub fn run(self) -> anyhow::Result<()> {
        let database = self.place.database()?;
        let Database::Sqlite(path) = &database else {
            bail!("PostgreSQL reuses the room of deleted data by itself; VACUUM FULL in psql gives it back");
        };
        let (before, after) = vacuum_database(path)
            .with_context(|| format!("cannot rewrite {database}, stop the gateway that uses it"))?;
        output::print(&format!("{database} had {before} bytes and has {after} now\n"))?;
        Ok(())
    }
}
