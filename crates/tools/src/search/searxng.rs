//! A SearXNG metasearch server; its settings must allow the format `json`.

use async_trait::async_trait;
use serde::Deserialize;
use toolgate_egress::{BodyLimit, Client, Egress, Policy, Request};
use toolgate_engine::tools::CallFailure;
use url::Url;

use super::{ANSWER_BYTES_MAX, Found, Hit, SearchEngine, ask};

pub(super) struct Searxng {
    base_url: Url,
    client: Client,
}

impl Searxng {
    pub(super) fn new(base_url: Url, egress: &Egress) -> Self {
        let client = egress.client(Policy::server(&base_url));
        Self { base_url, client }
    }
}

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    results: Vec<Place>,
}

#[derive(Deserialize)]
struct Place {
    url: String,
    #[serde(default)]
    title: String,
    /// Some engines return none.
    content: Option<String>,
}

#[async_trait]
impl SearchEngine for Searxng {
    async fn search(&self, query: &str, most: usize) -> Result<Found, CallFailure> {
        let mut url = self.base_url.clone();
        let path = format!("{}/search", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url.query_pairs_mut()
            .append_pair("q", query)
            .append_pair("format", "json");
        let request = Request::get(url, BodyLimit::Whole(ANSWER_BYTES_MAX));
        let reply: Reply = ask(&self.client, request).await?;
        let hit = |place: Place| Hit {
            title: place.title,
            url: place.url,
            snippet: place.content.unwrap_or_default(),
        };
        Ok(Found {
            hits: reply.results.into_iter().take(most).map(hit).collect(),
            answer: None,
        })
    }
}
