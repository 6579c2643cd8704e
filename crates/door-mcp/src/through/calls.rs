//! Calls of tools that pass the proxy: checked before, counted and logged after. Never with their inputs.

use std::sync::Arc;
use std::time::Instant;

use axum::http::HeaderMap;
use serde_json::{Value, json};
use toolgate_mcp::link::LinkError;
use toolgate_mcp::link::message::{Members, Outcome, Request};

use super::era::{INTERNAL, INVALID_PARAMS};
use super::headers::{self, HeaderParam};
use super::reply::Era;
use super::upstream::{LeaseError, Lister, Upstream};

/// A call that may go on.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) header_params: Vec<HeaderParam>,
    pub(super) arguments: Value,
}

/// Whether a request is a call of a tool.
pub(super) fn is_call(request: &Request) -> bool {
    request.method == "tools/call"
}

/// Checks a call: the tool is listed and not held back, and the arguments fit. `shown` are the headers of a client of the
/// newer era. Other requests pass.
pub(super) async fn check(
    upstream: &Upstream,
    request: &Request,
    lister: Lister<'_>,
    shown: Option<&HeaderMap>,
    era: Era,
) -> Result<Checked, Outcome> {
    if !is_call(request) {
        return Ok(Checked::default());
    }
    let name: String = request
        .param("name")
        .ok_or_else(|| Outcome::error(INVALID_PARAMS, "params.name must be the name of a tool"))?;
    let given = request.params.as_ref().and_then(|params| params.get("arguments"));
    let arguments: Value = match given.map(|given| serde_json::from_str(given.get())) {
        None => json!({}),
        Some(Ok(arguments)) => arguments,
        // What cannot be read here was not checked here.
        Some(Err(error)) => {
            return Err(Outcome::error(
                INVALID_PARAMS,
                format!("params.arguments: {error}"),
            ));
        }
    };
    let tool = upstream
        .tool(&name, &lister)
        .await
        .map_err(|error| unreachable(upstream, &error))?;
    let tool = tool.ok_or_else(|| Outcome::error(INVALID_PARAMS, format!("there is no tool {name:?}")))?;
    if let Some(shown) = shown {
        headers::check_params(shown, &tool.header_params, &arguments)?;
    }
    if let Some(words) = tool.misfit(&arguments) {
        return Err(failed(era, &words));
    }
    Ok(Checked {
        header_params: tool.header_params.clone(),
        arguments,
    })
}

/// The result of a call that was not made, in words for the model.
pub(super) fn failed(era: Era, words: &str) -> Outcome {
    let mut result = json!({"content": [{"type": "text", "text": words}], "isError": true});
    if era == Era::Modern {
        result["resultType"] = "complete".into();
    }
    Outcome::result(result)
}

/// The server cannot be used. What exactly went wrong is for the log: it may name addresses.
pub(super) fn unreachable(upstream: &Upstream, error: &LinkError) -> Outcome {
    tracing::warn!(project = %upstream.project, server = upstream.name, %error, "an exposed MCP server cannot be used");
    let words = match error {
        LinkError::Refused(_) => "the MCP server refused the gateway's credentials",
        LinkError::TooLarge(_) => "the MCP server sent a message that is too large",
        LinkError::NoRoom => {
            "the gateway runs as many programs of MCP servers as it may; end a session, or try again later"
        }
        LinkError::Repeated => return Outcome::error(super::era::INVALID_REQUEST, error.to_string()),
        _ => "the MCP server cannot be reached",
    };
    Outcome::error(INTERNAL, words)
}

/// There is no connection for another request.
pub(super) fn no_lease(upstream: &Upstream, error: &LeaseError) -> Outcome {
    match error {
        LeaseError::TooMany(max) => {
            let words =
                format!("{max} requests to this server are under way already, which is the most at once");
            Outcome::error(INTERNAL, words)
        }
        LeaseError::Link(error) => unreachable(upstream, error),
    }
}

/// A call under way. One that is dropped was cancelled.
pub(super) struct Counted {
    upstream: Arc<Upstream>,
    /// None for what is not a call.
    tool: Option<String>,
    began: Instant,
}

impl Counted {
    pub(super) fn begin(upstream: &Arc<Upstream>, request: &Request) -> Self {
        Self {
            upstream: upstream.clone(),
            tool: is_call(request).then(|| request.param("name").unwrap_or_default()),
            began: Instant::now(),
        }
    }

    pub(super) fn end(mut self, outcome: &Outcome) {
        self.count(match outcome {
            Outcome::Error(_) => "error",
            Outcome::Result(result) => {
                let result = Members::of(result).unwrap_or_default();
                match result.read::<String>("resultType").as_deref() {
                    Some("input_required") => "input_required",
                    Some("task") => "task",
                    _ if result.read("isError") == Some(true) => "tool_error",
                    _ => "ok",
                }
            }
        });
    }

    fn count(&mut self, outcome: &'static str) {
        let Some(tool) = self.tool.take() else { return };
        let server = self.upstream.name.clone();
        let project = self.upstream.project.to_string();
        let labels = [
            ("project", project.clone()),
            ("server", server.clone()),
            ("outcome", outcome.to_owned()),
        ];
        metrics::counter!("toolgate_mcp_through_calls_total", &labels).increment(1);
        let elapsed = self.began.elapsed();
        metrics::histogram!("toolgate_mcp_through_call_seconds", "project" => project, "server" => server.clone())
            .record(elapsed);
        tracing::info!(project = %self.upstream.project, server, tool, outcome, ?elapsed, "MCP call passed through");
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.count("cancelled");
    }
}
