//! `toolgate agent check`: validates agent files as the gateway would.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use toolgate_kernel::agent::{self, Defaults};
use toolgate_kernel::problem::Problem;
use toolgate_kernel::template::Template;

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
        let settings = Settings::load(self.config.as_deref(), |name| std::env::var(name).ok())?;
        let offered = Offered::of(&settings)?;
        let defaults = offered.defaults(&settings);
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
        let mut reports: Vec<Report> = files.map(|file| check(file, &defaults, &offered)).collect();
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

/// Placeholders of prompt and request tools that no parameter fills: they would stay as they are, or fail each call.
fn unknown_placeholders(config: &Value) -> Vec<Problem> {
    let tools = config["tools"].as_array().into_iter().flatten().enumerate();
    let mut problems = Vec::new();
    for (index, tool) in tools {
        let members = match tool["executionType"].as_str() {
            Some("prompt") => &["prompt"][..],
            Some("request") => &["url", "query", "headers", "body"][..],
            _ => continue,
        };
        let schema = tool.get("parameters").or_else(|| tool.get("inputSchema"));
        // Without a list of parameters every name may be one.
        let Some(known) = schema.and_then(|schema| schema["properties"].as_object()) else {
            continue;
        };
        for member in members {
            let mut texts = Vec::new();
            gather_texts(&tool["execution"][member], &mut texts);
            let paths = texts
                .iter()
                .flat_map(|text| Template::new(*text).paths().collect::<Vec<_>>());
            let is_open = |path: &String| {
                let own = path.starts_with("context.user.") || path.starts_with("context.space.");
                let name = path.split('.').next().unwrap_or_default();
                !known.contains_key(name) && !own
            };
            problems.extend(paths.filter(is_open).map(|path| {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                let words = format!(
                    "no parameter fills {{{{{path}}}}}; the parameters are: {}",
                    names.join(", ")
                );
                Problem::new(format!("/tools/{index}/execution/{member}"), words)
            }));
        }
    }
    problems
}

/// A tool by a name that only a project may have.
fn of_project(Problem { pointer, message }: Problem) -> Problem {
    let words = "it has to be a shared tool of the project, or one of a plugin or an MCP server";
    Problem::new(pointer, format!("{message}; {words}"))
}

fn gather_texts<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| gather_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|item| gather_texts(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn check(file: &Path, defaults: &Defaults<'_>, offered: &Offered) -> Report {
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
        Err(errors) => return Report { errors, ..report },
    };
    let parsed = agent::parse(&written.name, &written.config, defaults);
    let mut warnings = unknown_placeholders(&written.config);
    let problems = match parsed {
        Ok(agent) => {
            report.tools = agent.tools.keys().map(ToString::to_string).collect();
            warnings.extend(agent.left_out.into_iter().map(of_project));
            Vec::new()
        }
        Err(problems) => problems,
    };
    report.errors = written.faults(problems);
    report.warnings = warnings
        .into_iter()
        .map(|problem| written.locate(problem))
        .collect();
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
