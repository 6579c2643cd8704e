//! Gemini with the tool `google_search`: an answer, its sources, and which parts rest on which.
//!
//! The sources come as redirect links of Google that expire after some days. They are resolved by one request, so that
//! the model cites the real addresses.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::json;
use toolgate_egress::{AllowList, BodyLimit, Client, Egress, Hop, Policy, Request};
use toolgate_engine::tools::CallFailure;
use toolgate_kernel::agent::Secret;
use url::Url;

use super::{ANSWER_BYTES_MAX, Found, Hit, SearchEngine, ask};

const ADDRESS: &str = "https://generativelanguage.googleapis.com/v1beta";
/// Path of a redirect link.
const LINK: &str = "/grounding-api-redirect/";
/// Timeout for resolving all links; one that takes longer stays as it is.
const LINKS_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Gemini {
    key: Secret,
    model: String,
    base_url: String,
    client: Client,
}

impl Gemini {
    pub(super) fn new(key: Secret, model: String, base_url: Option<Url>, egress: &Egress) -> Self {
        let allow = base_url.as_ref().map(AllowList::only).unwrap_or_default();
        let base_url = base_url.map_or(ADDRESS.to_owned(), String::from);
        Self {
            key,
            model,
            base_url: base_url.trim_end_matches('/').to_owned(),
            client: egress.client(Policy::public(allow)),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    #[serde(default)]
    candidates: Vec<Candidate>,
    /// Reason for a missing candidate.
    #[serde(default)]
    prompt_feedback: Feedback,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    content: Content,
    finish_reason: Option<String>,
    #[serde(default)]
    grounding_metadata: Grounding,
}

#[derive(Deserialize, Default)]
struct Content {
    #[serde(default)]
    parts: Vec<Text>,
}

#[derive(Deserialize, Default)]
struct Text {
    #[serde(default)]
    text: String,
    /// Whether the part is reasoning, which is no answer.
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Grounding {
    #[serde(default)]
    grounding_chunks: Vec<Chunk>,
    #[serde(default)]
    grounding_supports: Vec<Support>,
}

#[derive(Deserialize)]
struct Chunk {
    web: Option<Web>,
}

#[derive(Deserialize)]
struct Web {
    uri: String,
    #[serde(default)]
    title: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Support {
    #[serde(default)]
    segment: Text,
    #[serde(default)]
    grounding_chunk_indices: Vec<usize>,
}

#[async_trait]
impl SearchEngine for Gemini {
    async fn search(&self, query: &str, most: usize) -> Result<Found, CallFailure> {
        let url = format!("{}/models/{}:generateContent", self.base_url, self.model);
        let url =
            Url::parse(&url).map_err(|_| CallFailure::unavailable("the search engine's address is none"))?;
        let mut key = HeaderValue::from_str(self.key.expose())
            .map_err(|_| CallFailure::unavailable("the search engine's key cannot be sent"))?;
        key.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert("x-goog-api-key", key);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = json!({
            "contents": [{"role": "user", "parts": [{"text": query}]}],
            "tools": [{"google_search": {}}],
        });
        let request = Request {
            method: Method::POST,
            url,
            headers,
            body: Some(body.to_string().into()),
            limit: BodyLimit::Whole(ANSWER_BYTES_MAX),
        };
        let mut found = found(ask(&self.client, request).await?)?;
        found.hits.truncate(most);
        let links = found.hits.iter_mut().map(|hit| self.resolve(hit));
        // A link that is not resolved in time stays, as it works for some days.
        let _ = tokio::time::timeout(LINKS_TIMEOUT, join_all(links)).await;
        Ok(found)
    }
}

impl Gemini {
    /// Replaces a redirect link by its target. The target itself is not requested.
    async fn resolve(&self, hit: &mut Hit) {
        let Some(url) = Url::parse(&hit.url)
            .ok()
            .filter(|url| url.path().starts_with(LINK))
        else {
            return;
        };
        let look = Request {
            method: Method::HEAD,
            url,
            headers: HeaderMap::new(),
            body: None,
            limit: BodyLimit::Head,
        };
        if let Ok(Hop::Redirect(next)) = self.client.hop(look).await {
            hit.url = next.url.into();
        }
    }
}

/// Results of a reply; an error if the engine did not answer, or answered without searching.
fn found(reply: Reply) -> Result<Found, CallFailure> {
    let refused = |why: &str| {
        let words = format!("the search engine does not answer this query ({why}); put it in other words");
        CallFailure::failed(words)
    };
    let Some(candidate) = reply.candidates.into_iter().next() else {
        let why = reply.prompt_feedback.block_reason;
        return Err(refused(why.as_deref().unwrap_or("no reason given")));
    };
    let why = candidate.finish_reason.clone();
    let found = places(candidate);
    match (found.hits.is_empty(), &found.answer) {
        (false, _) => Ok(found),
        (true, None) => Err(refused(why.as_deref().unwrap_or("no reason given"))),
        (true, Some(_)) => Err(CallFailure::failed(
            "the search engine answered from memory, without sources; ask for something that has to be looked up",
        )),
    }
}

/// A snippet is the part of the answer that rests on that source.
fn places(candidate: Candidate) -> Found {
    let grounding = candidate.grounding_metadata;
    let snippet = |index: usize| {
        let rests = grounding
            .grounding_supports
            .iter()
            .filter(|support| support.grounding_chunk_indices.contains(&index));
        rests
            .map(|support| support.segment.text.trim())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let chunks = grounding.grounding_chunks.iter().enumerate();
    let hits = chunks.filter_map(|(index, chunk)| {
        let web = chunk.web.as_ref()?;
        Some(Hit {
            title: web.title.clone(),
            url: web.uri.clone(),
            snippet: snippet(index),
        })
    });
    let words: String = candidate
        .content
        .parts
        .iter()
        .filter(|part| !part.thought)
        .map(|part| part.text.as_str())
        .collect();
    Found {
        hits: hits.collect(),
        answer: Some(words.trim().to_owned()).filter(|words| !words.is_empty()),
    }
}
