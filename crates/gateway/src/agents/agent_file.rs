//! An agent read from a file, and its errors.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use toolgate_kernel::name::{AgentName, BadName};
use toolgate_kernel::problem::Problem;

use super::lines::Lines;
use super::markdown;

/// Largest file that is read.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// An agent's name and configuration, read from a file. The configuration is not validated yet.
pub struct AgentFile {
    /// The agent's name in the file, or the file's name without its extension.
    pub name: AgentName,
    /// The configuration, as the HTTP API accepts it.
    pub config: Value,
    /// Problems found while parsing the file.
    problems: Vec<Problem>,
    lines: Lines,
}

/// An error in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Line, counted from 1.
    pub line: usize,
    /// JSON pointer to the invalid value, in the file's own form; empty for the whole file.
    pub pointer: String,
    /// What was seen and what would have been right.
    pub message: String,
}

impl AgentFile {
    /// Parses a file by the extension of its name. `has_action` knows the server tools.
    pub fn read(path: &Path, text: &str, has_action: &dyn Fn(&str) -> bool) -> Result<Self, Vec<Fault>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (config, named, problems, lines) = match path.extension().and_then(|end| end.to_str()) {
            Some("md") => {
                let page = markdown::read(text, has_action).map_err(|fault| vec![fault])?;
                (page.config, page.name, page.problems, page.lines)
            }
            _ => {
                let config: Value = serde_json::from_str(text).map_err(|error| {
                    let message = format!("is not JSON: {error}");
                    vec![Fault::at(error.line(), message)]
                })?;
                let named = config.pointer("/agent/name").cloned();
                (config, named, Vec::new(), Lines::json(text))
            }
        };
        let name = match &named {
            Some(Value::String(name)) => name.clone(),
            Some(other) => {
                let message = format!("expected the agent's name, got {other}");
                return Err(vec![Fault::at(lines.line("/name"), message)]);
            }
            None => path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        };
        let name = name.parse().map_err(|bad: BadName| {
            let pointer = if config.get("agent").is_some() {
                "/agent/name"
            } else {
                "/name"
            };
            vec![Fault::at(lines.line(pointer), bad.to_string())]
        })?;
        Ok(Self {
            name,
            config,
            problems,
            lines,
        })
    }

    /// All errors: those found while parsing, and those of the configuration.
    pub fn faults(&self, of_config: Vec<Problem>) -> Vec<Fault> {
        let known = |problem: &Problem| {
            let mut before = self.problems.iter();
            before.any(|earlier| problem.pointer.starts_with(&earlier.pointer))
        };
        let new = of_config.into_iter().filter(|problem| !known(problem));
        let mut faults: Vec<Fault> = self
            .problems
            .iter()
            .cloned()
            .chain(new)
            .map(|p| self.locate(p))
            .collect();
        faults.sort_by_key(|fault| fault.line);
        faults
    }

    /// The problem with its line, and its pointer in the form that the author wrote.
    pub fn locate(&self, problem: Problem) -> Fault {
        let (pointer, line) = self.lines.find(&problem.pointer);
        Fault {
            line,
            pointer,
            message: problem.message,
        }
    }
}

impl Fault {
    /// An error at a line, without a pointer.
    pub fn at(line: usize, message: impl Into<String>) -> Self {
        Self {
            line: line.max(1),
            pointer: String::new(),
            message: message.into(),
        }
    }
}
