//! The registry: tools that the agents of a project share. Needs a secret key.

use hyper::Method;
use hyper::header::{CONTENT_TYPE, IF_NONE_MATCH};
use serde::Deserialize;
use serde_json::Value;
use toolgate_protocol::time::Time;

use crate::client::Client;
use crate::error::Error;
use crate::http::RetryPolicy;

/// A tool that agents use by its name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedTool {
    /// What agents and models call it.
    pub name: String,
    /// Number of its changes, from 1.
    pub version: u64,
    /// The definition, keys masked.
    pub definition: Value,
    /// When it was first stored.
    pub created_at: Time,
    /// When it was last changed.
    pub updated_at: Time,
}

/// Stores, finds and removes the tools that the agents of a project share.
#[derive(Debug, Clone, Copy)]
pub struct ToolRegistry<'a> {
    pub(crate) client: &'a Client,
}

impl ToolRegistry<'_> {
    /// Stores a new tool under its `id`, or its `name`. Fails if there is one, or lists all that is wrong with it.
    pub async fn register(&self, definition: &Value) -> Result<SharedTool, Error> {
        self.put(definition, true).await
    }

    /// Stores a tool, in place of the one with its id if there is one.
    pub async fn replace(&self, definition: &Value) -> Result<SharedTool, Error> {
        self.put(definition, false).await
    }

    /// A tool by its id; none if there is none.
    pub async fn get(&self, id: &str) -> Result<Option<SharedTool>, Error> {
        let http = self.client.http();
        let request = http.request_segments(Method::GET, &segments(id), &[]);
        found(http.read(request, RetryPolicy::Brief).await)
    }

    /// Whether there is a tool with this id.
    pub async fn has(&self, id: &str) -> Result<bool, Error> {
        Ok(self.get(id).await?.is_some())
    }

    /// All tools, by id.
    pub async fn get_all(&self) -> Result<Vec<SharedTool>, Error> {
        self.list(&[]).await
    }

    /// Tools with these words in a row in one of their triggers; case and accents do not matter.
    pub async fn get_by_trigger(&self, trigger: &str) -> Result<Vec<SharedTool>, Error> {
        self.list(&[("trigger", trigger.to_owned())]).await
    }

    /// Tools of a category, such as one of [`category`](crate::category); case does not matter.
    pub async fn get_by_category(&self, category: &str) -> Result<Vec<SharedTool>, Error> {
        self.list(&[("category", category.to_owned())]).await
    }

    /// Tools that need a permission, such as one of [`permission`](crate::permission).
    pub async fn get_by_permission(&self, permission: &str) -> Result<Vec<SharedTool>, Error> {
        self.list(&[("permission", permission.to_owned())]).await
    }

    /// Removes a tool; false if there is none.
    pub async fn unregister(&self, id: &str) -> Result<bool, Error> {
        let http = self.client.http();
        let request = http.request_segments(Method::DELETE, &segments(id), &[]);
        let removed = found(http.send_request(request, RetryPolicy::Once).await)?;
        Ok(removed.is_some())
    }

    /// Removes all shared tools of the project, and says how many there were. Agents that name them go without them.
    pub async fn clear(&self) -> Result<u64, Error> {
        #[derive(Deserialize)]
        struct Cleared {
            removed: u64,
        }
        let http = self.client.http();
        let path = ["v1", "shared-tools"].map(str::to_owned);
        let request = http.request_segments(Method::DELETE, &path, &[("confirm", "all".to_owned())]);
        let cleared: Cleared = http.read(request, RetryPolicy::Once).await?;
        Ok(cleared.removed)
    }

    async fn list(&self, query: &[(&str, String)]) -> Result<Vec<SharedTool>, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Listed {
            shared_tools: Vec<SharedTool>,
        }
        let listed: Listed = self.client.http().get("v1/shared-tools", query).await?;
        Ok(listed.shared_tools)
    }

    async fn put(&self, definition: &Value, is_new: bool) -> Result<SharedTool, Error> {
        let id = definition.get("id").or_else(|| definition.get("name"));
        let id = id.and_then(Value::as_str);
        let id = id.ok_or_else(|| Error::Setup("a tool needs an \"id\" or a \"name\"".into()))?;
        let http = self.client.http();
        let request = http
            .request_segments(Method::PUT, &segments(id), &[])
            .header(CONTENT_TYPE, "application/json")
            .body(definition.to_string());
        match is_new {
            true => {
                let request = request.header(IF_NONE_MATCH, "*");
                http.read(request, RetryPolicy::Once).await
            }
            false => http.read(request, RetryPolicy::Brief).await,
        }
    }
}

fn segments(id: &str) -> [String; 3] {
    ["v1", "shared-tools", id].map(str::to_owned)
}

/// None for what is not there.
fn found<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(error) if error.status() == Some(404) => Ok(None),
        answer => answer.map(Some),
    }
}
