//! Tools that must have succeeded before another one may run.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::definition;
use crate::members::Members;
use crate::name::ToolName;
use crate::problem::shown;

/// A tool that must have given an output before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Prerequisite {
    /// The tool.
    pub tool: ToolName,
    /// Where its output counts.
    pub scope: Scope,
}

/// Where an output counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In the same run.
    Run,
    /// In any run of the same agent in the space, for the same person.
    Space {
        /// How old it may be.
        within: Option<Duration>,
    },
}

/// A name alone is of the run, as it was stored before there were scopes.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Run(ToolName),
    Space {
        tool: ToolName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Duration>,
    },
}

impl From<Stored> for Prerequisite {
    fn from(stored: Stored) -> Self {
        let (tool, scope) = match stored {
            Stored::Run(tool) => (tool, Scope::Run),
            Stored::Space { tool, within } => (tool, Scope::Space { within }),
        };
        Self { tool, scope }
    }
}
impl From<Prerequisite> for Stored {
    fn from(Prerequisite { tool, scope }: Prerequisite) -> Self {
        match scope {
            Scope::Run => Self::Run(tool),
            Scope::Space { within } => Self::Space { tool, within },
        }
    }
}

impl Prerequisite {
    /// Reads `prerequisites` of a tool, among tools of these names: `"verify"`, or `{"tool": "verify", "scope": "space",
    /// "within": "10m"}`.
    pub(crate) fn read_all(tool: &Members<'_>, items_max: usize, names: &[&str]) -> Vec<Self> {
        let items = tool.list("prerequisites", items_max).iter().enumerate();
        items
            .filter_map(|(index, item)| {
                let pointer = format!("{}/{index}", tool.at("prerequisites"));
                match item {
                    Value::Object(_) => {
                        let members =
                            Members::open(item, &pointer, &["tool", "scope", "within"], tool.problems)?;
                        if members.get("tool").is_none() {
                            members.lacks("expected the \"tool\" that comes first");
                        }
                        let name = members.get("tool")?;
                        let tool = known(name, &members.at("tool"), &members, names)?;
                        Some(Self {
                            tool,
                            scope: scope(&members)?,
                        })
                    }
                    name => Some(Self {
                        tool: known(name, &pointer, tool, names)?,
                        scope: Scope::Run,
                    }),
                }
            })
            .collect()
    }
}

fn known(name: &Value, pointer: &str, at: &Members<'_>, names: &[&str]) -> Option<ToolName> {
    match name.as_str().filter(|name| names.contains(name)) {
        // What is no name was noted where the tool is defined.
        Some(name) => name.parse().ok(),
        None => {
            let words = format!("expected the name of a tool of this agent, got {}", shown(name));
            at.problems.add(pointer, words);
            None
        }
    }
}

fn scope(members: &Members<'_>) -> Option<Scope> {
    let in_space = members.choice("scope", &[("run", false), ("space", true)]);
    let Some(written) = members.get("within") else {
        return Some(match in_space {
            Some(true) => Scope::Space { within: None },
            Some(false) | None => Scope::Run,
        });
    };
    let within = definition::duration(written);
    if within.is_none() || in_space == Some(false) {
        let words = "expected a time such as \"10m\", with the scope \"space\"";
        members.wrong("within", format!("{words}, got {}", shown(written)));
        return None;
    }
    Some(Scope::Space { within })
}
