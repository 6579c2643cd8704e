//! What a project knows: documents that its agents search. For backends.

use std::sync::Arc;

use axum::extract::{Request, State};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::Serialize;
use toolgate_access::Principal;
use toolgate_engine::knowledge::{Collection, DocumentInfo, NewDocument};
use toolgate_engine::workspace::Mime;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::collect;
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, BadDocument, BadQuery, Contended, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use super::agents;
use crate::Resources;

/// Most characters of a title or source.
pub(super) const TEXT_CHARS_MAX: usize = 500;

/// What there is to say of a document.
#[derive(Serialize, ToSchema)]
#[schema(as = Document)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentBody {
    /// Unique in its collection: the project's, or an agent's own.
    id: String,
    /// Its name for people.
    title: String,
    /// Where the document comes from, such as a URL.
    source: Option<String>,
    /// Media type of the original.
    mime_type: String,
    /// Characters of its text.
    characters: u64,
    /// Pieces that it is found by.
    passages: u64,
    /// Whether it is also found by meaning, not only by its words.
    embedded: bool,
    /// When it was first kept.
    #[schema(value_type = schema::Time)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = schema::Time)]
    updated_at: Time,
    /// All of its text, where one document is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl From<DocumentInfo> for DocumentBody {
    fn from(info: DocumentInfo) -> Self {
        Self {
            id: info.id,
            title: info.title,
            source: info.source,
            mime_type: info.mime_type.into(),
            characters: info.characters,
            passages: info.passages,
            embedded: info.embedded,
            created_at: info.created_at,
            updated_at: info.updated_at,
            text: None,
        }
    }
}

/// A page of documents, by id.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentList {
    /// The documents.
    documents: Vec<DocumentBody>,
    /// What to give as `after` for the next page; null on the last.
    next_cursor: Option<String>,
}

/// The documents of the project, or of one agent, by id.
#[utoipa::path(
    get, path = "/v1/knowledge/documents", operation_id = "list_documents", tag = "knowledge",
    params(
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Of this agent; of the project without."),
        ("after" = Option<String>, Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page.", body = DocumentList), BadQuery, BackendOnly, Refused),
)]
pub(crate) async fn list(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    query: Query,
) -> Result<Answer<DocumentList>, Refusal> {
    let limit = query.limit()?;
    let after = query.text("after").map(str::to_owned);
    let knowledge = &resources.knowledge;
    let found = knowledge
        .list(&collection(project, &query)?, after, limit)
        .await?;
    let next_cursor = found.last().filter(|_| found.len() == limit);
    Ok(ok(DocumentList {
        next_cursor: next_cursor.map(|document| document.id.clone()),
        documents: found.into_iter().map(DocumentBody::from).collect(),
    }))
}

/// Keeps a document, in place of the one with its id: plain text, Markdown, HTML or PDF, as `content-type` says.
#[utoipa::path(
    put, path = "/v1/knowledge/documents/{document}", operation_id = "put_document", tag = "knowledge",
    params(
        ("document" = String, Path, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9_.-]+$"),
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Only this agent finds it; every agent without."),
        ("title" = Option<String>, Query, max_length = 500, description = "Its name for people; by default its own."),
        ("source" = Option<String>, Query, max_length = 500, description = "Where it comes from, for those who want to look."),
    ),
    request_body(content = String, content_type = "text/markdown", description = "All of it, texts in UTF-8."),
    responses((status = 200, description = "Kept.", body = DocumentBody), BadDocument, Contended, Missing, BackendOnly, Refused),
)]
pub(crate) async fn put(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(id): At<String>,
    query: Query,
    request: Request,
) -> Result<Answer<DocumentBody>, Refusal> {
    let of = collection(project, &query)?;
    if let Some(agent) = &of.agent {
        agents::exists(&door, &Principal::backend(project), agent).await?;
    }
    let (parts, body) = request.into_parts();
    let data = collect(&door, &parts, body, door.settings.body_bytes_max).await?;
    let named = parts.headers.get(CONTENT_TYPE).map(|value| value.to_str());
    // `curl -T` says nothing.
    let guess = if data.starts_with(b"%PDF-") {
        "application/pdf"
    } else {
        "text/plain"
    };
    let mime: Result<Mime, _> = named.unwrap_or(Ok(guess)).unwrap_or_default().parse();
    let document = NewDocument {
        id,
        title: text(&query, "title")?,
        source: text(&query, "source")?,
        mime: mime.map_err(|error| unsupported(format!("content-type: {error}")))?,
        data: data.to_vec(),
    };
    let now = door.engine.clock().now();
    let kept = resources.knowledge.put(&of, document, now).await?;
    Ok(ok(kept.into()))
}

/// A document with its text.
#[utoipa::path(
    get, path = "/v1/knowledge/documents/{document}", operation_id = "get_document", tag = "knowledge",
    params(
        ("document" = String, Path),
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Of this agent; of the project without."),
    ),
    responses((status = 200, description = "The document.", body = DocumentBody), BadQuery, Missing, BackendOnly, Refused),
)]
pub(crate) async fn get(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(id): At<String>,
    query: Query,
) -> Result<Answer<DocumentBody>, Refusal> {
    let of = collection(project, &query)?;
    let found = resources.knowledge.get(&of, &id).await?;
    let (info, text) = found.ok_or_else(|| Refusal::not_found("document"))?;
    Ok(ok(DocumentBody {
        text: Some(text),
        ..info.into()
    }))
}

/// Takes a document away: no agent finds it any more.
#[utoipa::path(
    delete, path = "/v1/knowledge/documents/{document}", operation_id = "delete_document", tag = "knowledge",
    params(
        ("document" = String, Path),
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Of this agent; of the project without."),
    ),
    responses((status = 204, description = "It is gone."), BadQuery, Contended, Missing, BackendOnly, Refused),
)]
pub(crate) async fn remove(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(id): At<String>,
    query: Query,
) -> Result<StatusCode, Refusal> {
    let of = collection(project, &query)?;
    let now = door.engine.clock().now();
    match resources.knowledge.remove(&of, &id, now).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Refusal::not_found("document")),
    }
}

fn unsupported(words: String) -> Refusal {
    Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UNSUPPORTED_MEDIA_TYPE",
        words,
    )
}

pub(super) fn collection(project: ProjectId, query: &Query) -> Result<Collection, Refusal> {
    let agent: Option<AgentName> = query.read("agent")?;
    Ok(Collection { project, agent })
}

fn text(query: &Query, name: &str) -> Result<Option<String>, Refusal> {
    let given = query.text(name).filter(|text| !text.is_empty());
    match given {
        Some(text) if text.chars().count() > TEXT_CHARS_MAX => Err(Refusal::malformed(format!(
            "query {name}: it may have {TEXT_CHARS_MAX} characters at most"
        ))),
        given => Ok(given.map(str::to_owned)),
    }
}
