//! An agent as somebody wrote it, and everything that is wrong with it.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use toolgate_kernel::name::{AgentName, BadName};
use toolgate_kernel::problem::Problem;

use super::markdown;
use super::place::Places;

/// Largest file that is read.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// An agent's name and configuration, read from a file. It may still be wrong.
pub struct Written {
    /// What the file calls the agent, or else what the file is called.
    pub name: AgentName,
    /// The configuration, as the HTTP door would take it.
    pub config: Value,
    /// What was wrong already in the way it is written.
    problems: Vec<Problem>,
    places: Places,
}

/// Something wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Counted from 1.
    pub line: usize,
    /// JSON pointer to the value at fault, in the file's own form; empty for all of it.
    pub pointer: String,
    /// What was seen and what would have been right.
    pub message: String,
}

impl Written {
    /// Reads a file by the form that its name tells. `has_action` knows the gateway's own tools.
    pub fn read(path: &Path, text: &str, has_action: &dyn Fn(&str) -> bool) -> Result<Self, Vec<Fault>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (config, named, problems, places) = match path.extension().and_then(|end| end.to_str()) {
            Some("md") => {
                let page = markdown::read(text, has_action).map_err(|fault| vec![fault])?;
                (page.config, page.name, page.problems, page.places)
            }
            _ => {
                let config: Value = serde_json::from_str(text).map_err(|error| {
                    let message = format!("is not JSON: {error}");
                    vec![Fault::at(error.line(), message)]
                })?;
                let named = config.pointer("/agent/name").cloned();
                (config, named, Vec::new(), Places::json(text))
            }
        };
        let name = match &named {
            Some(Value::String(name)) => name.clone(),
            Some(other) => {
                let message = format!("expected the agent's name, got {other}");
                return Err(vec![Fault::at(places.line("/name"), message)]);
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
            vec![Fault::at(places.line(pointer), bad.to_string())]
        })?;
        Ok(Self {
            name,
            config,
            problems,
            places,
        })
    }

    /// Everything that is wrong: with the way it is written, and with the configuration that came of it.
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
            .map(|p| self.placed(p))
            .collect();
        faults.sort_by_key(|fault| fault.line);
        faults
    }

    /// The problem with the place where its author finds it.
    pub fn placed(&self, problem: Problem) -> Fault {
        let (pointer, line) = self.places.find(&problem.pointer);
        Fault {
            line,
            pointer,
            message: problem.message,
        }
    }
}

impl Fault {
    /// With a line or a whole file.
    pub fn at(line: usize, message: impl Into<String>) -> Self {
        Self {
            line: line.max(1),
            pointer: String::new(),
            message: message.into(),
        }
    }
}
