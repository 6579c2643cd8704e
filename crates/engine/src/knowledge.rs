//! The seam to a project's knowledge base: documents that agents search and backends manage.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use crate::store::StoreError;
use crate::workspace::Mime;

/// The documents of a project, or of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Collection {
    /// Project that owns the documents.
    pub project: ProjectId,
    /// The one agent that may search them; every agent of the project if there is none.
    pub agent: Option<AgentName>,
}

/// A document to store; it replaces the one with the same id.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDocument {
    /// Id, unique in its collection.
    pub id: String,
    /// Title; taken from the document if there is none.
    pub title: Option<String>,
    /// Address of its source, for citations.
    pub source: Option<String>,
    /// Media type: plain text, Markdown, HTML or PDF.
    pub mime: Mime,
    /// Complete content.
    pub data: Vec<u8>,
}

/// Metadata of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentInfo {
    /// Id, unique in its collection.
    pub id: String,
    /// Title of the document.
    pub title: String,
    /// Address of its source.
    pub source: Option<String>,
    /// Media type that it was sent in.
    pub mime_type: Mime,
    /// Characters of its text.
    pub characters: u64,
    /// Number of passages that it is split into.
    pub passages: u64,
    /// Whether its passages have embeddings: it is found by meaning, not only by words.
    pub embedded: bool,
    /// Time at which it was first stored.
    #[serde(default)]
    pub created_at: Time,
    /// Time of its last change.
    #[serde(default)]
    pub updated_at: Time,
}

/// A passage of a document that matches a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Passage {
    /// Id of the document.
    pub document_id: String,
    /// Title of the document.
    pub title: String,
    /// Address of its source.
    pub source: Option<String>,
    /// Index of the passage in the document, from 0.
    pub passage: u64,
    /// Text of the passage.
    pub text: String,
    /// Excerpt around the hit.
    pub snippet: String,
    /// Relevance: higher is better, comparable only within one search.
    pub score: f64,
}

/// Why an operation on documents failed.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    /// The document is invalid, for this reason.
    #[error("{0}")]
    Unfit(String),
    /// The media type is not supported.
    #[error("{0} cannot be read here; send text/plain, text/markdown, text/html or application/pdf")]
    UnknownKind(String),
    /// A limit is reached.
    #[error("{0}")]
    Full(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A knowledge base.
#[async_trait]
pub trait Knowledge: Send + Sync {
    /// Stores a document, all of it or nothing.
    async fn put(
        &self,
        of: &Collection,
        document: NewDocument,
        now: Time,
    ) -> Result<DocumentInfo, KnowledgeError>;
    /// A page of documents in the order of ids, after `after`.
    async fn list(
        &self,
        of: &Collection,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<DocumentInfo>, KnowledgeError>;
    /// A document with its text.
    async fn get(&self, of: &Collection, id: &str) -> Result<Option<(DocumentInfo, String)>, KnowledgeError>;
    /// Deletes a document; false if there is none.
    async fn remove(&self, of: &Collection, id: &str, now: Time) -> Result<bool, KnowledgeError>;
    /// The most relevant passages, of the project's documents and of the agent's own.
    async fn search(
        &self,
        of: &Collection,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Passage>, KnowledgeError>;
}
