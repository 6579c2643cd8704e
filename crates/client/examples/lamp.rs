//! A chat whose agent switches a lamp of this program.

use futures_util::StreamExt;
use toolgate_client::{Chunk, Client, JsonSchema, Tool, ToolError};

#[derive(serde::Deserialize, JsonSchema)]
struct Lamp {
    /// Such as "kitchen".
    room: String,
    on: bool,
}

#[tokio::main]
async fn main() -> Result<(), toolgate_client::Error> {
    let client = Client::builder(std::env::var("TOOLGATE_URL").unwrap_or("http://127.0.0.1:8787".into()))
        .key(std::env::var("TOOLGATE_SECRET_KEY").unwrap_or_default())
        .build()?;
    client
        .register_tool(Tool::typed(
            "switch_lamp",
            "Switches a lamp on or off.",
            |lamp: Lamp| async move {
                println!(
                    "\n{} is now {}",
                    lamp.room,
                    if lamp.on { "bright" } else { "dark" }
                );
                Ok::<_, ToolError>("done")
            },
        ))
        .await?;

    let mut chat = client.chat_stream("Use switch_lamp in the \"kitchen\".");
    while let Some(chunk) = chat.next().await {
        if let Chunk::Text(words) = chunk? {
            print!("{words}");
        }
    }
    Ok(())
}
