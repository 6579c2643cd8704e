//! A worker: serves the tool `check_stock` to every run of a space, whoever started it.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate_client::{Client, Connection, JsonSchema, NewSpace, SpaceId, Tool};

const AGENT: &str = "warehouse";

#[derive(Deserialize, JsonSchema)]
struct CheckStock {
    /// Name of the article, such as "teapot".
    article: String,
}

#[derive(Serialize)]
struct Stock {
    article: String,
    count: u32,
    shelf: &'static str,
}

/// A real worker would query its database here.
async fn check_stock(asked: CheckStock) -> anyhow::Result<Stock> {
    let article = asked.article.to_lowercase();
    let (count, shelf) = match &article {
        words if words.contains("teapot") => (12, "A3"),
        words if words.contains("cup") => (140, "B1"),
        _ => anyhow::bail!("there is no article {article:?}, expected \"teapot\" or \"cup\""),
    };
    Ok(Stock {
        article,
        count,
        shelf,
    })
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::var("TOOLGATE_URL").unwrap_or_else(|_| "http://127.0.0.1:8787".into());
    let key = std::env::var("TOOLGATE_SECRET_KEY")
        .context("TOOLGATE_SECRET_KEY is not set, the gateway prints the key at its first start")?;
    let client = Client::builder(&url).key(key).build()?;
    // A worker may start before its gateway.
    let mut is_told = false;
    let waiting = |error: &toolgate_client::Error| {
        if !std::mem::replace(&mut is_told, true) {
            eprintln!("waiting for the gateway: {error}");
        }
    };
    client.ready(waiting).await?;

    let tool = Tool::typed(
        "check_stock",
        "Returns how many of an article are in the warehouse.",
        check_stock,
    );
    // A tool without an `execution` is a client tool: this worker executes it.
    let agent = json!({"instructions": "Answer from check_stock.", "tools": [tool.definition()]});
    client.agents().put(AGENT, &agent).await?;
    client.register_tool(tool).await?;

    let space = match std::env::args().nth(1) {
        Some(id) => id.parse::<SpaceId>()?,
        None => client.spaces().create(&NewSpace::default()).await?.id,
    };
    println!("serving check_stock in {space}; ask with");
    println!("  toolgate chat {AGENT} --space {space}");

    let server = client
        .serve(space)
        .on_result(|result| match &result.outcome {
            Ok(output) => println!("{} gave {output}", result.name),
            Err(error) => println!("{} failed: {}", result.name, error.message()),
        })
        .on_connection(|connection| match connection {
            Connection::Up => eprintln!("connected"),
            Connection::Lost { reason } => eprintln!("waiting for the gateway: {reason}"),
        })
        .start();
    tokio::signal::ctrl_c().await?;
    // Releases the calls that are not done, so that another worker executes them.
    Ok(server.close().await?)
}
