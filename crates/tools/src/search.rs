//! `web_search`: asks whoever the operator chose.

mod gemini;
mod searxng;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::{Action, Secret};
use toolgate_kernel::tool::Retry;
use url::Url;

use crate::outside::{Answer, Ask, Outside};
use crate::shelf::input;
use crate::toolkit::ServerTool;

/// Results unless the model asks for another number.
const RESULTS: usize = 8;
const RESULTS_MAX: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Who searches the web.
#[derive(Debug, Clone, Default)]
pub enum Search {
    /// Nobody: the tool says so.
    #[default]
    Nobody,
    /// Gemini, with its answers grounded in Google's search.
    Gemini {
        /// The key.
        key: Secret,
        /// Which model.
        model: String,
        /// Where, when not at Google's.
        base_url: Option<Url>,
    },
    /// A SearXNG server.
    Searxng {
        /// Where.
        base_url: Url,
    },
}

/// One place that was found.
#[derive(Debug, PartialEq, Serialize)]
struct Hit {
    title: String,
    url: String,
    snippet: String,
}

/// What was found, best first, and the engine's own answer if it gives one.
#[derive(Debug, PartialEq, Default)]
struct Found {
    hits: Vec<Hit>,
    answer: Option<String>,
}

/// Searches the web: Gemini, SearXNG, a test.
#[async_trait]
trait SearchEngine: Send + Sync {
    async fn search(&self, query: &str) -> Result<Found, CallFailure>;
}

/// Searches the web.
pub(crate) struct WebSearch(Option<Arc<dyn SearchEngine>>);

impl WebSearch {
    pub(crate) fn new(search: Search) -> Self {
        Self(match search {
            Search::Nobody => None,
            Search::Gemini { key, model, base_url } => {
                Some(Arc::new(gemini::Gemini::new(key, model, base_url)))
            }
            Search::Searxng { base_url } => Some(Arc::new(searxng::Searxng::new(base_url))),
        })
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
        let engine = self.0.as_ref().ok_or_else(nobody)?;
        context.tell("searching");
        let mut found = engine.search(&query).await?;
        found.hits.truncate(max_results.unwrap_or(RESULTS));
        let mut told = json!({"query": query, "results": found.hits});
        if let Some(answer) = found.answer {
            told["answer"] = answer.into();
        }
        Ok(told)
    }
}

/// Asks an engine and reads its JSON. What it says of a failure is for the log: it may quote the key.
async fn ask<T: for<'de> Deserialize<'de>>(outside: &Outside, ask: Ask) -> Result<T, CallFailure> {
    let Answer { status, body, .. } = outside.send(ask).await?;
    match status {
        StatusCode::TOO_MANY_REQUESTS => Err(CallFailure::unavailable(
            "the search engine is asked too often; try again later",
        )),
        status if status.is_success() => serde_json::from_slice(&body).map_err(|error| {
            tracing::warn!(%error, "a search engine's answer cannot be read");
            CallFailure::failed("the search engine's answer cannot be read")
        }),
        status => Err(CallFailure::failed(format!(
            "the search engine answered {status}"
        ))),
    }
}
