//! `toolgate store check`: reads the whole database and reports damage.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use toolgate_store::{CheckReport, check_database, check_postgres};

use super::{Database, Place, block_on};
use crate::output;

#[derive(Debug, Args)]
pub struct Check {
    #[command(flatten)]
    place: Place,
}

impl Check {
    /// Prints the report; the exit code is 0 if the database is whole. A gateway may use it meanwhile.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let database = self.place.database()?;
        let (report, advice) = match &database {
            Database::Sqlite(path) => {
                let report = check_database(path).with_context(|| {
                    format!("cannot check {database}, name the data directory with --data")
                })?;
                let advice = format!(
                    "Stop the gateway and keep a copy of the file; then restore a backup, or rescue what can be read with \
                     `sqlite3 {database} .recover`."
                );
                (report, advice)
            }
            Database::Postgres(address) => {
                let checked = block_on(check_postgres(address))?;
                let report = checked.with_context(|| format!("cannot check {database}"))?;
                (
                    report,
                    "Stop the gateways and restore a backup of the database.".into(),
                )
            }
        };
        print(&database, &report, &advice)
    }
}

fn print(database: &Database, report: &CheckReport, advice: &str) -> anyhow::Result<ExitCode> {
    if report.damage.is_empty() {
        let entries = report.entries;
        output::print(&format!(
            "{database} is whole, {entries} entries of the log were read\n"
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{database} is damaged:\n");
    for line in &report.damage {
        writeln!(text, "  {line}")?;
    }
    writeln!(text, "{advice}")?;
    output::print(&text)?;
    Ok(ExitCode::FAILURE)
}
