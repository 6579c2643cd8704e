//! Servers and their tools as people see them.

use std::sync::Arc;

use serde_json::Value;
use toolgate_kernel::id::ProjectId;

use crate::config::ServerConfig;
use crate::diff::{Difference, differences};
use crate::index::{Catalog, StoredTool};
use crate::oauth::Identity;
use crate::servers::Inner;
use crate::snapshot::{Configured, Origin, Snapshot};
use crate::supervisor::Status;

/// A server as people see it.
#[derive(Debug, Clone)]
pub struct ServerView {
    /// What it is called, `<agent>/<server>` for one of an agent.
    pub name: String,
    /// Who configured it.
    pub origin: Origin,
    /// Its configuration without the values of headers and variables.
    pub config: Value,
    /// Where the connection stands, on this node.
    pub status: Status,
    /// It waits for a person to sign in, as far as this node knows.
    pub needs_sign_in: bool,
    /// What it lists; none if it was never connected.
    pub catalog: Option<Arc<Catalog>>,
}

/// A tool as people see it.
#[derive(Debug, Clone)]
pub struct ToolView<'c> {
    /// The server's own name for it.
    pub original: &'c str,
    /// The tool.
    pub tool: &'c StoredTool,
    /// What differs from the definition that was accepted last.
    pub diff: Vec<Difference>,
}

impl ServerView {
    /// Its tools, by the server's own names.
    pub fn tools(&self) -> impl Iterator<Item = ToolView<'_>> {
        let tools = self.catalog.iter().flat_map(|catalog| &catalog.tools);
        tools
            .filter(|(_, tool)| !tool.gone)
            .map(|(original, tool)| ToolView {
                original,
                diff: tool
                    .accepted
                    .as_ref()
                    .map(|accepted| differences(accepted, &tool.definition))
                    .unwrap_or_default(),
                tool,
            })
    }
}

impl Inner {
    /// A server as people see it.
    pub fn view(
        &self,
        project: ProjectId,
        key: &str,
        server: &Configured,
        snapshot: &Snapshot,
    ) -> ServerView {
        let catalog = snapshot.catalogs.get(key).cloned();
        let same = |catalog: &Arc<Catalog>| catalog.fingerprint == server.config.fingerprint();
        ServerView {
            name: key.to_owned(),
            origin: server.origin.clone(),
            config: ServerConfig::shown(&server.written),
            status: self
                .pool
                .known(project, key)
                .map_or(Status::Configured, |handle| handle.status()),
            needs_sign_in: self.identities.as_ref().is_some_and(|identities| {
                identities.is_needed(&Identity {
                    project,
                    server: key.to_owned(),
                })
            }),
            catalog: catalog.filter(same),
        }
    }
}
