//! What an OAuth client asks about the door before it has a token (RFC 9728).

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::HOST;
use http::request::Parts;
use serde::Serialize;
use toolgate_http::problem::Refusal;

use crate::Mcp;
use crate::entry::{Door, PATH};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The metadata of a protected resource.
#[derive(Serialize)]
struct ProtectedResource {
    resource: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

/// The metadata of `/mcp`, and of the agents' addresses below it.
pub(crate) async fn get(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let of = parts.uri.path().strip_prefix(WELL_KNOWN).unwrap_or_default();
    let of = if of.is_empty() { PATH } else { of };
    if of != PATH && !of.starts_with("/mcp/agents/") {
        return Refusal::not_found("resource").into_response();
    }
    let metadata = ProtectedResource {
        resource: format!("{}{of}", base(&door.mcp, &parts)),
        authorization_servers: door.mcp.authorization_servers.clone(),
        bearer_methods_supported: ["header"],
        resource_name: "Toolgate",
    };
    Json(metadata).into_response()
}

/// What a caller without a good key is told to look at.
pub(crate) fn challenge(mcp: &Mcp, parts: &Parts) -> HeaderValue {
    let words = format!(
        "Bearer resource_metadata=\"{}{WELL_KNOWN}{}\"",
        base(mcp, parts),
        parts.uri.path()
    );
    HeaderValue::try_from(words).unwrap_or(HeaderValue::from_static("Bearer"))
}

/// Where clients reach the gateway: as it is set, or as this request names it.
fn base(mcp: &Mcp, parts: &Parts) -> String {
    if let Some(url) = &mcp.public_url {
        return url.clone();
    }
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.filter(|host| host.parse::<http::uri::Authority>().is_ok());
    format!("http://{}", host.unwrap_or("127.0.0.1:8787"))
}
