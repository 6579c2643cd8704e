//! `mcp-fixture`: the conformance fixture as a program.

use clap::{Parser, ValueEnum};
use tokio::net::TcpListener;
use toolgate_testkit_mcp::{Eras, Fixture, serve_http, serve_stdio};

/// An MCP server with everything that the conformance suite calls.
#[derive(Parser)]
struct Arguments {
    /// Port on 127.0.0.1 to serve `/mcp` at, 0 for a free one; without it, standard input and output.
    #[arg(long)]
    port: Option<u16>,
    /// Protocol revisions that it speaks.
    #[arg(long, value_enum, default_value = "both")]
    era: Era,
}

#[derive(Clone, Copy, ValueEnum)]
enum Era {
    Both,
    Modern,
    Legacy,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let fixture = Fixture::new(match arguments.era {
        Era::Both => Eras::Both,
        Era::Modern => Eras::Modern,
        Era::Legacy => Eras::Legacy,
    });
    let Some(port) = arguments.port else {
        return Ok(serve_stdio(fixture).await?);
    };
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    // For the script that starts it.
    println!("http://{}/mcp", listener.local_addr()?);
    Ok(serve_http(listener, fixture).await?)
}
