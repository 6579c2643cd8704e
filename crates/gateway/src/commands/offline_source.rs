//! Sources whose tools only a running gateway knows, for commands that check files without one: what an author writes is
//! checked as far as it goes, and what is missing is a warning.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate_engine::tools::{CallContext, CallFailure, Called, ToolSource};
use toolgate_kernel::json::Json;
use toolgate_kernel::members::Members;
use toolgate_kernel::problem::{Problem, member};
use toolgate_kernel::tool::{Binding, Placement, SourceTool, ToolList};
use toolgate_sources::{ServerConfig, check_server_name};

use crate::settings::Settings;

/// Longest name of a server or plugin that is looked at.
const NAME_CHARS_MAX: usize = 128;

/// The kinds of tools that only a running gateway knows.
#[derive(Debug, Clone, Copy)]
pub(super) enum OfflineSource {
    /// Tools of MCP servers.
    Mcp,
    /// Tools of installed plugins.
    Plugin,
}

impl OfflineSource {
    /// Member of `execution` that names whose tool it is.
    fn owner(self) -> &'static str {
        match self {
            Self::Mcp => "server",
            Self::Plugin => "plugin",
        }
    }
}

#[async_trait]
impl ToolSource for OfflineSource {
    fn name(&self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Plugin => "plugin",
        }
    }
    fn placement(&self) -> Placement {
        match self {
            Self::Mcp => Placement::Mcp,
            Self::Plugin => Placement::Plugin,
        }
    }
    fn execution_types(&self) -> &'static [&'static str] {
        match self {
            Self::Mcp => &["mcp"],
            Self::Plugin => &["plugin"],
        }
    }
    fn read(&self, tool: &Members<'_>, _: &ToolList) -> Option<Binding> {
        let (section, name) = tool.named_with("tool", &[self.owner()])?;
        if section.get(self.owner()).is_some() {
            section.text(self.owner(), NAME_CHARS_MAX)?;
        }
        let usual = json!({"description": "As its source describes it.", "parameters": {"type": "object"}});
        Some(Binding::configured(name, Json::from(json!({})), usual))
    }
    async fn call(&self, _: &SourceTool, _: &Json, _: &CallContext) -> Result<Called, CallFailure> {
        Err(CallFailure::unavailable("nothing runs where files are checked"))
    }
}

/// What an agent says of MCP servers and plugins, beside what the settings say of them.
pub(super) struct OfflineNames {
    servers: BTreeSet<String>,
}

impl OfflineNames {
    /// The servers that these settings configure.
    pub fn of(settings: &Settings) -> Self {
        Self {
            servers: settings.mcp.servers.keys().cloned().collect(),
        }
    }

    /// What is wrong with the servers that an agent brings.
    pub fn problems(&self, agent: &Value) -> Vec<Problem> {
        let own = agent["mcpServers"].as_object().into_iter().flatten();
        let problems = own.flat_map(|(name, config)| {
            let pointer = member("/mcpServers", name);
            let mut problems = ServerConfig::read(config, &pointer).err().unwrap_or_default();
            let name = check_server_name(name).err();
            problems.extend(name.map(|words| Problem::new(pointer, words)));
            problems
        });
        problems.collect()
    }

    /// What cannot be checked without a running gateway.
    pub fn warnings(&self, agent: &Value) -> Vec<Problem> {
        let tools = agent["tools"].as_array().into_iter().flatten().enumerate();
        let tools = tools.filter_map(|(index, tool)| {
            let words = match tool["executionType"].as_str()? {
                "mcp" => self.of_server(tool["execution"]["server"].as_str()),
                "plugin" => "whether a plugin of the project has this tool is not known here".to_owned(),
                _ => return None,
            };
            Some(Problem::new(format!("/tools/{index}/execution"), words))
        });
        tools.collect()
    }

    fn of_server(&self, server: Option<&str>) -> String {
        match server {
            Some(server) if self.servers.contains(server) => {
                format!(
                    "the settings have the MCP server {server:?}; whether it has this tool is not known here"
                )
            }
            Some(server) => {
                format!(
                    "the settings have no MCP server {server:?}; whether the project has one is not known here"
                )
            }
            None => "whether an MCP server of the project has this tool is not known here".to_owned(),
        }
    }

    /// What was left out of an agent because nobody here knows it, in words; none where there is nothing to say.
    pub fn left_out(&self, agent: &Value, Problem { pointer, message }: Problem) -> Option<Problem> {
        // The agent's own servers are checked by themselves.
        if pointer.starts_with("/mcpServers/") {
            return None;
        }
        let words = match agent.pointer(&pointer).and_then(Value::as_str) {
            Some(server) if pointer.starts_with("/mcp/") => match self.servers.contains(server) {
                true => return None,
                false => format!(
                    "the settings have no MCP server {server:?}; whether the project has one is not known here"
                ),
            },
            _ => format!(
                "{message}; it has to be a shared tool of the project, or one of a plugin or an MCP server"
            ),
        };
        Some(Problem::new(pointer, words))
    }
}
