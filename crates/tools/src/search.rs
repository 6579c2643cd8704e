//! `web_search`: searches with the engine that the operator has configured.

mod gemini;
mod searxng;

use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_egress::{Client, Egress, Request, Response};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::{Action, Secret};
use toolgate_kernel::tool::Retry;
use url::Url;

use crate::outbound::{self, Outbound};
use crate::records::input;
use crate::toolkit::ServerTool;

/// Default of the number of results.
const RESULTS: usize = 5;
const RESULTS_MAX: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Most bytes of an engine's response.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Search engine in the settings.
#[derive(Debug, Clone, Default)]
pub enum Search {
    /// None: the tool fails and says so.
    #[default]
    Nobody,
    /// Gemini, with answers grounded in Google Search.
    Gemini {
        /// API key.
        key: Secret,
        /// Model that answers.
        model: String,
        /// Base address; Google's by default.
        base_url: Option<Url>,
    },
    /// A SearXNG server.
    Searxng {
        /// Base address.
        base_url: Url,
    },
}

/// A result.
#[derive(Debug, PartialEq, Serialize)]
struct Hit {
    title: String,
    url: String,
    snippet: String,
}

/// Results, best first, and the engine's own answer if it gives one.
#[derive(Debug, PartialEq, Default)]
struct Found {
    hits: Vec<Hit>,
    answer: Option<String>,
}

/// A search engine: Gemini, SearXNG, a test.
#[async_trait]
trait SearchEngine: Send + Sync {
    /// Searches for at most `most` results.
    async fn search(&self, query: &str, most: usize) -> Result<Found, CallFailure>;
}

/// Searches the web.
pub(crate) struct WebSearch(pub Outbound);

/// The provider that a project has; none when it has none.
fn engine(search: &Search, egress: &Egress) -> Option<Box<dyn SearchEngine>> {
    match search.clone() {
        Search::Nobody => None,
        Search::Gemini { key, model, base_url } => {
            Some(Box::new(gemini::Gemini::new(key, model, base_url, egress)))
        }
        Search::Searxng { base_url } => Some(Box::new(searxng::Searxng::new(base_url, egress))),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SearchInput {
    query: String,
    max_results: Option<usize>,
}

#[async_trait]
impl ServerTool for WebSearch {
    fn name(&self) -> &'static str {
        "web_search"
    }
    fn action(&self) -> Action {
        Action {
            description: "Search the web. Gives titles, addresses and snippets; read a page with web_fetch."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "What to look for."},
                    "maxResults": {
                        "type": "integer", "minimum": 1, "maximum": RESULTS_MAX,
                        "description": format!("Most results to give. Default: {RESULTS}."),
                    },
                },
                "required": ["query"],
            }),
            timeout: TIMEOUT,
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let SearchInput { query, max_results } = input(given)?;
        let nobody = || {
            CallFailure::unavailable(
                "this gateway has no search engine; its operator can set one in [search]",
            )
        };
        let (world, _) = self.0.of(context).await?;
        let engine = engine(&world.search, &self.0.within(context)).ok_or_else(nobody)?;
        let most = max_results.unwrap_or(RESULTS);
        context.tell("searching");
        let found = engine.search(&query, most).await?;
        let mut told = json!({"query": query, "results": found.hits});
        if let Some(answer) = found.answer {
            told["answer"] = answer.into();
        }
        Ok(told)
    }
}

/// Sends a request to an engine and parses its JSON. Its error texts go to the log only: they may quote the key.
async fn ask<T: for<'de> Deserialize<'de>>(client: &Client, request: Request) -> Result<T, CallFailure> {
    let Response { status, body, .. } = client.send(request).await.map_err(outbound::failed)?;
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|error| {
            tracing::warn!(%error, "a search engine's answer cannot be read");
            CallFailure::failed("the search engine's answer cannot be read")
        });
    }
    Err(refusal(status, &body))
}

/// Texts by which vendors report an invalid key, whatever the status.
const BAD_KEY: &[u8] = b"API_KEY_INVALID";

/// The failure of a status, with a text for whoever can act on it.
fn refusal(status: StatusCode, body: &[u8]) -> CallFailure {
    let bad_key = body.windows(BAD_KEY.len()).any(|part| part == BAD_KEY);
    tracing::warn!(%status, bad_key, "a search engine refuses");
    match status {
        _ if bad_key => CallFailure::unavailable(KEY_REFUSED),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => CallFailure::unavailable(KEY_REFUSED),
        StatusCode::NOT_FOUND => CallFailure::unavailable(
            "the search engine has no such model or address; the operator of this gateway has to look at [search]",
        ),
        StatusCode::TOO_MANY_REQUESTS => CallFailure::unavailable(
            "the search engine is asked too often, or its quota is used up; try again later",
        ),
        status if status.is_server_error() => CallFailure::unavailable(format!(
            "the search engine has a problem of its own ({}); try again later",
            status.as_u16()
        )),
        status => CallFailure::failed(format!("the search engine answered {status}")),
    }
}

const KEY_REFUSED: &str =
    "the search engine does not let this gateway in; its operator has to look at the engine's key and access";
