//! A plugin: tools that belong together, and hooks into what the client does.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::chat::Reply;
use crate::client::Client;
use crate::resources::RunRequest;
use crate::tool::{Definition, Executor, Tool, ToolCall, ToolError, executor};

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Tools that belong together, registered with [`Client::use_plugin`].
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

    /// Adds several.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Leaves out every tool that `keep` does not name: it is neither told to a model nor executed.
    pub fn only(mut self, keep: impl Fn(&str) -> bool) -> Self {
        let left_out: Vec<Tool> = self
            .tools
            .extract_if(.., |tool| !keep(&tool.definition.name))
            .collect();
        self.executors
            .retain(|(name, _)| left_out.iter().all(|tool| tool.definition.name != *name));
        self
    }

    /// Gives the tool `name` of this plugin its executor. One for no tool is refused at registration.
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

    /// What a model is told of its tools.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.tools.iter().map(Tool::definition)
    }

    /// Its name.
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

/// What a plugin may do besides its tools. Hooks of several plugins run in the order of registration.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// The plugin was registered. An error undoes that.
    async fn on_register(&self, client: &Client) -> Result<(), BoxError> {
        let _ = client;
        Ok(())
    }

    /// A message is about to be sent: gives it back, changed or not. An error keeps it from being sent.
    async fn before_request(&self, request: RunRequest) -> Result<RunRequest, BoxError> {
        Ok(request)
    }

    /// A chat stream has come to its end.
    async fn after_response(&self, reply: &Reply) {
        let _ = reply;
    }

    /// Executes a call of a tool of this plugin that has no executor; nothing when it cannot.
    async fn on_tool_call(&self, call: &ToolCall) -> Option<Result<Value, ToolError>> {
        let _ = call;
        None
    }

    /// The plugin was taken out.
    async fn on_unregister(&self) -> Result<(), BoxError> {
        Ok(())
    }
}
