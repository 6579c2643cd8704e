//! The seam to whoever knows the MCP servers of a project.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use toolgate_access::Principal;
use toolgate_fair::Queue;
use toolgate_kernel::agent::Access;
use toolgate_mcp::Server;

/// Knows the servers that projects expose as they are.
#[async_trait]
pub trait Upstreams: Send + Sync {
    /// The server of this name in the project of `who`, if it is exposed. Who may reach it is checked by the caller.
    async fn find(&self, who: &Principal, name: &str) -> Result<Option<Exposed>, UpstreamsError>;
}

/// Why it is not known whether a server is exposed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UpstreamsError(pub String);

/// A server that is exposed as it is.
#[derive(Clone)]
pub struct Exposed {
    /// How it is reached for the principal that asked.
    pub server: Server,
    /// Changes whenever the server is reached otherwise, or with other credentials. Nothing secret: connections are
    /// shared by those who have the same.
    pub revision: String,
    /// Where its calls take turns, those of agents included: how many it may be asked at once.
    pub turns: Arc<Queue>,
    /// Longest time of a request, without the time that a client takes to answer a question.
    pub timeout: Duration,
    /// Where the programs of all servers take turns; none for a server at an address.
    pub processes: Option<Arc<Queue>>,
    /// Users that may reach it; a backend always may.
    pub access: Access,
    /// Decides on its tools.
    pub review: Arc<dyn Review>,
    /// Changes whenever `review` decides otherwise.
    pub reviewed: String,
    /// Removes what the server was given from what it says.
    pub hide: Hide,
}

/// Gives a JSON text without what a server was given; none when nothing of it is there, and the text stays as it is.
pub type Hide = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Decides which tools of a server may be seen and called.
pub trait Review: Send + Sync {
    /// Whether a tool, as the server defines it now, may be used. `definition` is the element of `tools/list`.
    fn admits(&self, tool: &str, definition: &Value) -> bool;
}

/// Admits every tool.
pub struct Everything;

impl Review for Everything {
    fn admits(&self, _tool: &str, _definition: &Value) -> bool {
        true
    }
}
