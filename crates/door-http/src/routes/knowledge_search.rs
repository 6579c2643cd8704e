//! Searching what a project knows, and storing many documents at once. For backends.

use std::sync::Arc;

use axum::extract::State;
use futures_util::{StreamExt as _, stream};
use serde::Serialize;
use toolgate_access::Principal;
use toolgate_engine::knowledge::{Collection, KnowledgeError, NewDocument, Passage};
use toolgate_engine::workspace::Mime;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, BadBody, BadQuery, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::Query;
use toolgate_http::wire::{List, Text, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use super::agents;
use super::knowledge::{DocumentBody, TEXT_CHARS_MAX, collection};
use crate::Resources;

/// Most characters of a question.
const QUERY_CHARS_MAX: usize = 2000;
const FOUND_DEFAULT: usize = 5;
const FOUND_MAX: usize = 20;
/// Most documents of one request; `http.body_bytes_max` limits their bytes.
const DOCUMENTS_MAX: usize = 500;
/// Documents of one request that are read and stored at the same time.
const AT_ONCE: usize = 8;
/// Longest id that is looked at; which ids are allowed is checked for each document.
const ID_CHARS_MAX: usize = 256;
/// Most characters of a document's text: more than any document may have.
const DOCUMENT_CHARS_MAX: usize = 4 << 20;

/// A passage of a document.
#[derive(Serialize, ToSchema)]
#[schema(as = Passage)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PassageBody {
    /// Id of the document.
    document_id: String,
    /// Title of the document.
    title: String,
    /// Where the document comes from, such as a URL.
    source: Option<String>,
    /// Index of the passage in the document, from 0.
    passage: u64,
    /// Text of the passage.
    text: String,
    /// Excerpt around the hit.
    snippet: String,
    /// Relevance: 1 for the best hit of this search, less for the others.
    score: f64,
}

impl From<Passage> for PassageBody {
    fn from(found: Passage) -> Self {
        Self {
            document_id: found.document_id,
            title: found.title,
            source: found.source,
            passage: found.passage,
            text: found.text,
            snippet: found.snippet,
            score: found.score,
        }
    }
}

/// Passages that match a question, best first.
#[derive(Serialize, ToSchema)]
pub(crate) struct KnowledgeResults {
    /// The passages.
    results: Vec<PassageBody>,
}

/// Searches the project's documents as `searchKnowledge` does.
#[utoipa::path(
    get, path = "/v1/knowledge/search", operation_id = "search_knowledge", tag = "knowledge",
    params(
        ("query" = String, Query, min_length = 1, max_length = 2000, description = "A question, or words that the answer has."),
        ("agent" = inline(Option<schema::AgentName>), Query, description = "With this agent's own documents; only the project's without."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 20, description = "Most passages. Default: 5."),
    ),
    responses((status = 200, description = "The best passages.", body = KnowledgeResults), BadQuery, BackendOnly, Refused),
)]
pub(crate) async fn search(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    query: Query,
) -> Result<Answer<KnowledgeResults>, Refusal> {
    let question = query.text("query").unwrap_or_default();
    if question.is_empty() || question.chars().count() > QUERY_CHARS_MAX {
        let words = format!("query query: a question of 1 to {QUERY_CHARS_MAX} characters is required");
        return Err(Refusal::malformed(words));
    }
    let limit = query.limit_of(FOUND_DEFAULT, FOUND_MAX)?;
    let of = collection(project, &query)?;
    let found = resources.knowledge.search(&of, question, limit).await?;
    Ok(ok(KnowledgeResults {
        results: found.into_iter().map(PassageBody::from).collect(),
    }))
}

wire! {
    /// Documents to store, each in place of the one with its id.
    PutDocuments {
        /// The documents.
        documents "documents": List<PutDocument, 1, DOCUMENTS_MAX>,
    }
}

wire! {
    /// A document to store.
    PutDocument {
        /// Unique in its collection: letters, digits, `_`, `-` and `.`.
        id "id": Text<1, ID_CHARS_MAX>,
        /// Its name for people; by default its own.
        title "title": Option<Text<1, TEXT_CHARS_MAX>>,
        /// Where it comes from, for those who want to look.
        source "source": Option<Text<1, TEXT_CHARS_MAX>>,
        /// `text/plain`, `text/markdown` or `text/html`; plain text unless said otherwise.
        mime_type "mimeType": Option<Text<1, TEXT_CHARS_MAX>>,
        /// All of it.
        text "text": Text<1, DOCUMENT_CHARS_MAX>,
    }
}

/// What became of each document, in the order of the request.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoredDocuments {
    /// One for each document.
    documents: Vec<StoredDocument>,
}

/// What became of a document: stored, or why not.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoredDocument {
    /// Id of the document.
    id: String,
    /// The stored document.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<DocumentBody>,
    /// Why it was not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<DocumentError>,
}

/// Why a document was not stored. The others of the request are stored all the same.
#[derive(Serialize, ToSchema)]
pub(crate) struct DocumentError {
    /// The code that `PUT` of this document alone would give.
    code: String,
    /// What is wrong with it.
    message: String,
}

/// Stores many documents, each for itself: one that cannot be stored does not stop the others.
#[utoipa::path(
    post, path = "/v1/knowledge/documents", operation_id = "put_documents", tag = "knowledge",
    params(("agent" = inline(Option<schema::AgentName>), Query, description = "Only this agent finds them; every agent without.")),
    request_body = PutDocuments,
    responses((status = 200, description = "What became of each.", body = StoredDocuments), BadBody, Missing, BackendOnly, Refused),
)]
pub(crate) async fn put_many(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    query: Query,
    body: Body<PutDocuments>,
) -> Result<Answer<StoredDocuments>, Refusal> {
    let of = collection(project, &query)?;
    if let Some(agent) = &of.agent {
        agents::exists(&door, &Principal::backend(project), agent).await?;
    }
    let now = door.engine.clock().now();
    let storing = body.value.documents.0.into_iter().map(|document| {
        let (resources, of) = (resources.clone(), of.clone());
        async move { store(&resources, &of, document, now).await }
    });
    // In the order of the request; a document that stands twice may be stored as either.
    let documents = stream::iter(storing).buffered(AT_ONCE).collect().await;
    Ok(ok(StoredDocuments { documents }))
}

async fn store(resources: &Resources, of: &Collection, document: PutDocument, now: Time) -> StoredDocument {
    let id = document.id.0.clone();
    let mime = document.mime_type.map_or("text/plain".into(), |mime| mime.0);
    let stored = match mime.parse::<Mime>() {
        Err(_) => Err(KnowledgeError::UnknownKind(mime)),
        Ok(mime) => {
            let document = NewDocument {
                id: document.id.0,
                title: document.title.map(|title| title.0),
                source: document.source.map(|source| source.0),
                mime,
                data: document.text.0.into_bytes(),
            };
            resources.knowledge.put(of, document, now).await
        }
    };
    let (document, error) = match stored {
        Ok(info) => (Some(info.into()), None),
        Err(error) => (None, Some(Refusal::from(error).into())),
    };
    StoredDocument { id, document, error }
}

impl From<Refusal> for DocumentError {
    fn from(refusal: Refusal) -> Self {
        Self {
            code: refusal.problem().code.clone().into_owned(),
            message: refusal.problem().detail.clone(),
        }
    }
}
