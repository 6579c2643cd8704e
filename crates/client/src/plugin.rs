//! A plugin: a set of tools, and hooks into what the client does.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::chat::Reply;
use crate::client::Client;
use crate::resources::RunRequest;
use crate::tool::{Definition, Executor, Tool, ToolCall, ToolError, executor};

/// Any error of a hook.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A set of tools with hooks, registered with [`Client::use_plugin`].
#[derive(Clone)]
pub struct Plugin {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) tools: Vec<Tool>,
    pub(crate) executors: Vec<(String, Executor)>,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
}

impl Plugin {
    /// A plugin without tools.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            tools: Vec::new(),
            executors: Vec::new(),
            hooks: None,
        }
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds several tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Removes every tool that `keep` rejects: it is neither sent to the gateway nor executed.
    pub fn only(mut self, keep: impl Fn(&str) -> bool) -> Self {
        let left_out: Vec<Tool> = self
            .tools
            .extract_if(.., |tool| !keep(&tool.definition.name))
            .collect();
        self.executors
            .retain(|(name, _)| left_out.iter().all(|tool| tool.definition.name != *name));
        self
    }

    /// Sets the executor of the plugin's tool `name`. An executor without a tool is rejected at registration.
    pub fn executor<F, R>(mut self, name: impl Into<String>, run: F) -> Self
    where
        F: Fn(ToolCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        self.executors.push((name.into(), executor(run)));
        self
    }

    /// Sets the hooks.
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks = Some(Arc::new(hooks));
        self
    }

    /// The definitions of its tools.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.tools.iter().map(Tool::definition)
    }

    /// The plugin's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Plugin")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// Life-cycle hooks of a plugin. Hooks of several plugins run in the order of registration.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// Called when the plugin is registered. An error undoes the registration.
    async fn on_register(&self, client: &Client) -> Result<(), BoxError> {
        let _ = client;
        Ok(())
    }

    /// Called before a message is sent: returns it, changed or not. An error keeps it from being sent.
    async fn before_request(&self, request: RunRequest) -> Result<RunRequest, BoxError> {
        Ok(request)
    }

    /// Called when a chat stream has ended.
    async fn after_response(&self, reply: &Reply) {
        let _ = reply;
    }

    /// Executes a call of one of the plugin's tools that has no executor; `None` if it cannot.
    async fn on_tool_call(&self, call: &ToolCall) -> Option<Result<Value, ToolError>> {
        let _ = call;
        None
    }

    /// Called when the plugin was removed.
    async fn on_unregister(&self) -> Result<(), BoxError> {
        Ok(())
    }
}
