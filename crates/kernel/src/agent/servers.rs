//! Reads the MCP servers of an agent: those of the project that it uses as a whole (`mcp`), and those that it brings
//! itself (`mcpServers`).

use serde_json::Value;

use super::{Defaults, Missing};
use crate::guess::guess;
use crate::members::Members;
use crate::name::AgentName;
use crate::problem::{Problem, kind, member, preview};

/// Most servers that an agent uses, and most that it brings.
const SERVERS_MAX: usize = 32;
/// Longest name of a server that is looked at.
const NAME_CHARS_MAX: usize = 64;

/// The tools of these servers, each with the place that problems of it stand at. A server of the agent's own that has not
/// listed its tools yet is noted in `left_out`: it may be down, and the agent has its tools when it is up.
pub(super) fn tools<'c>(
    agent: Option<&AgentName>,
    top: &Members<'_>,
    defaults: &Defaults<'c>,
    left_out: &mut Vec<Problem>,
) -> Vec<(String, &'c Value)> {
    let mut found = Vec::new();
    for (index, name) in top.texts("mcp", SERVERS_MAX, NAME_CHARS_MAX).iter().enumerate() {
        let pointer = format!("{}/{index}", top.at("mcp"));
        match defaults.catalog.set(name).filter(|_| !name.contains('/')) {
            Some(set) => found.extend(set.iter().map(|tool| (pointer.clone(), &tool.written))),
            None => {
                let problem = Problem::new(pointer, unknown(name, defaults));
                match defaults.missing {
                    Missing::Refused => top.problems.add(problem.pointer, problem.message),
                    Missing::LeftOut | Missing::Unknown => left_out.push(problem),
                }
            }
        }
    }
    for name in own(top) {
        let pointer = member(&top.at("mcpServers"), name);
        let set = agent.and_then(|agent| defaults.catalog.set(&format!("{agent}/{name}")));
        match set {
            Some(set) => found.extend(set.iter().map(|tool| (pointer.clone(), &tool.written))),
            None => {
                let words = format!("the MCP server {name:?} has listed no tools yet");
                left_out.push(Problem::new(pointer, words));
            }
        }
    }
    found
}

/// Names of the servers that the agent brings. What is said of them is for the source of their tools to check.
fn own<'v>(top: &Members<'v>) -> Vec<&'v String> {
    match top.get("mcpServers") {
        None => Vec::new(),
        Some(Value::Object(servers)) if servers.len() <= SERVERS_MAX => servers.keys().collect(),
        Some(Value::Object(servers)) => {
            let words = format!("{} servers; at most {SERVERS_MAX} are allowed", servers.len());
            top.wrong("mcpServers", words);
            Vec::new()
        }
        Some(other) => {
            let words = format!(
                "expected an object of servers by their names, got {}",
                kind(other)
            );
            top.wrong("mcpServers", words);
            Vec::new()
        }
    }
}

fn unknown(name: &str, defaults: &Defaults<'_>) -> String {
    let there: Vec<&str> = defaults.catalog.set_names().collect();
    let hint = match guess(name, &there) {
        Some(meant) => format!("; did you mean {meant:?}?"),
        None if there.is_empty() => String::new(),
        None => format!("; there are: {}", there.join(", ")),
    };
    format!("no MCP server named {} has listed tools{hint}", preview(name))
}
