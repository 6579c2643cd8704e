//! `toolgate store check`: reads the whole database and reports damage.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use toolgate_store::check_database;

use crate::data::DataDir;
use crate::output;
use crate::settings::Settings;

#[derive(Debug, Args)]
pub struct Check {
    /// Data directory [default: ./toolgate-data]
    #[arg(long, value_name = "DIR", env = "TOOLGATE_DATA")]
    data: Option<PathBuf>,
    /// Settings file, for the data directory it names
    #[arg(long, value_name = "FILE", env = "TOOLGATE_CONFIG")]
    config: Option<PathBuf>,
}

impl Check {
    /// Prints the report; the exit code is 0 if the database is whole. A gateway may use it meanwhile.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let settings = Settings::load(self.config.as_deref(), |name| std::env::var(name).ok())?;
        let data = DataDir::at(&self.data.unwrap_or(settings.data));
        let database = data.database();
        let shown = database.display();
        let report = check_database(&database)
            .with_context(|| format!("cannot check {shown}, name the data directory with --data"))?;
        if report.damage.is_empty() {
            let entries = report.entries;
            output::print(&format!(
                "{shown} is whole, {entries} entries of the log were read\n"
            ))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut text = format!("{shown} is damaged:\n");
        for line in &report.damage {
            writeln!(text, "  {line}")?;
        }
        writeln!(
            text,
            "Stop the gateway and keep a copy of the file; then restore a backup, or rescue what can be read with \
             `sqlite3 {shown} .recover`."
        )?;
        output::print(&text)?;
        Ok(ExitCode::FAILURE)
    }
}
