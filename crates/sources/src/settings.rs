//! What a project's settings say of MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use toolgate_egress::{AllowList, Secrets};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;

/// What a project's settings say of MCP servers.
#[derive(Clone, Default)]
pub struct McpSettings {
    /// Servers that the operator has configured, as they were written.
    pub servers: BTreeMap<String, Value>,
    /// Programs that the project's keys and agents may have started on the gateway's machine.
    pub commands: Commands,
    /// Limits of one project.
    pub limits: McpLimits,
    /// Addresses that servers of the project may have, besides the public internet.
    pub allow: AllowList,
    /// What headers and variables may name.
    pub secrets: Secrets,
}

/// Programs that may be started for servers that the operator has not configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Commands {
    /// No program.
    #[default]
    None,
    /// Every program that the gateway's user may run.
    Any,
    /// These, as they are written in `command`.
    Only(Vec<String>),
}

impl Commands {
    /// Whether this program may be started.
    pub fn permits(&self, program: &str) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Only(programs) => programs.iter().any(|permitted| permitted == program),
        }
    }
}

/// Limits on the MCP servers of one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpLimits {
    /// Most servers, those of agents included.
    pub servers: usize,
    /// Most tools of one server.
    pub tools: usize,
    /// Most bytes of what one server lists.
    pub catalog_bytes: usize,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            servers: 50,
            tools: 500,
            catalog_bytes: 2 << 20,
        }
    }
}

/// Resolves the settings of projects. Asked for every call, so an implementation remembers, and gives the same `Arc`
/// while nothing has changed.
#[async_trait]
pub trait McpResolver: Send + Sync {
    /// As the project's settings are now.
    async fn mcp_settings(&self, project: ProjectId) -> Result<Arc<McpSettings>, StoreError>;
}

/// The same for every project.
#[async_trait]
impl McpResolver for Arc<McpSettings> {
    async fn mcp_settings(&self, _: ProjectId) -> Result<Arc<McpSettings>, StoreError> {
        Ok(self.clone())
    }
}
