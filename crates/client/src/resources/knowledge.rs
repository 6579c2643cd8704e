//! The documents that `searchKnowledge` looks in.

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use toolgate_kernel::time::Time;

use crate::client::Client;
use crate::error::Error;
use crate::http::Patience;

/// What there is to say of a document.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// Unique in its collection: the project's, or an agent's own.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// Where it comes from.
    #[serde(default)]
    pub source: Option<String>,
    /// How it was written.
    pub mime_type: String,
    /// Pieces that it is found by.
    pub passages: u64,
    /// When it was first kept.
    pub created_at: Time,
    /// When it was last changed.
    pub updated_at: Time,
}

/// A document to be kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewDocument {
    /// All of it, in UTF-8.
    pub data: Vec<u8>,
    /// What it is written in: `text/plain` (when left out), `text/markdown` or `text/html`.
    pub mime_type: Option<String>,
    /// Its name for people; by default its own.
    pub title: Option<String>,
    /// Where it comes from.
    pub source: Option<String>,
}

/// A page of documents, by id.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentPage {
    /// The documents.
    pub documents: Vec<Document>,
    /// What to give as `after` for the next page; none on the last.
    pub next_cursor: Option<String>,
}

/// Puts, lists and deletes documents; for backends only.
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

    /// Keeps a document, in place of the one with its id.
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
        http.read(request, Patience::Brief).await
    }

    /// Documents behind the one named.
    pub async fn list(&self, after: Option<&str>) -> Result<DocumentPage, Error> {
        let mut query = self.query();
        query.extend(after.map(|after| ("after", after.to_owned())));
        self.client.http().get("v1/knowledge/documents", &query).await
    }

    /// Takes a document away: no agent finds it any more.
    pub async fn delete(&self, id: &str) -> Result<(), Error> {
        let http = self.client.http();
        let request = http.request_segments(Method::DELETE, &segments(id), &self.query());
        http.answer(request, Patience::Once).await.map(drop)
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
