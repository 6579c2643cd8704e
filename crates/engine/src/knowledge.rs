//! The seam to what a project knows: documents that agents search and backends manage.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use crate::store::StoreError;
use crate::workspace::Mime;

/// Whose documents: the whole project's, or one agent's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Collection {
    /// The project.
    pub project: ProjectId,
    /// The one agent that may search them; every agent when there is none.
    pub agent: Option<AgentName>,
}

/// A document to be kept, in place of the one with its id.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDocument {
    /// Unique in its collection.
    pub id: String,
    /// Its name for people; found in the document when nobody says.
    pub title: Option<String>,
    /// Where it comes from: an address, for those who want to look.
    pub source: Option<String>,
    /// How it is written: plain text, Markdown, HTML or PDF.
    pub mime: Mime,
    /// All of it.
    pub data: Vec<u8>,
}

/// What there is to say of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentInfo {
    /// Unique in its collection.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// Where it comes from.
    pub source: Option<String>,
    /// How it was written.
    pub mime_type: Mime,
    /// Characters of its text.
    pub characters: u64,
    /// Pieces that it is found by.
    pub passages: u64,
    /// Whether it is also found by meaning, not only by its words.
    pub embedded: bool,
    /// When it was first kept.
    #[serde(default)]
    pub created_at: Time,
    /// When it was last changed.
    #[serde(default)]
    pub updated_at: Time,
}

/// A piece of a document that answers a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Passage {
    /// The document.
    pub document_id: String,
    /// Its name for people.
    pub title: String,
    /// Where it comes from.
    pub source: Option<String>,
    /// Which of its pieces, from 0.
    pub passage: u64,
    /// All of the piece.
    pub text: String,
    /// A part of it around what was found.
    pub snippet: String,
    /// How well it fits; higher is better, and only comparable within one search.
    pub score: f64,
}

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    /// The document cannot be kept, for this reason.
    #[error("{0}")]
    Unfit(String),
    /// This kind of document cannot be read.
    #[error("{0} cannot be read here; send text/plain, text/markdown, text/html or application/pdf")]
    UnknownKind(String),
    /// There is no room for it.
    #[error("{0}")]
    Full(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a project knows.
#[async_trait]
pub trait Knowledge: Send + Sync {
    /// Keeps a document: all of it, or nothing.
    async fn put(
        &self,
        of: &Collection,
        document: NewDocument,
        now: Time,
    ) -> Result<DocumentInfo, KnowledgeError>;
    /// Documents by id, behind `after`.
    async fn list(
        &self,
        of: &Collection,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<DocumentInfo>, KnowledgeError>;
    /// A document and its text.
    async fn get(&self, of: &Collection, id: &str) -> Result<Option<(DocumentInfo, String)>, KnowledgeError>;
    /// Takes a document away. False when there is none.
    async fn remove(&self, of: &Collection, id: &str, now: Time) -> Result<bool, KnowledgeError>;
    /// The passages that fit best, of the project's documents and of the agent's own.
    async fn search(
        &self,
        of: &Collection,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Passage>, KnowledgeError>;
}
