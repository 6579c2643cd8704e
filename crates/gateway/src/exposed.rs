//! The MCP servers that projects expose as they are, for the door that passes their messages on.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use toolgate_access::Principal;
use toolgate_door_mcp::through::{Exposed, Review, Upstreams, UpstreamsError};
use toolgate_sources::{McpServers, ReviewedTools};

/// The servers of all projects.
pub struct ExposedServers(pub McpServers);

struct Reviewed(ReviewedTools);

#[async_trait]
impl Upstreams for ExposedServers {
    async fn find(&self, who: &Principal, name: &str) -> Result<Option<Exposed>, UpstreamsError> {
        let found = self.0.exposed(who.project, name).await.map_err(UpstreamsError)?;
        Ok(found.map(|server| Exposed {
            server: server.server,
            revision: server.revision,
            turns: server.turns,
            timeout: server.timeout,
            processes: server.processes,
            access: server.access,
            reviewed: server.reviewed.revision(),
            review: Arc::new(Reviewed(server.reviewed)),
            hide: server.hide,
        }))
    }
}

impl Review for Reviewed {
    fn admits(&self, tool: &str, definition: &Value) -> bool {
        self.0.admits(tool, definition)
    }
}
