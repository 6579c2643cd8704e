//! `toolgate agent check`: validates agent files as the gateway would.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use toolgate_kernel::agent::{self, Defaults};

use super::tool_check::Offered;
use crate::agents::{AgentFile, Fault, is_folder_readme, text};
use crate::output;
use crate::settings::Settings;

#[derive(Debug, Args)]
pub struct Check {
    /// Agents as JSON, or as Markdown with front matter
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Settings file, for the model of agents that name none
    #[arg(long, value_name = "FILE", env = "TOOLGATE_CONFIG")]
    config: Option<PathBuf>,
}

impl Check {
    /// Prints the report; the exit code is 0 if every file is valid.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let settings = Settings::load(self.config.as_deref(), |name| std::env::var(name).ok())?;
        let offered = Offered::of(&settings)?;
        let defaults = offered.defaults(&settings);
        // Files that the gateway ignores in a folder are ignored here too.
        let is_left_alone = |file: &Path| {
            let name = file.file_name().and_then(|name| name.to_str());
            name.is_some_and(is_folder_readme)
        };
        let files = self.files.iter().filter(|file| !is_left_alone(file));
        let reports: Vec<Report> = files.map(|file| check(file, &defaults, &offered)).collect();
        let text = match self.json {
            true => serde_json::to_string_pretty(&reports)? + "\n",
            false => reports.iter().map(Report::to_string).collect(),
        };
        output::print(&text)?;
        match reports.iter().all(|report| report.valid) {
            true => Ok(ExitCode::SUCCESS),
            false => Ok(ExitCode::FAILURE),
        }
    }
}

fn check(file: &Path, defaults: &Defaults<'_>, offered: &Offered) -> Report {
    let mut report = Report {
        file: file.display().to_string(),
        valid: false,
        agent: None,
        tools: Vec::new(),
        errors: Vec::new(),
    };
    let has_action = |name: &str| offered.built_in.contains_key(name);
    let written = match text(file)
        .map_err(|fault| vec![fault])
        .and_then(|text| AgentFile::read(file, &text, &has_action))
    {
        Ok(written) => written,
        Err(errors) => return Report { errors, ..report },
    };
    let parsed = agent::parse(&written.name, &written.config, defaults);
    let problems = match parsed {
        Ok(agent) => {
            report.tools = agent.tools.keys().map(ToString::to_string).collect();
            Vec::new()
        }
        Err(problems) => problems,
    };
    report.errors = written.faults(problems);
    report.valid = report.errors.is_empty();
    report.agent = Some(written.name.to_string());
    report
}

/// The report on one file.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    valid: bool,
    /// The agent's name, if the file could be parsed.
    agent: Option<String>,
    /// The names of its tools.
    tools: Vec<String>,
    errors: Vec<Fault>,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        for Fault {
            line,
            pointer,
            message,
        } in &self.errors
        {
            let place = if pointer.is_empty() { "" } else { ": " };
            writeln!(out, "{file}:{line}: error{place}{pointer}: {message}")?;
        }
        let count = |many: usize, what: &str| match many {
            1 => format!("1 {what}"),
            _ => format!("{many} {what}s"),
        };
        match (&self.agent, self.valid) {
            (Some(agent), true) => {
                let tools = count(self.tools.len(), "tool");
                writeln!(out, "{file}: the agent {agent} with {tools} is valid")
            }
            _ => writeln!(out, "{file}: {}", count(self.errors.len(), "problem")),
        }
    }
}
