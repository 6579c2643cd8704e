//! Agent configurations; need a secret key.

use hyper::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::client::Client;
use crate::error::Error;
use crate::http::{RetryPolicy, with_json};

/// Writes and lists agent configurations.
#[derive(Debug, Clone, Copy)]
pub struct Agents<'a> {
    pub(crate) client: &'a Client,
}

impl Agents<'_> {
    /// Stores a configuration and returns its revision; storing the same one again creates no revision.
    pub async fn put(&self, name: &str, config: &Value) -> Result<u32, Error> {
        #[derive(Deserialize)]
        struct Agent {
            revision: u32,
        }
        let http = self.client.http();
        let request = http.request_segments(Method::PUT, &["v1", "agents", name], &[]);
        let agent: Agent = http.read(with_json(request, config)?, RetryPolicy::Brief).await?;
        Ok(agent.revision)
    }

    /// The names of all agents.
    pub async fn names(&self) -> Result<Vec<String>, Error> {
        #[derive(Deserialize)]
        struct Agent {
            name: String,
        }
        #[derive(Deserialize)]
        struct List {
            agents: Vec<Agent>,
        }
        let list: List = self.client.http().get("v1/agents", &[]).await?;
        Ok(list.agents.into_iter().map(|agent| agent.name).collect())
    }
}
