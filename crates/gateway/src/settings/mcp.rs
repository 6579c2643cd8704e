//! MCP servers of a project: those that the operator configures, and what others may add.

use std::collections::BTreeMap;

use anyhow::bail;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_egress::{AllowList, Secrets};
use toolgate_sources::{Commands, McpLimits, McpSettings, ProcessLimits, ServerConfig};

use super::{Settings, project::DEFAULT_PROJECT};

/// MCP servers of a project.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// Programs that keys and agents of the project may have started on the gateway's machine.
    pub commands: Programs,
    /// Most servers of one project.
    pub servers_max: usize,
    /// Most tools of one server.
    pub tools_max: usize,
    /// Most bytes of what one server lists.
    pub catalog_bytes_max: usize,
    /// Most servers that run as a process, of all projects.
    pub processes_max: usize,
    /// The operator's servers, by name.
    pub servers: BTreeMap<String, Map<String, Value>>,
}

/// Programs that may be started for servers that the operator has not configured.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Programs {
    /// A rule.
    Rule(Rule),
    /// These, as `command` names them.
    Only(Vec<String>),
}

/// A rule on programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Any for the project `default` of a gateway that only this machine reaches, none otherwise.
    Auto,
    /// No program: servers are reached by their addresses.
    None,
    /// Every program that the gateway's user may run.
    Any,
}

impl Default for Mcp {
    fn default() -> Self {
        let limits = McpLimits::default();
        Self {
            commands: Programs::Rule(Rule::Auto),
            servers_max: limits.servers,
            tools_max: limits.tools,
            catalog_bytes_max: limits.catalog_bytes,
            processes_max: ProcessLimits::default().processes,
            servers: BTreeMap::new(),
        }
    }
}

impl Mcp {
    /// What of the gateway's own section holds for another project: the limits.
    pub fn for_others(self) -> Self {
        Self {
            commands: Programs::Rule(Rule::None),
            servers: BTreeMap::new(),
            ..self
        }
    }

    /// Processes of all projects.
    pub fn processes(&self) -> ProcessLimits {
        ProcessLimits {
            processes: self.processes_max,
        }
    }
}

impl Settings {
    /// As the servers of the project of this name take it. An error names the setting that is wrong.
    pub fn mcp_settings(
        &self,
        project: &str,
        allow: AllowList,
        secrets: Secrets,
    ) -> anyhow::Result<McpSettings> {
        let mut servers = BTreeMap::new();
        for (name, table) in &self.mcp.servers {
            let written = camel_case(table);
            let named = toolgate_sources::check_server_name(name);
            let problem = match (named, ServerConfig::read(&written, "")) {
                (Err(words), _) => Some(words),
                (Ok(()), Err(problems)) => {
                    let first = problems.into_iter().next();
                    first.map(|problem| format!("{} {}", problem.pointer, problem.message))
                }
                (Ok(()), Ok(_)) => None,
            };
            if let Some(problem) = problem {
                bail!("the setting `mcp.servers.{name}`: {}", problem.trim());
            }
            servers.insert(name.clone(), written);
        }
        let is_local = project == DEFAULT_PROJECT && self.listens_on_loopback();
        Ok(McpSettings {
            servers,
            commands: match &self.mcp.commands {
                Programs::Rule(Rule::Any) => Commands::Any,
                Programs::Rule(Rule::Auto) if is_local => Commands::Any,
                Programs::Rule(Rule::Auto | Rule::None) => Commands::None,
                Programs::Only(programs) => Commands::Only(programs.clone()),
            },
            limits: McpLimits {
                servers: self.mcp.servers_max,
                tools: self.mcp.tools_max,
                catalog_bytes: self.mcp.catalog_bytes_max,
            },
            allow,
            secrets,
        })
    }

    /// Whether only this machine reaches the gateway.
    fn listens_on_loopback(&self) -> bool {
        let host = self.listen.rsplit_once(':').map_or("", |(host, _)| host);
        let address: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        host == "localhost" || address.is_some_and(|address| address.is_loopback())
    }
}

/// A server as it is written in JSON. Names of headers and variables stay.
fn camel_case(table: &Map<String, Value>) -> Value {
    let members = table.iter().map(|(name, value)| {
        let value = match (name.as_str(), value) {
            ("limits", Value::Object(limits)) => camel_case(limits),
            _ => value.clone(),
        };
        (camel(name), value)
    });
    Value::Object(members.collect())
}

fn camel(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut starts_word = false;
    for c in name.chars() {
        match (c, starts_word) {
            ('_', _) => starts_word = true,
            (c, true) => {
                camel.push(c.to_ascii_uppercase());
                starts_word = false;
            }
            (c, false) => camel.push(c),
        }
    }
    camel
}
