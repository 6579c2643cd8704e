//! The entry that `/mcp` and `/mcp/servers/{name}` share: which hosts and pages may call, who is asking, and where a caller
//! without good credentials is told to look.

use std::net::IpAddr;

use axum::extract::FromRequestParts as _;
use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderName, HeaderValue, StatusCode, Uri};
use toolgate_access::{Principal, keys};
use toolgate_engine::store::KeyKind;
use toolgate_http::Shared;
use toolgate_http::caller::Caller;
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;

use crate::metadata;

/// Carries the public key.
const PUBLIC_KEY: HeaderName = HeaderName::from_static("x-public-key");
/// The public key in an address, for clients that send the token of an authorization server and no header of their own.
const KEY_PARAMETER: &str = "key";
/// Longest public key that is read from an address.
const KEY_BYTES_MAX: usize = 256;
/// Asks proxies not to hold events back.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Where clients reach the gateway, and which of them it answers to.
#[derive(Debug, Clone, Default)]
pub struct Entrance {
    /// Address that clients reach the gateway at; otherwise the one that a request names.
    pub public_url: Option<String>,
    /// Names that the gateway answers to, besides loopback; empty for any, since callers need a key.
    pub hosts: Vec<String>,
    /// Authorization servers that are named to callers whose address has no public key. One with a public key is told of
    /// the issuer of that key's project.
    pub authorization_servers: Vec<String>,
}

/// Decides who comes in.
#[derive(Clone)]
pub(crate) struct Gate {
    pub shared: Shared,
    pub entrance: Entrance,
}

impl Gate {
    /// Who is asking. Hosts and origins that are not allowed are refused before credentials are looked at.
    pub async fn caller(&self, parts: &mut Parts) -> Result<Principal, Refusal> {
        self.check_host_and_origin(parts)?;
        if let Some(key) = public_key(&parts.uri)?
            && !parts.headers.contains_key(PUBLIC_KEY)
            && !shows_a_key(parts)
        {
            let key = HeaderValue::try_from(key).map_err(|_| Refusal::malformed("query key: not a key"))?;
            parts.headers.insert(PUBLIC_KEY, key);
        }
        let Caller(who) = Caller::from_request_parts(parts, &self.shared).await?;
        Ok(who)
    }

    /// The response, with the headers that every response of these doors has.
    pub fn finish(&self, parts: &Parts, answered: Result<Response, Refusal>) -> Response {
        let mut response = answered.unwrap_or_else(|refusal| refusal.into_response());
        if response.status() == StatusCode::UNAUTHORIZED {
            let challenge = metadata::challenge(&self.entrance, parts);
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        if is_stream(&response) {
            let no = HeaderValue::from_static("no");
            response.headers_mut().insert(BUFFERING, no);
        }
        response
    }

    /// Fails for a host or an origin that is not allowed: loopback always is, others by `http.hosts` and `http.origins`. A
    /// page that somebody reads can make its own name lead to this machine and post here in their name; a client that is
    /// no browser sends no origin.
    fn check_host_and_origin(&self, parts: &Parts) -> Result<(), Refusal> {
        let text = |name| {
            let value = parts.headers.get(name);
            value.map(|value| value.to_str().unwrap_or_default())
        };
        let hosts = &self.entrance.hosts;
        let host = text(HOST).and_then(|host| host.parse::<Authority>().ok());
        let host = host.as_ref().or_else(|| parts.uri.authority());
        if !hosts.is_empty() && !host.is_some_and(|host| is_loopback(host) || names(hosts, host)) {
            return Err(Refusal::forbidden(
                "the gateway does not answer to this host; see http.hosts",
            ));
        }
        let Some(origin) = text(ORIGIN) else {
            return Ok(());
        };
        let allowed = &self.shared.settings.origins;
        let parsed = origin.parse::<Uri>().ok();
        let from = parsed.as_ref().and_then(Uri::authority);
        let is_ours = from.is_some_and(|from| is_loopback(from) || host == Some(from));
        match is_ours || allowed.iter().any(|allowed| allowed == "*" || allowed == origin) {
            true => Ok(()),
            false => Err(Refusal::forbidden(
                "pages of this origin may not call here; see http.origins",
            )),
        }
    }
}

/// The public key that an address names.
pub(crate) fn public_key(uri: &Uri) -> Result<Option<String>, Refusal> {
    let query = Query::of(uri)?;
    let Some(key) = query.text(KEY_PARAMETER) else {
        return Ok(None);
    };
    if key.starts_with(keys::prefix(KeyKind::Secret)) {
        return Err(Refusal::unauthenticated(
            "a secret key must never stand in an address",
        ));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match key.len() <= KEY_BYTES_MAX && !key.is_empty() && key.chars().all(is_plain) {
        true => Ok(Some(key.to_owned())),
        false => Err(Refusal::unauthenticated(
            "query key: expected a public key, such as pk_…",
        )),
    }
}

/// Whether the bearer is a key by itself, or has one in it.
fn shows_a_key(parts: &Parts) -> bool {
    let shown = parts.headers.get(AUTHORIZATION);
    let shown = shown.and_then(|shown| shown.to_str().ok()).unwrap_or_default();
    let bearer = shown.split_once(' ').map_or("", |(_, bearer)| bearer.trim());
    [KeyKind::Secret, KeyKind::Public]
        .map(keys::prefix)
        .iter()
        .any(|prefix| bearer.starts_with(prefix))
}

/// Whether one of the names is this host, with any port unless the name has one.
fn names(hosts: &[String], host: &Authority) -> bool {
    hosts
        .iter()
        .filter_map(|named| named.parse::<Authority>().ok())
        .any(|named| {
            let port = named.port_u16();
            named.host().eq_ignore_ascii_case(host.host()) && (port.is_none() || port == host.port_u16())
        })
}

fn is_loopback(authority: &Authority) -> bool {
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let address = name.parse::<IpAddr>();
    address.is_ok_and(|address| address.is_loopback()) || name.eq_ignore_ascii_case("localhost")
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
