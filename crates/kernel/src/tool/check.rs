//! Definitions that somebody wants to have checked before using them.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::{ClientToolLimits, Tool, client_tools, compile_client};
use crate::agent::{self, Defaults};
use crate::problem::Problem;

/// By which rules definitions are checked.
pub enum Rules<'a> {
    /// Those for whatever comes in a request.
    Client(&'a ClientToolLimits),
    /// Those for an agent's configuration.
    Trusted(&'a Defaults<'a>),
}

/// What came of a check.
#[derive(Debug, Default)]
pub struct Checked {
    /// The tools, in the order they were written; none unless all are sound.
    pub tools: Vec<Arc<Tool>>,
    /// Everything that is wrong.
    pub errors: Vec<Problem>,
    /// What is sound and yet worth knowing, as that a tool is deprecated.
    pub warnings: Vec<Problem>,
}

/// Checks a list of definitions, or a single one, which stands at `pointer`. Never fails: what is wrong is in
/// the answer.
pub fn check(definitions: &Value, pointer: &str, rules: &Rules<'_>) -> Checked {
    let alone = definitions.is_object();
    let list = match alone {
        true => Cow::Owned(Value::Array(vec![definitions.clone()])),
        false => Cow::Borrowed(definitions),
    };
    let read = match rules {
        Rules::Client(limits) => client_tools(&list, pointer, limits).and_then(|tools| {
            tools
                .iter()
                .map(|tool| compile_client(tool).map(Arc::new))
                .collect()
        }),
        Rules::Trusted(defaults) => agent::read_tools(&list, pointer, defaults),
    };
    let mut checked = match read {
        Ok(tools) => Checked {
            warnings: warnings(&tools, pointer),
            tools,
            errors: Vec::new(),
        },
        Err(errors) => Checked {
            errors,
            ..Checked::default()
        },
    };
    if alone {
        // The author wrote no list.
        let first = format!("{pointer}/0");
        for problem in checked.errors.iter_mut().chain(&mut checked.warnings) {
            if let Some(rest) = problem.pointer.strip_prefix(&first) {
                problem.pointer = format!("{pointer}{rest}");
            }
        }
    }
    checked
}

/// Checks the configuration of an agent, its tools among the rest.
pub fn check_agent(config: &Value, defaults: &Defaults<'_>) -> Checked {
    const UNNAMED: &str = "agent";
    let name = config.pointer("/agent/name").and_then(Value::as_str);
    let name = name
        .and_then(|name| name.parse().ok())
        .unwrap_or_else(|| UNNAMED.parse().expect("a name"));
    match agent::parse(&name, config, defaults) {
        Ok(agent) => {
            let tools = agent::in_order(agent.tools, &config["tools"]);
            Checked {
                warnings: warnings(&tools, "/tools"),
                tools,
                errors: Vec::new(),
            }
        }
        Err(errors) => Checked {
            errors,
            ..Checked::default()
        },
    }
}

/// What is worth knowing of tools that stand in this order at `pointer`.
fn warnings(tools: &[Arc<Tool>], pointer: &str) -> Vec<Problem> {
    let deprecated = |(index, tool): (usize, &Arc<Tool>)| {
        let words = tool.deprecated.as_ref()?;
        let message = format!("{} is deprecated: {words}", tool.name);
        Some(Problem::new(format!("{pointer}/{index}"), message))
    };
    tools.iter().enumerate().filter_map(deprecated).collect()
}
