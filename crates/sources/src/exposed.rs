//! Servers of a project that are exposed as they are, for whoever passes their messages on.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toolgate_fair::Queue;
use toolgate_kernel::agent::Access;
use toolgate_kernel::id::ProjectId;
use toolgate_mcp::{Server, as_listed};

use crate::config::{Reach, ServerConfig};
use crate::index::{Catalog, State};
use crate::oauth::Identity;
use crate::review::hash;
use crate::servers::McpServers;
use crate::snapshot::Origin;

/// A server that is exposed as it is.
#[derive(Clone)]
pub struct ExposedServer {
    /// How to reach it, with secrets and whoever signs in.
    pub server: Server,
    /// Differs when the server would be reached otherwise. Nothing secret can be read from it.
    pub revision: String,
    /// Where its calls take turns, those of agents included.
    pub turns: Arc<Queue>,
    /// How long a call may take.
    pub timeout: Duration,
    /// Where programs of all servers take turns; none for a server at an address.
    pub processes: Option<Arc<Queue>>,
    /// Users that may reach it.
    pub access: Access,
    /// Decides on its tools.
    pub reviewed: ReviewedTools,
    /// Removes what the server was given from what it says.
    pub hide: HideInJson,
}

/// Gives a JSON text without what a server was given; none when nothing of it is there.
pub type HideInJson = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What was decided about the tools of a server.
#[derive(Clone)]
pub struct ReviewedTools {
    config: Arc<ServerConfig>,
    catalog: Option<Arc<Catalog>>,
}

impl ReviewedTools {
    /// Whether a tool may be used, as the server defines it now.
    pub fn admits(&self, tool: &str, definition: &Value) -> bool {
        let is_wanted = self
            .config
            .tools
            .as_ref()
            .is_none_or(|wanted| wanted.contains(tool));
        let known = self.catalog.as_ref().and_then(|catalog| catalog.tools.get(tool));
        is_wanted
            && known.is_some_and(|known| {
                let is_same = || known.hash == hash(definition) || known.hash == hash(&as_listed(definition));
                known.state == State::Accepted && is_same()
            })
    }

    /// Differs when something else was decided.
    pub fn revision(&self) -> String {
        let changed = self.catalog.as_ref().map(|catalog| catalog.changed_at.0);
        format!("{changed:?} {:?}", self.config.tools)
    }
}

impl McpServers {
    /// The server of this name, if it is exposed as it is. Servers of agents never are. The error is in words for people.
    pub async fn exposed(&self, project: ProjectId, name: &str) -> Result<Option<ExposedServer>, String> {
        let inner = &self.0;
        let snapshot = inner
            .listed_servers(project)
            .await
            .map_err(|error| error.to_string())?;
        let Some(configured) = snapshot.servers.get(name) else {
            return Ok(None);
        };
        let Some(access) = configured.config.expose.clone() else {
            return Ok(None);
        };
        if matches!(configured.origin, Origin::Agent(_)) {
            return Ok(None);
        }
        let settings = inner.settings(project).await.map_err(|error| error.to_string())?;
        let identity = Identity {
            project,
            server: name.to_owned(),
        };
        let server = inner.server(configured, &settings)?;
        let server = inner.signed_in(server, &identity, configured, &settings)?;
        let secrets = snapshot.secrets.get(name).unwrap_or(&settings.secrets).clone();
        let handle = inner.pool.handle(inner, project, name, configured);
        let server = inner
            .logged(server, project, name, &secrets)
            .restarts(handle.restarts());
        let mut revision = Sha256::new();
        revision.update(configured.written.to_string());
        let values: Vec<&String> = match &configured.config.reach {
            Reach::Http { headers, .. } => headers.values().collect(),
            Reach::Command { environment, .. } => environment.values().collect(),
        };
        for value in values {
            revision.update([0]);
            // What is not set was refused above.
            revision.update(settings.secrets.fill(value, str::to_owned).unwrap_or_default());
        }
        let revision = revision
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let catalog = snapshot.catalogs.get(name);
        let catalog = catalog.filter(|catalog| catalog.fingerprint == configured.config.fingerprint());
        Ok(Some(ExposedServer {
            server,
            revision,
            turns: handle.turns,
            timeout: configured.config.timeout,
            processes: match &configured.config.reach {
                Reach::Http { .. } => None,
                Reach::Command { .. } => Some(inner.pool.processes()),
            },
            access,
            reviewed: ReviewedTools {
                config: configured.config.clone(),
                catalog: catalog.cloned(),
            },
            hide: Arc::new(move |json| secrets.hide_in_json(json)),
        }))
    }
}
