//! `toolgate chat`: talks to an agent in the terminal or through a pipe, and executes local tools.

mod dialogue;
mod local;
mod piped;
mod screen;
mod terminal;
mod turn;

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::Args;
use toolgate_client::plugins::package::CuratorKeys;
use toolgate_client::{ChatRequest, Client, Error, SpaceId};

use crate::commands::plugin::read_curators;

/// The gateway that `toolgate serve` starts.
const DEFAULT_URL: &str = "http://127.0.0.1:8787";

/// Talk to an agent, in the terminal or through a pipe.
#[derive(Debug, Args)]
pub struct Chat {
    /// Name of the agent [default: the space's agent, or `default`]
    agent: Option<String>,
    /// URL of the gateway
    #[arg(
        long,
        value_name = "URL",
        env = "TOOLGATE_URL",
        default_value = DEFAULT_URL
    )]
    url: String,
    /// Secret key, as the gateway printed it at its first start
    #[arg(long, value_name = "KEY", env = "TOOLGATE_SECRET_KEY", hide_env_values = true)]
    key: Option<String>,
    /// Continue the conversation of this space
    #[arg(long, value_name = "ID")]
    space: Option<SpaceId>,
    /// Add local tools: `fs:DIR`, `fs-read:DIR`, `sqlite:FILE`, `package:FILE` or `time`; may be given several times
    #[arg(long = "plugin", value_name = "PLUGIN")]
    plugins: Vec<local::PluginFlag>,
    /// JSON file with the public keys of curators, for packages that are signed: `{"CURATOR": PEM}`
    #[arg(long, value_name = "FILE")]
    curators: Option<PathBuf>,
    /// Add the tools of an MCP server: a command with its arguments, or a URL; may be given several times
    #[arg(long = "mcp", value_name = "COMMAND|URL")]
    servers: Vec<local::McpFlag>,
    /// Use only these of the local tools
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    tools: Vec<String>,
    /// Run local tools without asking
    #[arg(long, short)]
    yes: bool,
    /// Print every event as a line of JSON; the message is read from standard input
    #[arg(long)]
    json: bool,
    /// Through a pipe: keep waiting for an approval, or for another client that has a tool
    #[arg(long)]
    wait: bool,
    /// Steps with local tool calls per message; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 20)]
    max_tool_rounds: u32,
}

/// Chats until the person leaves; without a terminal, answers the message on standard input.
pub fn run(flags: Chat) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(talk(flags));
    // In the background: a blocked read of the terminal must not keep the program from ending.
    runtime.shutdown_background();
    ended
}

async fn talk(flags: Chat) -> anyhow::Result<()> {
    let mut builder = Client::builder(&flags.url);
    if let Some(key) = &flags.key {
        builder = builder.key(key);
    }
    let client = builder.build()?;
    let curators = match &flags.curators {
        Some(path) => read_curators(path)?,
        None => CuratorKeys::default(),
    };
    let local = (&flags.plugins[..], &flags.servers[..]);
    let warnings = local::register_local_tools(&client, local, &flags.tools, &curators).await?;
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
    let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !flags.json;
    let talked = match interactive {
        true => dialogue::run(&client, &flags).await,
        false => piped::run(&client, &flags).await,
    };
    // Removed one by one, so that the child processes of MCP servers end in order.
    for name in client.plugin_names() {
        if let Err(error) = client.unuse(&name).await {
            eprintln!("warning: {error}");
        }
    }
    talked
}

impl Chat {
    /// The request for a message; in `space` if the conversation has one.
    fn request(&self, message: &str, space: Option<SpaceId>) -> ChatRequest {
        let mut request = ChatRequest::new(message).max_tool_rounds(self.max_tool_rounds);
        if let Some(agent) = &self.agent {
            request = request.agent(agent);
        }
        if let Some(space) = space {
            request = request.space(space);
        }
        request
    }

    /// The error with advice.
    fn explained(&self, error: Error) -> anyhow::Error {
        let advice = match error.code() {
            "UNREACHABLE" => format!("no gateway answers at {}, start one with `toolgate serve` or name another with --url", self.url),
            "UNAUTHENTICATED" if self.key.is_none() => {
                "this gateway wants a key: give it with --key or in TOOLGATE_SECRET_KEY. It was printed at the gateway's \
                 first start and is kept nowhere in the clear; start with TOOLGATE_SECRET_KEY set to choose one, or \
                 with --no-auth to try things out"
                    .into()
            }
            "UNAUTHENTICATED" => "the gateway rejects this key, set TOOLGATE_SECRET_KEY or --key to the one it printed at its first start".into(),
            _ => return anyhow!(error),
        };
        Err::<(), _>(error).context(advice).expect_err("just made")
    }
}
