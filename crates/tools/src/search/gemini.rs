//! Gemini with the tool `google_search`: an answer, the places it rests on, and which words rest on which.

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::json;
use toolgate_engine::tools::CallFailure;
use toolgate_kernel::agent::Secret;
use url::Url;

use super::{ANSWER_BYTES_MAX, Found, Hit, SearchEngine, ask};
use crate::guard::AllowList;
use crate::outside::{Ask, Limit, Outside};

const ADDRESS: &str = "https://generativelanguage.googleapis.com/v1beta";

pub(super) struct Gemini {
    key: Secret,
    model: String,
    base_url: String,
    outside: Outside,
}

impl Gemini {
    pub(super) fn new(key: Secret, model: String, base_url: Option<Url>) -> Self {
        let allow = base_url.as_ref().map(AllowList::only).unwrap_or_default();
        let base_url = base_url.map_or(ADDRESS.to_owned(), String::from);
        Self {
            key,
            model,
            base_url: base_url.trim_end_matches('/').to_owned(),
            outside: Outside::new(allow),
        }
    }
}

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    candidates: Vec<Candidate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    content: Content,
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
    /// Thoughts are no answer.
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
    async fn search(&self, query: &str) -> Result<Found, CallFailure> {
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
        let request = Ask {
            method: Method::POST,
            url,
            headers,
            body: Some(body.to_string().into()),
            limit: Limit::Whole(ANSWER_BYTES_MAX),
        };
        let reply: Reply = ask(&self.outside, request).await?;
        Ok(reply.candidates.into_iter().next().map(found).unwrap_or_default())
    }
}

/// A snippet is what the answer says on the word of that place.
fn found(candidate: Candidate) -> Found {
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
