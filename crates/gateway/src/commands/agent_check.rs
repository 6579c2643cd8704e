//! `toolgate agent check`: validates agent files as the gateway would.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use toolgate_kernel::agent::{self, Agent, ChildWalk, DEFAULT_AGENT, Defaults, config_warnings};
use toolgate_kernel::name::AgentName;

use super::offline_source::OfflineNames;
use super::tool_check::Offered;
use crate::agents::{AgentFile, Fault, agent_files, is_folder_readme, text};
use crate::output;
use crate::settings::Settings;

#[derive(Debug, Args)]
pub struct Check {
    /// Agents as JSON, or as Markdown with front matter; or folders of them
    #[arg(required = true, value_name = "PATH")]
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
        let settings = Settings::of_process(self.config.as_deref())?;
        let offered = Offered::of(&settings)?;
        let defaults = offered.defaults(&settings);
        let names = OfflineNames::of(&settings);
        // Files that the gateway ignores in a folder are ignored here too.
        let is_left_alone = |file: &Path| {
            let name = file.file_name().and_then(|name| name.to_str());
            name.is_some_and(is_folder_readme)
        };
        let mut files = Vec::new();
        for path in &self.files {
            match path.is_dir() {
                true => files.extend(agent_files(path)?),
                false => files.push(path.clone()),
            }
        }
        let files = files.iter().filter(|file| !is_left_alone(file));
        let mut checked: Vec<Checked> = files
            .map(|file| check(file, &defaults, &offered, &names))
            .collect();
        find_child_warnings(&mut checked, self.files.iter().any(|path| path.is_dir()));
        let mut reports: Vec<Report> = checked.into_iter().map(|one| one.report).collect();
        find_repeated_names(&mut reports);
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

/// What a person who starts the gateway with a folder of agents has to know before anything else: which files are wrong, or
/// that there are none. Empty if all is well.
pub async fn warnings_of_folder(folder: &Path, settings: &Settings) -> anyhow::Result<String> {
    let files = agent_files(folder)?;
    if files.is_empty() {
        return Ok(format!(
            "The agents folder {} has no agent yet: no file that ends with .md or .json.\n",
            folder.display()
        ));
    }
    let offered = Offered::list(settings).await?;
    let defaults = offered.defaults(settings);
    let names = OfflineNames::of(settings);
    let checked = files.iter().map(|file| check(file, &defaults, &offered, &names));
    let mut reports: Vec<Report> = checked.map(|one| one.report).collect();
    find_repeated_names(&mut reports);
    let wrong: Vec<Report> = reports.into_iter().filter(|report| !report.valid).collect();
    if wrong.is_empty() {
        return Ok(String::new());
    }
    let told: String = wrong.iter().map(Report::to_string).collect();
    Ok(format!(
        "{told}Agents of files with errors are not served until they are mended, the others are.\n"
    ))
}

/// A name that an earlier file has is an error, as it is in a folder that the gateway reads.
fn find_repeated_names(reports: &mut [Report]) {
    let mut owners: HashMap<String, String> = HashMap::new();
    for report in reports {
        let Some(agent) = report.agent.clone() else {
            continue;
        };
        match owners.get(&agent) {
            Some(owner) => {
                let message = format!("the agent {agent} is already defined in {owner}");
                report.errors.push(Fault {
                    line: 1,
                    pointer: String::new(),
                    message,
                });
                report.valid = false;
            }
            None => {
                owners.insert(agent, report.file.clone());
            }
        }
    }
}

/// Adds warnings of child runs that can never start, as the gateway gives them when an agent is saved. Agents below are
/// looked for among the checked files. That one is missing is told only when a folder is checked: a single file may be
/// one of many.
fn find_child_warnings(checked: &mut [Checked], folder: bool) {
    let named = |one: &Checked| one.agent.clone().map(|agent| (agent.name.clone(), agent));
    let agents: HashMap<AgentName, Agent> = checked.iter().filter_map(named).collect();
    for Checked {
        report,
        written,
        agent,
    } in checked
    {
        let (Some(written), Some(agent)) = (written, agent) else {
            continue;
        };
        let mut walk = ChildWalk::new(agent, &written.config);
        while let Some(below) = walk.next_agent() {
            // Every project begins with an agent of this name.
            let told = folder && below.as_str() != DEFAULT_AGENT;
            match agents.get(&below) {
                None if !told => {}
                below => walk.look(below),
            }
        }
        let warnings = walk.warnings().into_iter();
        report
            .warnings
            .extend(warnings.map(|problem| written.locate(problem)));
        report.warnings.sort_by_key(|warning| warning.line);
    }
}

/// A file that was checked: the report on it and, as far as it could be read, what is in it.
struct Checked {
    report: Report,
    written: Option<AgentFile>,
    agent: Option<Agent>,
}

fn check(file: &Path, defaults: &Defaults<'_>, offered: &Offered, names: &OfflineNames) -> Checked {
    let mut report = Report {
        file: file.display().to_string(),
        valid: false,
        agent: None,
        tools: Vec::new(),
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    let has_action = |name: &str| offered.built_in.contains_key(name);
    let written = match text(file)
        .map_err(|fault| vec![fault])
        .and_then(|text| AgentFile::read(file, &text, &has_action))
    {
        Ok(written) => written,
        Err(errors) => {
            return Checked {
                report: Report { errors, ..report },
                written: None,
                agent: None,
            };
        }
    };
    let (agent, problems) = match agent::parse(&written.name, &written.config, defaults) {
        Ok(agent) => (Some(agent), Vec::new()),
        Err(problems) => (None, problems),
    };
    let tools = agent.iter().flat_map(|agent| agent.tools.keys());
    report.tools = tools.map(ToString::to_string).collect();
    let problems = problems.into_iter().chain(names.problems(&written.config));
    report.errors = written.faults(problems.collect());
    let left_out = agent.iter().flat_map(|agent| agent.left_out.iter().cloned());
    let warnings = config_warnings(&written.config)
        .into_iter()
        .chain(names.warnings(&written.config))
        .chain(left_out.filter_map(|problem| names.left_out(&written.config, problem)));
    report.warnings = warnings.map(|problem| written.locate(problem)).collect();
    report.valid = report.errors.is_empty();
    report.agent = Some(written.name.to_string());
    Checked {
        report,
        written: Some(written),
        agent,
    }
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
    /// What is valid and most likely not meant.
    warnings: Vec<Fault>,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        let errors = self.errors.iter().map(|fault| ("error", fault));
        let warnings = self.warnings.iter().map(|fault| ("warning", fault));
        for (
            grade,
            Fault {
                line,
                pointer,
                message,
            },
        ) in errors.chain(warnings)
        {
            let place = if pointer.is_empty() { "" } else { ": " };
            writeln!(out, "{file}:{line}: {grade}{place}{pointer}: {message}")?;
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
