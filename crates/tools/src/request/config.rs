//! The `execution` of a `request` tool: an HTTP call with places for the input.

use http::Method;
use serde_json::Value;
use toolgate_egress::{OWN_HEADERS, USER_TOKEN, carries_credentials};
use toolgate_kernel::members::Members;
use toolgate_kernel::problem::{preview, shown};
use toolgate_kernel::template::Template;

/// An HTTP call. Every text may have places for the input, and secrets by name (`${secret.NAME}`).
#[derive(Debug, PartialEq)]
pub(super) struct HttpCall {
    pub method: Method,
    pub url: Template,
    /// Added to the address.
    pub query: Vec<(String, Template)>,
    pub headers: Vec<(String, Template)>,
    /// JSON whose texts are templates; a text that is one place alone becomes the value itself.
    pub body: Option<Value>,
    /// Where in the answer the result stands, as a JSON pointer.
    pub result: Option<String>,
    /// How often it is tried when it fails in a way that may pass.
    pub attempts: u32,
    /// Most bytes of an answer.
    pub bytes_max: usize,
}

impl HttpCall {
    /// Whether it passes the token of the user on.
    pub fn passes_user_token(&self) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|(_, value)| value.source().contains(USER_TOKEN))
    }
}

const MEMBERS: [&str; 8] = [
    "method", "url", "query", "headers", "body", "result", "attempts", "maxBytes",
];
const METHODS: [(&str, &Method); 6] = [
    ("GET", &Method::GET),
    ("HEAD", &Method::HEAD),
    ("POST", &Method::POST),
    ("PUT", &Method::PUT),
    ("PATCH", &Method::PATCH),
    ("DELETE", &Method::DELETE),
];
const URL_CHARS_MAX: usize = 8_192;
const VALUE_CHARS_MAX: usize = 8_192;
/// Most headers, and most query parameters.
const PAIRS_MAX: usize = 64;
const ATTEMPTS_MAX: u32 = 5;
const ATTEMPTS: u32 = 3;
const BYTES_MAX: usize = 32 << 20;
const BYTES: usize = 1 << 20;

pub(super) fn read(tool: &Members<'_>) -> Option<HttpCall> {
    if tool.get("execution").is_none() {
        tool.lacks("expected \"execution\": {\"url\": address}");
    }
    let call = tool.section("execution", &MEMBERS)?;
    if call.get("url").is_none() {
        call.lacks("expected the \"url\" to ask");
    }
    let url = call.text("url", URL_CHARS_MAX);
    if let Some(url) = url.filter(|url| !url.starts_with("https://") && !url.starts_with("http://")) {
        let words = "expected an address that begins with https:// or http://";
        call.wrong("url", format!("{words}, got {}", preview(url)));
    }
    if let Some(words) = url.and_then(host_problem) {
        call.wrong("url", words);
    }
    let result = call.text("result", VALUE_CHARS_MAX);
    if let Some(pointer) = result.filter(|pointer| !pointer.starts_with('/')) {
        let words = "expected a JSON pointer such as \"/data/0/name\"";
        call.wrong("result", format!("{words}, got {}", preview(pointer)));
    }
    let headers = pairs(&call, "headers");
    for member in ["url", "query", "body"] {
        if call
            .get(member)
            .is_some_and(|value| value.to_string().contains(USER_TOKEN))
        {
            let words =
                format!("{USER_TOKEN} can only stand in a header, because addresses and bodies are logged");
            call.wrong(member, words);
        }
    }
    for (name, value) in &headers {
        if carries_credentials(name) && is_literal(value) {
            let words = format!(
                "{name:?} holds a credential that everybody who reads this configuration can read; store it as a \
                 secret and write \"${{secret.NAME}}\" in its place"
            );
            call.wrong_if_new("headers", words);
        }
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte))
        {
            let words = format!(
                "{} is no name of a header; expected one like \"X-Api-Key\"",
                preview(name)
            );
            call.wrong("headers", words);
        }
        if OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            call.wrong(
                "headers",
                format!("{name:?} is set by the gateway itself; leave it out"),
            );
        }
    }
    Some(HttpCall {
        method: call.choice("method", &METHODS).unwrap_or(&Method::GET).clone(),
        url: Template::new(url?),
        query: pairs(&call, "query"),
        headers,
        body: call.get("body").cloned(),
        result: result.map(str::to_owned),
        attempts: call.whole("attempts", 1..=ATTEMPTS_MAX).unwrap_or(ATTEMPTS),
        bytes_max: call.whole("maxBytes", 1..=BYTES_MAX).unwrap_or(BYTES),
    })
}

/// Whether all of a value stands in the configuration: it has no secret by name and no place for the input.
fn is_literal(value: &Template) -> bool {
    let text = value.source();
    !text.trim().is_empty()
        && !text.contains("${secret.")
        && !text.contains(USER_TOKEN)
        && value.paths().next().is_none()
}

/// A value may be one name in front of a dot in the host, so that it cannot choose whom the request goes to.
fn host_problem(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    if host.contains('@') {
        return Some("a user name in the address is not sent; use a header such as \"Authorization\"".into());
    }
    let open = host.split("}}").skip(1).any(|after| !after.starts_with('.'));
    open.then(|| {
        let words = "a place in the host can only be one name in front of a dot, as in \"https://{{region}}.example.com/\"";
        format!("{words}, got {}", preview(url))
    })
}

/// Names with texts; numbers and truth values count as texts.
fn pairs(call: &Members<'_>, member: &str) -> Vec<(String, Template)> {
    let map = match call.get(member) {
        None => return Vec::new(),
        Some(Value::Object(map)) if map.len() <= PAIRS_MAX => map,
        Some(Value::Object(map)) => {
            call.wrong(
                member,
                format!("{} entries; at most {PAIRS_MAX} are allowed", map.len()),
            );
            return Vec::new();
        }
        Some(other) => {
            call.wrong(member, format!("expected an object, got {}", shown(other)));
            return Vec::new();
        }
    };
    let mut pairs = Vec::with_capacity(map.len());
    for (name, value) in map {
        let text = match value {
            Value::String(text) if text.len() <= VALUE_CHARS_MAX => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => {
                let words = format!("expected a text of at most {VALUE_CHARS_MAX} characters for {name:?}");
                call.wrong(member, words);
                continue;
            }
        };
        pairs.push((name.clone(), Template::new(text)));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_credential_is_told_from_a_named_one() {
        for value in ["Bearer abc", "abc", "$secret.A", "{{"] {
            assert!(is_literal(&Template::new(value)), "{value}");
        }
        for value in [
            "Bearer ${secret.TOKEN}",
            "Bearer {{token}}",
            "",
            "a=${secret.A}; b=1",
        ] {
            assert!(!is_literal(&Template::new(value)), "{value}");
        }
    }

    #[test]
    fn a_value_cannot_be_the_end_of_a_host() {
        for url in [
            "https://a.example/{{x}}",
            "https://{{x}}.a.example/",
            "http://a?q={{x}}",
            "https://{{x}}.b-{{y}}.c",
        ] {
            assert_eq!(host_problem(url), None, "{url}");
        }
        for url in [
            "https://{{x}}/",
            "https://a.example{{x}}/",
            "https://a:{{port}}/",
            "https://{{x}}",
            "https://u@a/",
        ] {
            assert!(host_problem(url).is_some(), "{url}");
        }
    }
}
