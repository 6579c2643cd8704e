//! MCP servers for tests. [`Fixture`] has everything that the official conformance suite calls, and a few tools more that
//! show what a proxy must not lose: cancellation, structured content, changes of lists. It is written on the SDK's
//! handler, so that it is an independent implementation of the protocol for whatever stands before it.
//!
//! Start with `catalog` (what it lists) and `fixture` (what it does).

mod asking;
mod catalog;
mod changes;
mod fixture;
mod jobs;
mod tools;

use std::sync::Arc;

use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpService, stdio};
use rmcp::{ErrorData, ServiceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::TcpListener;

pub use fixture::Fixture;

/// Protocol revisions that a fixture speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eras {
    /// 2026-07-28 and everything before.
    #[default]
    Both,
    /// 2026-07-28: no handshake, no sessions.
    Modern,
    /// Up to 2025-11-25.
    Legacy,
}

impl Eras {
    fn versions(self) -> &'static [ProtocolVersion] {
        const MODERN: &[ProtocolVersion] = &[ProtocolVersion::V_2026_07_28];
        match self {
            Self::Both => ProtocolVersion::KNOWN_VERSIONS,
            Self::Modern => MODERN,
            Self::Legacy => ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25),
        }
    }
}

/// Serves a fixture at `/mcp` (streamable HTTP) until the future is dropped.
pub async fn serve_http(listener: TcpListener, fixture: Fixture) -> std::io::Result<()> {
    let config = StreamableHttpServerConfig::default().with_allowed_origins([
        "http://localhost:*",
        "http://127.0.0.1:*",
        "http://[::1]:*",
    ]);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(fixture.clone()), sessions, config);
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await
}

/// Serves a fixture on standard input and output until the input ends.
pub async fn serve_stdio(fixture: Fixture) -> Result<(), String> {
    let service = fixture.serve(stdio()).await.map_err(|error| error.to_string())?;
    service
        .waiting()
        .await
        .map(drop)
        .map_err(|error| error.to_string())
}

/// What the fixture itself wrote as JSON.
fn made<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("the fixture's own JSON has the form of the protocol")
}

fn text(words: impl Into<String>) -> rmcp::model::CallToolResult {
    made(serde_json::json!({"resultType": "complete", "content": [{"type": "text", "text": words.into()}]}))
}

fn unknown(what: &str, name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no {what} {name:?}"), None)
}
