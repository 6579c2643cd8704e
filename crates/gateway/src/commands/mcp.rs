//! `toolgate mcp`: the tools of a running gateway for a program that speaks MCP over standard input and output.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::name::AgentName;
use url::Url;

use super::mcp_servers::Servers;
use crate::mcp_bridge::{self, Gateway};

/// Serves the tools of a running gateway over standard input and output, for MCP clients that start their servers.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Mcp {
    #[command(subcommand)]
    command: Option<Command>,
    /// Address of the gateway
    #[arg(long, env = "TOOLGATE_URL", default_value = "http://127.0.0.1:8787")]
    url: String,
    /// Secret key of the project, or a public key and a user's token joined by a dot
    #[arg(long, value_name = "KEY", env = "TOOLGATE_SECRET_KEY", hide_env_values = true)]
    key: Option<String>,
    /// Agent whose tools are offered [default: the project's `default` agent]
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentName>,
    /// Space in which calls are made [default: one that is made for each call, or for the user]
    #[arg(long, value_name = "ID")]
    space: Option<SpaceId>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Manage the MCP servers whose tools a project uses.
    #[command(subcommand)]
    Servers(Servers),
}

impl Mcp {
    /// Passes messages on until standard input ends, or manages servers.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(Command::Servers(servers)) = self.command {
            return servers.run();
        }
        let gateway = Gateway {
            url: self.address()?,
            key: self.key.filter(|key| !key.is_empty()),
            space: self.space,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(mcp_bridge::run(gateway))?;
        Ok(ExitCode::SUCCESS)
    }

    fn address(&self) -> anyhow::Result<Url> {
        let mut url: Url = self.url.parse().with_context(|| {
            let seen = &self.url;
            format!("{seen:?} is no address, expected one like http://127.0.0.1:8787")
        })?;
        let path: &[&str] = match &self.agent {
            None => &["mcp"],
            Some(agent) => &["mcp", "agents", agent.as_str()],
        };
        url.path_segments_mut()
            .map_err(|()| anyhow::anyhow!("{:?} is no address of a gateway", self.url))?
            .pop_if_empty()
            .extend(path);
        Ok(url)
    }
}
