//! The servers as child processes: started on a free port, ended when dropped.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::Options;
use crate::http::Connection;
use crate::process;
use crate::protocol::{AGENT, KEY, Protocol, WINDOWED_AGENT, agent_config};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const START_POLL: Duration = Duration::from_millis(20);

/// The name of the MCP server in the gateway's settings.
pub const UPSTREAM: &str = "upstream";
/// More calls at once than the bench makes.
const UPSTREAM_CALLS: usize = 64;

/// The bench is one client in a hurry; everything else stays as it comes.
pub const GATEWAY_SETTINGS: [(&str, &str); 3] = [
    ("TOOLGATE_HTTP_RATE_PER_SECOND", "1000000"),
    ("TOOLGATE_HTTP_RATE_BURST", "1000000"),
    ("TOOLGATE_LOG_LEVEL", "warn"),
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
pub enum Kind {
    Gateway,
    /// Another build of the gateway, to see what a change costs.
    Baseline,
    Relay,
    Aisdk,
}

impl Kind {
    pub fn title(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Baseline => "baseline",
            Self::Relay => "relay",
            Self::Aisdk => "AI SDK",
        }
    }
    pub fn protocol(self) -> Protocol {
        match self {
            Self::Gateway | Self::Baseline => Protocol::Native,
            Self::Relay => Protocol::Completions,
            Self::Aisdk => Protocol::UiMessages,
        }
    }
}

/// A server under measurement.
pub struct Server {
    pub kind: Kind,
    pub process: Running,
    /// Where a gateway keeps its data.
    pub data: Option<PathBuf>,
}

impl Server {
    /// Starts a server with an empty store in front of the model at `model`. With `tools`, the address of an MCP
    /// server, the agent's `echo` is that server's.
    pub async fn start(
        kind: Kind,
        options: &Options,
        model: &str,
        tools: Option<&str>,
    ) -> anyhow::Result<Self> {
        let address = free_address()?;
        let mut folder = None;
        let mut command = match kind {
            Kind::Gateway | Kind::Baseline => {
                let binary = match kind {
                    Kind::Baseline => options.baseline.as_ref().context("--baseline is missing")?,
                    _ => &options.gateway,
                };
                let data = options.work.join(format!("data-{}", address.port()));
                fs::create_dir_all(&data)?;
                let settings = data.with_extension("toml");
                fs::write(&settings, tools.map_or_else(String::new, upstream_settings))?;
                let mut command = Command::new(binary);
                command.arg("serve").arg("--data").arg(&data);
                folder = Some(data);
                command.arg("--config").arg(settings);
                command.args(["--listen", &address.to_string()]);
                command.envs(GATEWAY_SETTINGS).env("TOOLGATE_SECRET_KEY", KEY);
                command
            }
            Kind::Relay => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["relay", &address.to_string(), model]);
                command
            }
            Kind::Aisdk => {
                let mut command = Command::new(&options.node);
                command.env("NODE_ENV", "production").arg(&options.aisdk);
                command.args([&address.port().to_string(), model]).args(tools);
                command
            }
        };
        let process = Running::start(&mut command, address, kind.title(), "/healthz", options).await?;
        if kind.protocol() == Protocol::Native {
            let mut connection = Connection::new(address, &format!("authorization: Bearer {KEY}\r\n"));
            let upstream = tools.map(|_| UPSTREAM);
            if upstream.is_some() {
                // Its tools are listed before an agent asks for them.
                connection
                    .json("POST", &format!("/v1/mcp/servers/{UPSTREAM}/test"), "{}")
                    .await?;
            }
            for name in [AGENT, WINDOWED_AGENT] {
                connection
                    .json(
                        "PUT",
                        &format!("/v1/agents/{name}"),
                        &agent_config(name, model, upstream),
                    )
                    .await?;
            }
        }
        Ok(Self {
            kind,
            process,
            data: folder,
        })
    }
}

/// A child process that answers at an address.
pub struct Running {
    child: Child,
    pub address: SocketAddr,
}

impl Running {
    pub async fn stub(options: &Options) -> anyhow::Result<Self> {
        Self::own("stub", options).await
    }

    /// The MCP server.
    pub async fn echo(options: &Options) -> anyhow::Result<Self> {
        Self::own("echo", options).await
    }

    /// A server that is a command of the bench itself.
    async fn own(name: &str, options: &Options) -> anyhow::Result<Self> {
        let address = free_address()?;
        let mut command = Command::new(std::env::current_exe()?);
        let command = command.args([name, &address.to_string()]);
        Self::start(command, address, name, "/healthz", options).await
    }

    /// Starts a server and waits until it answers at the path `health`.
    pub async fn start(
        command: &mut Command,
        address: SocketAddr,
        name: &str,
        health: &str,
        options: &Options,
    ) -> anyhow::Result<Self> {
        let path = options.work.join(format!("{name}.log"));
        let log = File::create(&path)?;
        let mut running = Self::spawned(command.stdout(log.try_clone()?).stderr(log), address)?;
        let deadline = Instant::now() + START_TIMEOUT;
        while Connection::new(address, "")
            .exchange("GET", health, "", |_| {})
            .await
            .is_err()
        {
            let alive = running.child.try_wait()?.is_none() && Instant::now() < deadline;
            anyhow::ensure!(
                alive,
                "{name} does not answer at {address}; see {}",
                path.display()
            );
            tokio::time::sleep(START_POLL).await;
        }
        Ok(running)
    }

    /// Starts a process without waiting for it.
    pub fn spawned(command: &mut Command, address: SocketAddr) -> anyhow::Result<Self> {
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.with_context(|| format!("{command:?} cannot be started"))?;
        Ok(Self { child, address })
    }

    pub fn pids(&self) -> Vec<u32> {
        process::tree(self.child.id())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn upstream_settings(url: &str) -> String {
    format!("[mcp.servers.{UPSTREAM}]\nurl = \"{url}\"\nexpose = \"through\"\ncalls = {UPSTREAM_CALLS}\n")
}

pub fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}
