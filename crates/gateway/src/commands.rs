//! The commands of `toolgate`.

mod agent_check;
mod agent_purge;
mod api;
mod health;
mod login;
mod mcp;
mod mcp_servers;
mod offline_source;
pub mod plugin;
mod project;
mod store;
mod tool_check;

pub(crate) use agent_check::warnings_of_folder;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::BoolishValueParser;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use toolgate_tools::readable;
use toolgate_worker::{ConfinedFiles, KEEP_SERVER, KeptLimits, keep};

use crate::chat;
use crate::doors;
use crate::output;
use crate::serve;
use crate::settings::{self, Settings, environment};

/// A durable server for AI agents and their tools: every run is an event log on disk, so it survives crashes, waits for people
/// and browser tabs as long as they take, and streams from any point.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version)]
pub struct Toolgate {
    #[command(subcommand)]
    command: Command,
}

impl Toolgate {
    /// What was typed, completed by the environment; ends the process where that does not fit.
    pub fn of_process() -> Self {
        let mut matches = without_empty_variables(Self::command()).get_matches();
        Self::from_arg_matches_mut(&mut matches)
            .unwrap_or_else(|error| error.format(&mut Self::command()).exit())
    }
}

/// A variable that is set but empty counts as not set, as it does for the settings. `compose.yaml` files write `${X:-}`.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|text| text.is_empty());
    command
        .mut_args(|flag| match flag.get_env().is_some_and(is_empty) {
            true => flag.env(None::<&'static str>),
            false => flag,
        })
        .mut_subcommands(without_empty_variables)
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the gateway.
    Serve(Serve),
    /// Talk to an agent, in the terminal or through a pipe.
    Chat(chat::Chat),
    /// Serve the tools of a running gateway over standard input and output, for MCP clients that start their servers; or
    /// manage the MCP servers whose tools a project uses.
    Mcp(mcp::Mcp),
    /// Make a link that signs a browser in to the console of a running gateway.
    Login(login::Login),
    /// Tell by the exit code whether a running gateway is ready.
    Health(health::Health),
    /// Print every setting with its default, as a file to edit.
    Settings,
    /// Print the OpenAPI document of the HTTP API.
    Openapi,
    /// Check agents, or purge one.
    #[command(subcommand)]
    Agent(Agent),
    /// Make, sign and verify plugin packages, and manage the plugins of a running gateway.
    #[command(subcommand)]
    Plugin(plugin::Plugin),
    /// Manage the projects of a running gateway.
    Project(project::Project),
    /// Check, migrate, back up, restore, export and import what is stored.
    #[command(subcommand)]
    Store(store::Store),
    /// Check tools.
    #[command(subcommand)]
    Tool(Tool),
    /// Parses documents from standard input. Hidden: the gateway starts itself with this command, once per
    /// untrusted document.
    #[command(name = readable::READER.argument, hide = true)]
    ReadDocument,
    /// Runs a program and ends everything that it has started with it. Hidden: the gateway starts itself with this
    /// command, once per MCP server.
    #[command(name = KEEP_SERVER, hide = true)]
    KeepServer(Keep),
    /// Runs code of others from standard input. Hidden: the gateway starts itself with this command.
    #[command(name = toolgate_sandbox::RUN_SCRIPT.argument, hide = true)]
    RunScript {
        /// Leave out a protection, to show that the others hold: seccomp, landlock
        #[arg(long, hide = true)]
        without: Vec<String>,
    },
}

impl Command {
    /// Whether it reads variables of the environment that begin like ours.
    fn reads_environment(&self) -> bool {
        match self {
            Self::Serve(_)
            | Self::Chat(_)
            | Self::Mcp(_)
            | Self::Login(_)
            | Self::Health(_)
            | Self::Agent(_)
            | Self::Plugin(_)
            | Self::Project(_)
            | Self::Store(_)
            | Self::Tool(_) => true,
            Self::Settings
            | Self::Openapi
            | Self::ReadDocument
            | Self::KeepServer(_)
            | Self::RunScript { .. } => false,
        }
    }
}

