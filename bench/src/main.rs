//! The bench: the gateway, a bare relay and the AI SDK in front of one model stub, driven by one load
//! generator, cell by cell in turn, and reported as ratios.
//!
//! `plan` says what is measured, `protocol` how each server is spoken to, `load` how it is driven,
//! `report` what is printed. `stub`, `relay` and `echo` are servers of their own, started as child processes.
//! `mcp` and `nodes` are measurements by themselves: calls of an MCP server's tool, and several nodes on one store.

mod durable;
mod echo;
mod http;
mod load;
mod mcp;
mod nodes;
mod plan;
mod process;
mod protocol;
mod relay;
mod report;
mod server;
mod services;
mod stub;
mod viewers;
mod worst;

use std::net::SocketAddr;
use std::path::PathBuf;

use axum::serve::ListenerExt;
use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Answers chat completions at once, as the last user message says.
    Stub { listen: SocketAddr },
    /// Passes chat completions on to `model`, byte for byte.
    Relay { listen: SocketAddr, model: String },
    /// An MCP server at `/mcp` whose tool answers what it is given.
    Echo { listen: SocketAddr },
    /// Measures the servers side by side.
    Run(Options),
    /// Measures calls of an MCP server's tool: directly, by the gateway, and by agents. Of the choices only
    /// `--passes` and `--seconds` apply.
    Mcp(Options),
    /// Measures one to three nodes on PostgreSQL and Redis beside one on SQLite, Restate and DBOS. Of the choices only
    /// `--passes`, `--seconds`, `--viewers` and `--paused` apply.
    Nodes(Options),
}

/// What is measured, and with what.
#[derive(clap::Args, Clone)]
struct Options {
    /// The gateway to measure, a release build unless the bench is a debug build too.
    #[arg(long)]
    gateway: PathBuf,
    /// Another release build of the gateway, measured beside it: what a change costs.
    #[arg(long)]
    baseline: Option<PathBuf>,
    /// Node, 22 or newer.
    #[arg(long)]
    node: PathBuf,
    /// The AI SDK peer's `server.mjs`, with its packages installed beside it.
    #[arg(long)]
    aisdk: PathBuf,
    /// The folder with Restate's server and the bench's service, for `nodes`.
    #[arg(long)]
    restate: Option<PathBuf>,
    /// Python with DBOS, for `nodes`.
    #[arg(long)]
    dbos: Option<PathBuf>,
    /// How many event streams one node is given, for `nodes`.
    #[arg(long, default_value_t = 10_000)]
    viewers: usize,
    /// Where logs and data go: on a disk, not in memory, or the gateway's syncs cost nothing.
    #[arg(long)]
    work: PathBuf,
    /// Which servers, in this order.
    #[arg(long, value_delimiter = ',', default_value = "gateway,relay,aisdk")]
    servers: Vec<server::Kind>,
    /// How often every cell is measured.
    #[arg(long, default_value_t = 2)]
    passes: u32,
    /// How long a cell starts new runs.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// How many runs are left waiting for their client tool.
    #[arg(long, default_value_t = 10_000)]
    paused: usize,
    /// Only run each scenario once on each server and verify it.
    #[arg(long)]
    check: bool,
}

fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        Command::Stub { listen } => one_thread().block_on(stub::serve(listen)),
        Command::Echo { listen } => one_thread().block_on(echo::serve(listen)),
        Command::Relay { listen, model } => {
            tokio::runtime::Runtime::new()?.block_on(relay::serve(listen, model))
        }
        Command::Nodes(options) => {
            let local = tokio::task::LocalSet::new();
            println!(
                "{}",
                one_thread().block_on(local.run_until(nodes::run(&options)))?
            );
            Ok(())
        }
        Command::Mcp(options) => {
            let local = tokio::task::LocalSet::new();
            println!("{}", one_thread().block_on(local.run_until(mcp::run(&options)))?);
            Ok(())
        }
        Command::Run(mut options) => {
            if options.baseline.is_some() && !options.servers.contains(&server::Kind::Baseline) {
                options.servers.insert(0, server::Kind::Baseline);
            }
            let local = tokio::task::LocalSet::new();
            let findings = one_thread().block_on(local.run_until(plan::run(&options)))?;
            println!("{}", report::render(&findings));
            anyhow::ensure!(
                findings.gateway_is_right(),
                "some runs of the gateway went wrong, see above"
            );
            Ok(())
        }
    }
}

/// Stub and load generator get by with one core each at most, so that the server keeps the rest.
fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made")
}

/// Serves for ever, each write at once.
async fn serve(listen: SocketAddr, router: axum::Router) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind(listen).await?.tap_io(|stream| {
        // Only a delay is at stake; the bench would show it.
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}
