//! Versions in headers: `etag`, and what `if-match` and `if-none-match` say must be there.

use http::HeaderMap;
use http::header::{HeaderValue, IF_MATCH, IF_NONE_MATCH};
use toolgate_engine::workspace::Only;
use toolgate_http::problem::Refusal;

/// The tag of a version.
pub(crate) fn etag(version: u64) -> HeaderValue {
    HeaderValue::try_from(format!("\"{version}\"")).expect("a number is ASCII")
}

/// What the headers say must be there.
pub(crate) fn only(headers: &HeaderMap) -> Result<Only, Refusal> {
    match (headers.get(IF_NONE_MATCH), headers.get(IF_MATCH)) {
        (None, None) => Ok(Only::Always),
        (Some(value), None) if value == "*" => Ok(Only::New),
        (Some(_), None) => Err(Refusal::malformed("if-none-match: only * is understood here")),
        (None, Some(value)) if value == "*" => Ok(Only::Existing),
        (None, Some(value)) => version(value).map(Only::Version).ok_or_else(|| {
            Refusal::malformed("if-match: expected * or the etag of a version, such as \"3\" in quotes")
        }),
        (Some(_), Some(_)) => Err(Refusal::malformed(
            "if-match, if-none-match: nothing can be new and at a version",
        )),
    }
}

fn version(etag: &HeaderValue) -> Option<u64> {
    let text = etag.to_str().ok()?;
    text.strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}