/// Limits of the processes of a program that is kept.
#[derive(Debug, Args)]
struct Keep {
    #[arg(long)]
    memory_bytes: Option<u64>,
    #[arg(long)]
    cpu_seconds: Option<u64>,
    #[arg(long)]
    files: Option<u64>,
    /// Directories that may be read.
    #[arg(long)]
    read: Vec<PathBuf>,
    /// Directories that may be written.
    #[arg(long)]
    write: Vec<PathBuf>,
    /// Nothing but these may be reached.
    #[arg(long)]
    confined: bool,
    program: OsString,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Keep {
    fn run(self) -> anyhow::Result<ExitCode> {
        let limits = KeptLimits {
            memory_bytes: self.memory_bytes,
            cpu_seconds: self.cpu_seconds,
            files: self.files,
            confined: self.confined.then_some(ConfinedFiles {
                read: self.read,
                write: self.write,
            }),
        };
        keep(&self.program, &self.arguments, limits)
            .with_context(|| format!("{} does not start", self.program.display()))
    }
}

#[derive(Debug, Subcommand)]
enum Agent {
    /// Check agent files and report every error.
    Check(agent_check::Check),
    /// Delete an agent of a running gateway, also a retired one, with all that it has stored.
    Purge(agent_purge::Purge),
}

#[derive(Debug, Subcommand)]
enum Tool {
    /// Check tool definitions and report every error.
    Check(tool_check::Check),
}

#[derive(Debug, Args)]
struct Serve {
    /// Address to listen on [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDR", env = "TOOLGATE_LISTEN")]
    listen: Option<String>,
    /// Data directory; created at the first start [default: ./toolgate-data]
    #[arg(long, value_name = "DIR", env = "TOOLGATE_DATA")]
    data: Option<PathBuf>,
    /// Settings file; `toolgate settings` prints one
    #[arg(long, value_name = "FILE", env = "TOOLGATE_CONFIG")]
    config: Option<PathBuf>,
    /// Folder with agents as files, read at the start and whenever they change
    #[arg(long, value_name = "DIR", env = "TOOLGATE_AGENTS")]
    agents: Option<PathBuf>,
    /// Disable authentication: every request has all rights, for trying out; on loopback only
    #[arg(long, env = "TOOLGATE_NO_AUTH", value_parser = BoolishValueParser::new())]
    no_auth: bool,
    /// Start although the database is damaged or half imported, or missing from a data directory that had one
    #[arg(long)]
    force: bool,
}

/// Runs the command. A command that fails without an error, as a check does, says so by its exit code.
pub fn run(typed: Toolgate) -> anyhow::Result<ExitCode> {
    if typed.command.reads_environment() {
        environment::check_process()?;
    }
    match typed.command {
        Command::Serve(flags) => {
            let mut settings = Settings::of_process(flags.config.as_deref())?;
            let readable =
                |(name, text): (OsString, OsString)| name.into_string().ok().zip(text.into_string().ok());
            settings.add_secrets(std::env::vars_os().filter_map(readable));
            settings.listen = flags.listen.unwrap_or(settings.listen);
            settings.data = flags.data.unwrap_or(settings.data);
            settings.agents = flags.agents.or(settings.agents);
            let entry = match flags.no_auth {
                true => serve::Entry::Open,
                false => serve::Entry::Keys,
            };
            let damage = match flags.force {
                true => serve::Damage::Accepted,
                false => serve::Damage::Refused,
            };
            serve::run(settings, entry, damage)?;
        }
        Command::Chat(flags) => chat::run(flags)?,
        Command::Login(login) => login.run()?,
        Command::Health(health) => return health.run(),
        Command::Settings => {
            output::print(settings::SAMPLE)?;
        }
        Command::Openapi => {
            output::print(&format!("{}\n", doors::openapi()))?;
        }
        Command::Agent(Agent::Check(check)) => return check.run(),
        Command::Agent(Agent::Purge(purge)) => purge.run()?,
        Command::Tool(Tool::Check(check)) => return check.run(),
        Command::Store(store) => return store.run(),
        Command::Plugin(plugin) => return plugin.run(),
        Command::Project(project) => project.run()?,
        Command::ReadDocument => readable::work()?,
        Command::KeepServer(keep) => return keep.run(),
        Command::Mcp(mcp) => return mcp.run(),
        Command::RunScript { without } => toolgate_sandbox::work(&without)?,
    }
    Ok(ExitCode::SUCCESS)
}
