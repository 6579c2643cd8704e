//! What an OAuth client asks about the doors before it has a token (RFC 9728).

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::HOST;
use http::request::Parts;
use serde::Serialize;
use toolgate_http::problem::Refusal;

use crate::entry::{Door, PATH};
use crate::gate::{Entrance, Gate, public_key};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// Addresses below [`PATH`] that have the same metadata.
const BELOW: [&str; 2] = ["/mcp/agents/", "/mcp/servers/"];

/// The metadata of a protected resource.
#[derive(Serialize)]
struct ProtectedResource {
    resource: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

/// The metadata of `/mcp`, and of the addresses of agents and servers below it.
pub(crate) async fn get(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match metadata(&door.mcp.gate, &parts).await {
        Ok(metadata) => Json(metadata).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

async fn metadata(gate: &Gate, parts: &Parts) -> Result<ProtectedResource, Refusal> {
    let of = parts.uri.path().strip_prefix(WELL_KNOWN).unwrap_or_default();
    let of = if of.is_empty() { PATH } else { of };
    if of != PATH && !BELOW.iter().any(|below| of.starts_with(below)) {
        return Err(Refusal::not_found("resource"));
    }
    let key = public_key(&parts.uri)?;
    let authorization_servers = match &key {
        None => gate.entrance.authorization_servers.clone(),
        Some(key) => {
            let issuer = gate.shared.access.issuer_of(key).await?;
            issuer.into_iter().collect()
        }
    };
    Ok(ProtectedResource {
        resource: format!("{}{of}{}", base(&gate.entrance, parts), with_key(key.as_deref())),
        authorization_servers,
        bearer_methods_supported: ["header"],
        resource_name: "Toolgate",
    })
}

/// What a caller without a good key is told to look at.
pub(crate) fn challenge(entrance: &Entrance, parts: &Parts) -> HeaderValue {
    let key = public_key(&parts.uri).ok().flatten();
    let words = format!(
        "Bearer resource_metadata=\"{}{WELL_KNOWN}{}{}\"",
        base(entrance, parts),
        parts.uri.path(),
        with_key(key.as_deref())
    );
    HeaderValue::try_from(words).unwrap_or(HeaderValue::from_static("Bearer"))
}

/// The public key as it stands in an address: metadata and resource must name the same one.
fn with_key(key: Option<&str>) -> String {
    key.map(|key| format!("?key={key}")).unwrap_or_default()
}

/// Where clients reach the gateway: as it is set, or as this request names it.
fn base(entrance: &Entrance, parts: &Parts) -> String {
    if let Some(url) = &entrance.public_url {
        return url.clone();
    }
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.filter(|host| host.parse::<http::uri::Authority>().is_ok());
    format!("http://{}", host.unwrap_or("127.0.0.1:8787"))
}
