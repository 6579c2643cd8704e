//! The headers that say again what stands in a message, for servers and proxies that do not look inside.

use std::collections::HashMap;

use axum::http::{HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Names a session.
pub const SESSION: &str = "mcp-session-id";
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Member of a message's `_meta` with the revision that it is written in.
const VERSION_META: &str = "io.modelcontextprotocol/protocolVersion";
/// Most tools whose parameters are remembered.
const TOOLS_MAX: usize = 4096;

/// The headers of one message.
#[derive(Default)]
pub struct Headers(Vec<(HeaderName, HeaderValue)>);

impl Headers {
    /// Those of this message: a modern one names its revision itself, another has that of its session.
    pub fn of(message: &Value, session: Option<&str>) -> Self {
        let mut headers = Self::default();
        let params = &message["params"];
        let Some(version) = params["_meta"][VERSION_META].as_str() else {
            if let Some(version) = session {
                headers.put(VERSION, version);
            }
            return headers;
        };
        headers.put(VERSION, version);
        let method = message["method"].as_str().unwrap_or_default();
        headers.put(METHOD, method);
        let name = match method {
            "tools/call" | "prompts/get" => &params["name"],
            "resources/read" => &params["uri"],
            "tasks/get" | "tasks/update" | "tasks/cancel" => &params["taskId"],
            _ => &Value::Null,
        };
        if let Some(name) = name.as_str() {
            headers.put(NAME, name);
        }
        headers
    }

    /// With the arguments that the tool wants as headers too.
    pub fn with_parameters(mut self, message: &Value, known: &Parameters) -> Self {
        let params = &message["params"];
        let named = known.0.get(params["name"].as_str().unwrap_or_default());
        let is_modern = self.0.iter().any(|(name, _)| *name == METHOD);
        for (argument, header) in named.into_iter().flatten().filter(|_| is_modern) {
            let text = match &params["arguments"][argument] {
                Value::String(text) => text.clone(),
                Value::Null => continue,
                other => other.to_string(),
            };
            self.put(header.clone(), &text);
        }
        self
    }

    /// The headers, in order.
    pub fn into_inner(self) -> Vec<(HeaderName, HeaderValue)> {
        self.0
    }

    fn put(&mut self, name: HeaderName, text: &str) {
        let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text;
        let marked = text.starts_with("=?base64?") && text.ends_with("?=");
        let value = match plain && !marked {
            true => HeaderValue::try_from(text),
            false => HeaderValue::try_from(format!("=?base64?{}?=", STANDARD.encode(text))),
        };
        // Base 64 is ASCII, and so is what is plain.
        self.0.extend(value.ok().map(|value| (name, value)));
    }
}

/// Which arguments of which tools are sent as headers too: those with `x-mcp-header` in a list of tools that passed.
#[derive(Default)]
pub struct Parameters(HashMap<String, Vec<(String, HeaderName)>>);

impl Parameters {
    /// Takes a list of tools.
    pub fn learn(&mut self, tools: &Value) {
        for tool in tools.as_array().into_iter().flatten() {
            let Some(name) = tool["name"].as_str() else {
                continue;
            };
            let properties = tool["inputSchema"]["properties"].as_object();
            let marked = properties.into_iter().flatten().filter_map(|(argument, schema)| {
                let header = format!("mcp-param-{}", schema["x-mcp-header"].as_str()?);
                Some((argument.clone(), header.parse().ok()?))
            });
            let marked: Vec<_> = marked.collect();
            if marked.is_empty() {
                self.0.remove(name);
            } else if self.0.len() < TOOLS_MAX {
                self.0.insert(name.to_owned(), marked);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(message: Value, session: Option<&str>, known: &Parameters) -> Vec<String> {
        let headers = Headers::of(&message, session).with_parameters(&message, known);
        let pairs = headers.into_inner().into_iter();
        pairs
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect()
    }

    #[test]
    fn a_modern_message_says_in_its_headers_what_it_is() {
        let mut known = Parameters::default();
        let properties =
            json!({"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer"}});
        known.learn(&json!([{"name": "küche", "inputSchema": {"properties": properties}}]));
        let meta = json!({VERSION_META: "2026-07-28"});
        let call = json!({
            "method": "tools/call",
            "params": {"name": "küche", "arguments": {"region": "eu", "n": 1}, "_meta": meta},
        });
        assert_eq!(
            told(call, None, &known),
            [
                "mcp-protocol-version: 2026-07-28",
                "mcp-method: tools/call",
                "mcp-name: =?base64?a8O8Y2hl?=",
                "mcp-param-Region: eu".to_lowercase().as_str(),
            ]
        );
    }

    #[test]
    fn a_message_of_a_session_has_its_revision_and_nothing_else() {
        let call = json!({"method": "tools/call", "params": {"name": "a"}});
        let known = Parameters::default();
        assert_eq!(
            told(call.clone(), Some("2025-11-25"), &known),
            ["mcp-protocol-version: 2025-11-25"]
        );
        assert!(told(call, None, &known).is_empty());
    }
}
