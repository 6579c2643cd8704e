//! What the SDK promises without a gateway. With one: `crates/gateway/tests/it/sdk`.

mod hooks;
mod network;
mod plugins;
mod registry;
mod schema;
mod tools;

use toolgate_client::{Client, Definition, Tool, ToolError};

/// A client of a gateway that nobody asks.
pub fn client() -> Client {
    Client::builder("http://127.0.0.1:9")
        .key("sk_none")
        .build()
        .unwrap()
}

/// A tool that says its own name.
pub fn tool(name: &str) -> Tool {
    Tool::new(Definition::new(name, "Says its name."), |call| async move {
        Ok(call.name.into())
    })
}

/// The words of a failure.
pub fn words<T: std::fmt::Debug>(outcome: Result<T, ToolError>) -> String {
    outcome.expect_err("it fails").message().to_owned()
}
