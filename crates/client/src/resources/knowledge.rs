//! The documents that `searchKnowledge` searches.

use hyper::Method;
use hyper::header::CONTENT_TYPE;
use serde::Deserialize;
use toolgate_protocol::time::Time;

use crate::client::Client;
use crate::error::Error;
use crate::http::RetryPolicy;

/// Metadata of a document.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// Id, unique in its collection: the project's, or one agent's.
    pub id: String,
    /// Title for people.
    pub title: String,
    /// Source of the document, such as a URL.
    #[serde(default)]
    pub source: Option<String>,
    /// Media type that it was stored with.
    pub mime_type: String,
    /// Number of passages that it was split into for search.
    pub passages: u64,
    /// When it was first stored.
    pub created_at: Time,
    /// When it was last changed.
    pub updated_at: Time,
}

/// A document to store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewDocument {
    /// The complete content, in UTF-8.
    pub data: Vec<u8>,
    /// Media type: `text/plain` (default), `text/markdown` or `text/html`.
    pub mime_type: Option<String>,
    /// Title for people; the document's own by default.
    pub title: Option<String>,
    /// Source of the document, such as a URL.
    pub source: Option<String>,
}

/// A page of documents, ordered by id.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentPage {
    /// The documents of this page.
    pub documents: Vec<Document>,
    /// The value of `after` for the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

/// Stores, lists and deletes documents; needs a secret key.
#[derive(Debug, Clone, Copy)]
pub struct Knowledge<'a> {
    pub(crate) client: &'a Client,
    pub(crate) agent: Option<&'a str>,
}

impl<'a> Knowledge<'a> {
    /// The documents that only this agent finds.
    pub fn of_agent(self, agent: &'a str) -> Self {
        Self {
            agent: Some(agent),
            ..self
        }
    }

    /// Stores a document, and replaces the one with the same id.
    pub async fn put(&self, id: &str, document: NewDocument) -> Result<Document, Error> {
        let NewDocument {
            data,
            mime_type,
            title,
            source,
        } = document;
        let more = [("title", title), ("source", source)];
        let more = more.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let query: Vec<_> = self.query().into_iter().chain(more).collect();
        let mime_type = mime_type.unwrap_or_else(|| "text/plain".into());
        let http = self.client.http();
        let request = http.request_segments(Method::PUT, &segments(id), &query);
        let request = request.header(CONTENT_TYPE, mime_type).body(data);
        http.read(request, RetryPolicy::Brief).await
    }

    /// Documents after the id `after`.
    pub async fn list(&self, after: Option<&str>) -> Result<DocumentPage, Error> {
        let mut query = self.query();
        query.extend(after.map(|after| ("after", after.to_owned())));
        self.client.http().get("v1/knowledge/documents", &query).await
    }

    /// Deletes a document: no agent finds it any more.
    pub async fn delete(&self, id: &str) -> Result<(), Error> {
        let http = self.client.http();
        let request = http.request_segments(Method::DELETE, &segments(id), &self.query());
        http.send_request(request, RetryPolicy::Once).await.map(drop)
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        self.agent
            .map(|agent| ("agent", agent.to_owned()))
            .into_iter()
            .collect()
    }
}

fn segments(id: &str) -> [String; 4] {
    ["v1", "knowledge", "documents", id].map(str::to_owned)
}
