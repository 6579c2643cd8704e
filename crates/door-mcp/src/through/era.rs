//! The two eras of the protocol: with sessions, up to 2025-11-25, and without, from 2026-07-28. What has to be added to a
//! result, or taken from it, on the way from one to the other.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate_mcp::link::message::{Members, Outcome};

/// The revision of the newer era.
pub(super) const MODERN: &str = "2026-07-28";
/// The newest revision of the older era.
pub(super) const LEGACY: &str = "2025-11-25";
/// All revisions of the older era that are spoken.
const LEGACY_ALL: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

pub(super) const META: &str = "_meta";
pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
pub(super) const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
pub(super) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
pub(super) const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

pub(super) const PARSE_ERROR: i64 = -32_700;
pub(super) const INVALID_REQUEST: i64 = -32_600;
pub(super) const METHOD_NOT_FOUND: i64 = -32_601;
pub(super) const INVALID_PARAMS: i64 = -32_602;
pub(super) const INTERNAL: i64 = -32_603;
pub(super) const HEADER_MISMATCH: i64 = -32_020;
pub(super) const MISSING_CAPABILITY: i64 = -32_021;
pub(super) const UNSUPPORTED_VERSION: i64 = -32_022;
/// What the older era says when a resource is not there.
const RESOURCE_NOT_FOUND: i64 = -32_002;

/// Methods that the newer era has removed. They would mean something else to a server that speaks both.
pub(super) const REMOVED: [&str; 8] = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "notifications/initialized",
    "notifications/roots/list_changed",
    "notifications/elicitation/complete",
];

/// Whether a revision, as it is written, belongs to the newer era.
pub(super) fn is_modern(version: &str) -> bool {
    // Revisions are dates: they are in the order of their texts.
    version >= MODERN
}

/// Revisions that a client of either era may choose from.
pub(super) fn spoken() -> Vec<&'static str> {
    [MODERN].into_iter().chain(LEGACY_ALL).collect()
}

/// The revision that a session speaks whose client wants `wanted`.
pub(super) fn negotiated(wanted: Option<&str>) -> &'static str {
    let known = LEGACY_ALL.into_iter().find(|known| Some(*known) == wanted);
    known.unwrap_or(LEGACY)
}

/// The gateway, as it names itself to servers.
pub(super) fn gateway() -> Value {
    json!({"name": "toolgate", "version": env!("CARGO_PKG_VERSION")})
}

/// `_meta` of a request to a server of the newer era: the client's own entries, and the protocol's for this hop.
pub(super) fn modern_meta(given: Option<Members>, capabilities: &RawValue) -> Members {
    let mut meta = given.unwrap_or_default();
    meta.set(VERSION_KEY, MODERN);
    meta.set(CLIENT_KEY, gateway());
    meta.set(CAPABILITIES_KEY, capabilities);
    meta
}

/// Capabilities of a client of the newer era for a server of the older one. Extensions are agreed on with each request, in
/// words that a session does not have.
pub(super) fn legacy_capabilities(capabilities: &RawValue) -> Box<RawValue> {
    let mut lowered = Members::of(capabilities).unwrap_or_default();
    lowered.remove("extensions");
    lowered.raw()
}

/// `_meta` of a request to a server of the older era; none when nothing is left.
pub(super) fn legacy_meta(given: Option<Members>) -> Option<Members> {
    let mut meta = given?;
    meta.retain(|name| ![VERSION_KEY, CLIENT_KEY, CAPABILITIES_KEY, LOG_LEVEL_KEY].contains(&name));
    (!meta.is_empty()).then_some(meta)
}

/// A result of the older era for a client of the newer one.
pub(super) fn raised(method: &str, outcome: Outcome) -> Outcome {
    let result = match outcome {
        Outcome::Result(result) => result,
        error if error.code() == Some(RESOURCE_NOT_FOUND) => return recoded(error, INVALID_PARAMS),
        error => return error,
    };
    let Some(mut members) = Members::of(&result) else {
        return Outcome::Result(result);
    };
    if members.get("resultType").is_none() {
        members.set("resultType", "complete");
    }
    if is_cacheable(method) {
        // The server has not said for how long: not at all.
        if members.get("ttlMs").is_none() {
            members.set("ttlMs", 0);
        }
        if members.get("cacheScope").is_none() {
            members.set("cacheScope", "private");
        }
    }
    Outcome::Result(members.raw())
}

/// A result of the newer era for a client of the older one.
pub(super) fn lowered(method: &str, outcome: Outcome) -> Outcome {
    let Outcome::Result(result) = outcome else {
        return outcome;
    };
    let Some(mut members) = Members::of(&result) else {
        return Outcome::Result(result);
    };
    members.remove("resultType");
    if is_cacheable(method) {
        members.remove("ttlMs");
        members.remove("cacheScope");
    }
    if let Some(mut meta) = members.object(META)
        && meta.remove(SERVER_KEY).is_some()
    {
        match meta.is_empty() {
            true => drop(members.remove(META)),
            false => members.set(META, meta),
        }
    }
    Outcome::Result(members.raw())
}

fn recoded(error: Outcome, code: i64) -> Outcome {
    let Outcome::Error(error) = error else {
        return error;
    };
    let Some(mut members) = Members::of(&error) else {
        return Outcome::Error(error);
    };
    members.set("code", code);
    Outcome::Error(members.raw())
}

fn is_cacheable(method: &str) -> bool {
    [
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ]
    .contains(&method)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(outcome: &Outcome) -> &str {
        match outcome {
            Outcome::Result(raw) | Outcome::Error(raw) => raw.get(),
        }
    }

    fn result(text: &str) -> Outcome {
        Outcome::Result(RawValue::from_string(text.into()).unwrap())
    }

    #[test]
    fn a_result_gains_what_the_newer_era_requires_and_nothing_else() {
        let call = raised(
            "tools/call",
            result(r#"{"z":1.50,"content":[],"own":{"b":1,"a":2}}"#),
        );
        assert_eq!(
            text(&call),
            r#"{"z":1.50,"content":[],"own":{"b":1,"a":2},"resultType":"complete"}"#
        );
        let list = raised("tools/list", result(r#"{"tools":[]}"#));
        assert_eq!(
            text(&list),
            r#"{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#
        );
    }

    #[test]
    fn a_result_loses_what_the_older_era_does_not_know_and_nothing_else() {
        let list = r#"{"resultType":"complete","tools":[],"ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{},"k":1}}"#;
        assert_eq!(
            text(&lowered("tools/list", result(list))),
            r#"{"tools":[],"_meta":{"k":1}}"#
        );
        // A tool may have a member of that name.
        let call = lowered(
            "tools/call",
            result(r#"{"resultType":"complete","content":[],"ttlMs":5}"#),
        );
        assert_eq!(text(&call), r#"{"content":[],"ttlMs":5}"#);
    }

    #[test]
    fn a_missing_resource_has_the_code_of_the_era() {
        let missing = Outcome::error(RESOURCE_NOT_FOUND, "no");
        assert_eq!(raised("resources/read", missing).code(), Some(INVALID_PARAMS));
    }
}
