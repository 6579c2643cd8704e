//! Headers of the newer era: checked against the body of a client's request, made anew for the server.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use toolgate_mcp::link::message::{Outcome, Request};

use super::era::{HEADER_MISMATCH, MODERN};

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAM: &str = "mcp-param-";
/// Around a value that cannot stand in a header as it is.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// A parameter of a tool that also stands in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeaderParam {
    /// Where it is in the arguments: names of members.
    path: Vec<String>,
    header: HeaderName,
}

/// The text of a header, without the spaces around it.
pub(super) fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::trim)
}

/// Checks `Mcp-Method` and `Mcp-Name` against the body.
pub(super) fn check(headers: &HeaderMap, request: &Request) -> Result<(), Outcome> {
    let method = text(headers, &METHOD);
    if method != Some(&request.method) {
        return Err(mismatch("Mcp-Method", method, &request.method));
    }
    let Some(name) = name(request) else { return Ok(()) };
    let shown = text(headers, &NAME);
    match shown.map(decoded) {
        Some(Some(shown)) if shown == name => Ok(()),
        _ => Err(mismatch("Mcp-Name", shown, &name)),
    }
}

/// Checks `Mcp-Param-*` against the arguments of a call.
pub(super) fn check_params(
    headers: &HeaderMap,
    params: &[HeaderParam],
    arguments: &Value,
) -> Result<(), Outcome> {
    for param in params {
        let shown = text(headers, &param.header);
        let given = param.value(arguments);
        let fits = match (&given, shown) {
            (None, None) => true,
            (Some(given), Some(shown)) => decoded(shown).as_deref() == Some(given.as_str()),
            _ => false,
        };
        if !fits {
            let given = given.as_deref().unwrap_or("nothing");
            return Err(mismatch(param.header.as_str(), shown, given));
        }
    }
    Ok(())
}

/// Headers of a request to a server of the newer era.
pub(super) fn made(request: &Request, params: &[HeaderParam], arguments: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(VERSION, HeaderValue::from_static(MODERN));
    headers.insert(METHOD, encoded(&request.method));
    if let Some(name) = name(request) {
        headers.insert(NAME, encoded(&name));
    }
    for param in params {
        if let Some(value) = param.value(arguments) {
            headers.insert(param.header.clone(), encoded(&value));
        }
    }
    headers
}

/// Parameters of a schema that also stand in headers: those that `x-mcp-header` names.
pub(super) fn params_of(schema: &Value) -> Vec<HeaderParam> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found);
    found
}

/// Deepest object in which a parameter that stands in a header is looked for.
const DEPTH_MAX: usize = 8;

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<HeaderParam>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, property) in properties {
        path.push(name.clone());
        let header = property.get("x-mcp-header").and_then(Value::as_str);
        let header = header.and_then(|header| format!("{PARAM}{header}").to_ascii_lowercase().parse().ok());
        if let Some(header) = header {
            found.push(HeaderParam {
                path: path.clone(),
                header,
            });
        }
        if path.len() < DEPTH_MAX {
            collect(property, path, found);
        }
        path.pop();
    }
}

impl HeaderParam {
    /// Its value in the arguments as text; none for one that is not given, or is null.
    fn value(&self, arguments: &Value) -> Option<String> {
        let value = self
            .path
            .iter()
            .try_fold(arguments, |value, name| value.get(name))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(bool) => Some(bool.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// What `Mcp-Name` says of a request.
fn name(request: &Request) -> Option<String> {
    match request.method.as_str() {
        "tools/call" | "prompts/get" => request.param("name"),
        "resources/read" => request.param("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => request.param("taskId"),
        _ => None,
    }
}

/// A value as it stands in a header.
fn encoded(value: &str) -> HeaderValue {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte);
    let is_plain = value.bytes().all(plain) && value.trim() == value && !value.starts_with(ENCODED.0);
    let text = match is_plain {
        true => value.to_owned(),
        false => format!("{}{}{}", ENCODED.0, STANDARD.encode(value), ENCODED.1),
    };
    HeaderValue::try_from(text).expect("printable ASCII is a header")
}

/// The value that a header means; none when it is encoded badly.
fn decoded(shown: &str) -> Option<String> {
    let inner = shown
        .strip_prefix(ENCODED.0)
        .and_then(|rest| rest.strip_suffix(ENCODED.1));
    match inner {
        None => Some(shown.to_owned()),
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
    }
}

fn mismatch(header: &str, shown: Option<&str>, expected: &str) -> Outcome {
    let shown = shown.map_or("is missing".to_owned(), |shown| format!("says {shown:?}"));
    let words = format!("the header {header} {shown}, the body says {expected:?}");
    Outcome::error(HEADER_MISMATCH, words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_survives_its_header() {
        for value in ["plain", "with space", " edge", "grün", "=?base64?eA==?=", ""] {
            let header = encoded(value);
            assert_eq!(
                decoded(header.to_str().unwrap().trim()).as_deref(),
                Some(value),
                "{value:?}"
            );
        }
        assert_eq!(decoded("=?base64?SGVsbG8?="), None);
        assert_eq!(decoded("=?base64?SGVsbG8=").as_deref(), Some("=?base64?SGVsbG8="));
    }

    #[test]
    fn parameters_in_headers_are_compared_with_the_arguments() {
        let schema = json!({"properties": {"region": {"x-mcp-header": "Region"}, "at": {"properties": {"n": {"x-mcp-header": "N"}}}}});
        let params = params_of(&schema);
        let arguments = json!({"region": "eu", "at": {"n": 5}});
        let mut headers = HeaderMap::new();
        headers.insert("mcp-param-region", "eu".parse().unwrap());
        assert!(check_params(&headers, &params, &arguments).is_err());
        headers.insert("mcp-param-n", "5".parse().unwrap());
        assert!(check_params(&headers, &params, &arguments).is_ok());
        assert!(check_params(&headers, &params, &json!({"region": "us", "at": {"n": 5}})).is_err());
    }
}
