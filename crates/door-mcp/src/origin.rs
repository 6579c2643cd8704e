//! Which hosts and origins a request may name. A page that somebody reads can make its own name lead to this machine and
//! post here in their name; a client that is no browser sends no origin.

use std::net::IpAddr;

use http::Uri;
use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use toolgate_http::problem::Refusal;

use crate::Mcp;

/// Fails for a host or an origin that is not allowed: loopback always is, others by `http.hosts` and `http.origins`.
pub(crate) fn check(mcp: &Mcp, parts: &Parts) -> Result<(), Refusal> {
    let text = |name| {
        parts
            .headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let host = text(HOST).and_then(|host| host.parse::<Authority>().ok());
    let host = host.as_ref().or_else(|| parts.uri.authority());
    if !mcp.hosts.is_empty() && !host.is_some_and(|host| is_loopback(host) || names(&mcp.hosts, host)) {
        return Err(Refusal::forbidden(
            "the gateway does not answer to this host; see http.hosts",
        ));
    }
    let Some(origin) = text(ORIGIN) else {
        return Ok(());
    };
    let allowed = &mcp.shared.settings.origins;
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
