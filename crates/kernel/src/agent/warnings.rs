//! What is valid in a configuration and most likely not meant: the author is told when it is checked or saved.

use std::collections::HashSet;
use std::mem::take;

use serde_json::Value;

use super::Agent;
use crate::name::{AgentName, ToolName};
use crate::problem::Problem;
use crate::schema::misspelt_keywords;
use crate::template::Template;
use crate::tool::Execution;

/// Agents below one agent that are looked at.
const AGENTS_MAX: usize = 100;
/// Warnings that are given at once.
pub const WARNINGS_MAX: usize = 20;

/// Warnings of one configuration by itself: placeholders that nothing fills, and misspelt keywords in schemas.
pub fn config_warnings(config: &Value) -> Vec<Problem> {
    let mut warnings = unknown_placeholders(config);
    for (index, tool) in tools(config) {
        let schemas = [
            ("parameters", tool.get("parameters")),
            ("inputSchema", tool.get("inputSchema")),
            ("outputSchema", tool.get("outputSchema")),
            (
                "execution/result_schema",
                tool.pointer("/execution/result_schema"),
            ),
            ("execution/resultSchema", tool.pointer("/execution/resultSchema")),
        ];
        for (place, schema) in schemas {
            let schema = schema.unwrap_or(&Value::Null);
            warnings.extend(misspelt_keywords(schema, &format!("/tools/{index}/{place}")));
        }
    }
    warnings.truncate(WARNINGS_MAX);
    warnings
}

/// Placeholders of prompt and request tools that no parameter fills: they would stay as they are, or fail each call.
fn unknown_placeholders(config: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, tool) in tools(config) {
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

fn tools(config: &Value) -> impl Iterator<Item = (usize, &Value)> {
    config["tools"].as_array().into_iter().flatten().enumerate()
}

fn gather_texts<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| gather_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|item| gather_texts(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Looks for calls of an agent, and of the agents below it, that can never be answered: they would start an agent that is
/// not there, or one deeper than `limits.depth` of this agent allows. The caller brings the agents, from a store or from
/// files: it asks for the [next](Self::next_agent) name and [gives](Self::look) the agent of that name, until there is none. It
/// may give none for what it does not know: then nothing is said of that agent.
pub struct ChildWalk {
    top: AgentName,
    depth_max: u32,
    depth: u32,
    /// Agents of this depth that are still to be looked at, the next one last.
    level: Vec<Reached>,
    /// The next one: its name was told.
    current: Option<Reached>,
    /// Agents one deeper.
    below: Vec<Reached>,
    seen: HashSet<AgentName>,
    warnings: Vec<Problem>,
}

/// An agent below, and how it is reached.
struct Reached {
    agent: AgentName,
    /// Place of the first agent's tool that leads to it.
    pointer: String,
}

impl ChildWalk {
    /// Begins with an agent and its configuration as it is written.
    pub fn new(top: &Agent, config: &Value) -> Self {
        let mut walk = Self {
            top: top.name.clone(),
            depth_max: top.limits.depth,
            depth: 0,
            level: Vec::new(),
            current: None,
            below: Vec::new(),
            seen: HashSet::from([top.name.clone()]),
            warnings: Vec::new(),
        };
        walk.calls(top, |tool| place(config, tool));
        walk.descend();
        walk
    }

    /// The next agent that is asked for.
    pub fn next_agent(&mut self) -> Option<AgentName> {
        if self.level.is_empty() {
            self.descend();
        }
        self.current = self.level.pop();
        self.current.as_ref().map(|reached| reached.agent.clone())
    }

    /// The agent that [`Self::next_agent`] named; none if there is no such agent.
    pub fn look(&mut self, agent: Option<&Agent>) {
        let Some(Reached { agent: name, pointer }) = self.current.take() else {
            return;
        };
        match agent {
            Some(agent) => self.calls(agent, |_| pointer.clone()),
            None => {
                let words = format!(
                    "there is no agent named {name} now, and until there is, calls of it fail with UNAVAILABLE"
                );
                self.warnings.push(Problem::new(pointer, words));
            }
        }
    }

    /// What was found.
    pub fn warnings(self) -> Vec<Problem> {
        let mut warnings = self.warnings;
        warnings.truncate(WARNINGS_MAX);
        warnings
    }

    /// Each agent is looked at where it stands highest: what is too deep there is too deep anywhere.
    fn descend(&mut self) {
        self.depth += 1;
        self.level = take(&mut self.below);
        self.level.reverse();
    }

    fn calls(&mut self, agent: &Agent, pointer: impl Fn(&ToolName) -> String) {
        let (name, top, depth_max) = (&agent.name, &self.top, self.depth_max);
        for tool in agent.tools.values().filter(|tool| tool.execution.is_run()) {
            let pointer = pointer(&tool.name);
            if self.depth >= depth_max {
                let words = format!(
                    "{} of {name} would start a run {} deep, and limits.depth of {top} is {depth_max}, so every call of \
                     it fails with LIMIT_EXCEEDED",
                    tool.name,
                    self.depth + 1
                );
                self.warnings.push(Problem::new(pointer, words));
            } else if let Execution::Agent { agent, .. } = &tool.execution
                && self.seen.len() < AGENTS_MAX
                && self.seen.insert(agent.clone())
            {
                let agent = agent.clone();
                self.below.push(Reached { agent, pointer });
            }
        }
    }
}

/// Where a tool stands in a configuration.
fn place(config: &Value, tool: &ToolName) -> String {
    let index = tools(config).find_map(|(index, written)| {
        let is_it = written["name"] == tool.as_str() || *written == tool.as_str();
        is_it.then_some(index)
    });
    index.map_or_else(|| "/tools".to_owned(), |index| format!("/tools/{index}"))
}
