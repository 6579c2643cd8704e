//! A bridge to an MCP server: its tools become tools of this client.
//!
//! The server runs as a child process that speaks on its standard input and output, or is reached over HTTP. A server
//! that dies gives errors for the model to read; the rest of the program goes on. The child, and what it started,
//! ends when the plugin is taken out.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::header::{HeaderName, HeaderValue};
use toolgate_kernel::tool::ClientToolLimits;
use toolgate_mcp::{Caller, Catalog, CatalogTool, Connection, Profile, Server};

pub use toolgate_mcp::McpError;

use crate::plugin::{BoxError, Hooks, Plugin};
use crate::tool::{Definition, Tool, ToolCall, ToolError};

/// An MCP server, and how to reach it.
#[derive(Debug, Clone)]
pub struct McpServer {
    server: Server,
    only: Option<BTreeSet<String>>,
}

/// A server that is connected.
#[derive(Debug)]
pub struct Bridge {
    /// Its tools, named `mcp_<server>_<tool>`; the plugin is named `mcp:<server>`.
    pub plugin: Plugin,
    /// Tools that were simplified or left out, in words.
    pub warnings: Vec<String>,
}

impl McpServer {
    /// A server that runs as a child process. Of this program's environment it sees only what a program needs to find
    /// its way (`PATH`, `HOME`, the language, …), so no key that was meant for this one.
    pub fn command<A: Into<OsString>>(
        name: impl Into<String>,
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            server: Server::command(name, program, arguments).inherit(std::env::vars_os()),
            only: None,
        }
    }

    /// A server at an address (streamable HTTP).
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            server: Server::http(name, url),
            only: None,
        }
    }

    /// Sets a variable in the environment of a child process.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.server = self.server.env(name, value);
        self
    }

    /// Sends a header with every request to an address, such as `Authorization`.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.server = self.server.header(name, value);
        self
    }

    /// Takes these tools only, by the names that the server gives them. A gateway takes ten tools with a message
    /// unless it is set up otherwise.
    pub fn only<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.only = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Starts or reaches the server and asks for its tools.
    pub async fn connect(self) -> Result<Bridge, McpError> {
        let connection = self.server.connect().await?;
        let listed = connection.list().await;
        let listed = listed.map_err(|reason| self.server.error(reason))?;
        let profile = Profile::Client(ClientToolLimits::default());
        let is_wanted = |tool: &str| self.only.as_ref().is_none_or(|only| only.contains(tool));
        let catalog = Catalog::new(self.server.name(), listed, &profile, is_wanted);
        let plugin = Plugin::new(format!("mcp:{}", self.server.name()), env!("CARGO_PKG_VERSION"));
        let caller = connection.caller();
        let bridged = |plugin: Plugin, tool| plugin.tool(bridged(tool, caller.clone()));
        let plugin = catalog.tools().fold(plugin, bridged);
        let life = Life {
            connection: Mutex::new(Some(connection)),
        };
        Ok(Bridge {
            plugin: plugin.hooks(life),
            warnings: catalog.warnings,
        })
    }
}

/// A tool that asks the server. Its call is dropped when its time is over or nobody waits any more: the server is then
/// told to stop.
fn bridged(tool: &CatalogTool, caller: Caller) -> Tool {
    let definition = Definition::new(&tool.name, &tool.description).parameters(tool.parameters.clone());
    let original: Arc<str> = tool.original.as_str().into();
    Tool::new(definition, move |call: ToolCall| {
        let (caller, original) = (caller.clone(), original.clone());
        async move {
            let called = caller.call(&original, call.input.as_object().cloned()).await;
            called.map_err(|error| ToolError::new(error.to_string()))
        }
    })
}

/// Ends the connection, and with it the child.
struct Life {
    connection: Mutex<Option<Connection>>,
}

#[crate::async_trait]
impl Hooks for Life {
    async fn on_unregister(&self) -> Result<(), BoxError> {
        let connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match connection {
            Some(connection) => Ok(connection.close().await?),
            None => Ok(()),
        }
    }
}
