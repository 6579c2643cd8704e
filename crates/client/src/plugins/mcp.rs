//! A bridge to an MCP server: its tools become tools of this client.
//!
//! The server runs as a child process that speaks on its standard input and output, or is reached over HTTP. A server
//! that dies gives errors for the model to read; the rest of the program goes on, and the next call starts it again,
//! after pauses that grow. When it announces other tools they are listed again. The child, and what it started, ends
//! when the plugin is taken out.

mod link;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;

use hyper::header::{HeaderName, HeaderValue};
use toolgate_mcp::oauth::Authorizer;
use toolgate_mcp::{Abilities, Server};

pub use toolgate_mcp::oauth;
pub use toolgate_mcp::{Elicit, Elicitation, ElicitationAnswer, McpError};

use crate::client::Client;
use crate::plugin::{BoxError, Hooks, Plugin};
use link::Link;

/// An MCP server, and how to reach it.
#[derive(Clone)]
pub struct McpServer {
    server: Server,
    only: Option<BTreeSet<String>>,
    elicit: Option<Arc<dyn Elicit>>,
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
            elicit: None,
        }
    }

    /// A server at an address (streamable HTTP).
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            server: Server::http(name, url),
            only: None,
            elicit: None,
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

    /// Takes these tools only, by the names that the server gives them. A gateway takes 64 tools with a message
    /// and a secret key, and 32 with a public one, unless it is set up otherwise.
    pub fn only<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.only = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Answers what the server asks of a person in the middle of a call. Without this it is told that nobody can be
    /// asked.
    pub fn on_elicitation(mut self, host: impl Elicit + 'static) -> Self {
        self.server = self.server.abilities(Abilities {
            elicitation: true,
            ..Abilities::default()
        });
        self.elicit = Some(Arc::new(host));
        self
    }

    /// Signs in to an address as this identity when it asks for that.
    pub fn authorizer(mut self, with: Arc<Authorizer>) -> Self {
        self.server = self.server.authorizer(with);
        self
    }

    /// Starts or reaches the server and asks for its tools.
    pub async fn connect(self) -> Result<Bridge, McpError> {
        let name = format!("mcp:{}", self.server.name());
        let (link, catalog) = Link::open(self).await?;
        let plugin = Plugin::new(name, env!("CARGO_PKG_VERSION")).tools(link.tools(&catalog));
        Ok(Bridge {
            plugin: plugin.hooks(Life(link)),
            warnings: catalog.warnings,
        })
    }
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.server.fmt(out)
    }
}

/// Follows the tools of the server, and ends the connection, and with it the child.
struct Life(Arc<Link>);

#[crate::async_trait]
impl Hooks for Life {
    async fn on_register(&self, client: &Client) -> Result<(), BoxError> {
        self.0.follow(client.downgrade());
        Ok(())
    }

    async fn on_unregister(&self) -> Result<(), BoxError> {
        Ok(self.0.close().await?)
    }
}
