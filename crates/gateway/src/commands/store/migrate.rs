//! `toolgate store migrate`: brings a database to this version before the gateways start.

use anyhow::Context;
use clap::Args;
use toolgate_store::{PostgresOptions, PostgresStore, migrate_sqlite};

use super::{Database, Place, block_on};
use crate::output;

#[derive(Debug, Args)]
pub struct Migrate {
    #[command(flatten)]
    place: Place,
}

impl Migrate {
    /// Migrates and says what was done.
    pub fn run(self) -> anyhow::Result<()> {
        let database = self.place.database()?;
        let failed = || format!("cannot migrate {database}");
        let versions = match &database {
            Database::Sqlite(path) => migrate_sqlite(path).with_context(failed)?,
            Database::Postgres(address) => {
                let opened = block_on(PostgresStore::open_and_tell(address, PostgresOptions::default()))?;
                opened.with_context(failed)?.1.versions
            }
        };
        let done = match versions.as_slice() {
            [] => "has every migration already".to_owned(),
            [one] => format!("now has migration {one}"),
            [first, .., last] => format!("now has migrations {first} to {last}"),
        };
        output::print(&format!("{database} {done}\n"))?;
        Ok(())
    }
}
