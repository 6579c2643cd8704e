//! The knowledge base: documents that agents search by words, and by meaning if there is an embedding model.

mod chunk;
mod embed;
mod find;
mod parts;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolgate_egress::Egress;
use toolgate_engine::knowledge::{Collection, DocumentInfo, Knowledge, KnowledgeError, NewDocument, Passage};
use toolgate_engine::records::{Amendment, Change, Expected, Listing, NewRecord, Owner, RecordSet, Records};
use toolgate_engine::shares::share_of;
use toolgate_engine::store::StoreError;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_engine::workspace::Mime;
use toolgate_kernel::agent::{Action, entity_of};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Retry;

use crate::readable::{PDF_BYTES_MAX, Reader, Source, TEXT_BYTES_MAX, Unreadable, Wanted};
use crate::records::input;
use crate::toolkit::ServerTool;
use embed::{Direction, Embedder};
use parts::Parts;

pub use embed::EmbeddingModel;
pub use upkeep::UpkeepError;

const KIND: &str = "knowledge";
/// Id prefix of documents. Their parts are in the same record set.
const DOCUMENT: &str = "d/";
/// Media types of documents.
const KINDS: [&str; 5] = [
    "text/plain",
    "text/markdown",
    "text/html",
    "application/xhtml+xml",
    "application/pdf",
];
const ID_CHARS_MAX: usize = 128;
/// Most records of a collection: documents, their parts of about 4,000 characters, and the embeddings of these.
const RECORDS_MAX: u64 = 100_000;
/// Longest first line of a plain text that may be its title.
const TITLE_CHARS_MAX: usize = 120;
/// Timeout of a query's embedding; after it only the full-text search counts.
const QUERY_WAIT: Duration = Duration::from_secs(5);
const FOUND_DEFAULT: usize = 5;
const FOUND_MAX: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(30);

/// A knowledge base that stores documents as records.
pub struct Library {
    records: Arc<dyn Records>,
    reader: Arc<Reader>,
    embedder: Option<Embedder>,
    /// Wakes upkeep: a document was stored without embeddings.
    unfinished: Notify,
}

/// `searchKnowledge`: searches the documents.
pub(crate) struct SearchKnowledge(pub Arc<dyn Knowledge>);

#[derive(Deserialize)]
struct SearchInput {
    query: String,
    limit: Option<usize>,
}

/// Stored form of a document.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    #[serde(flatten)]
    info: DocumentInfo,
    /// Edition of its current parts. Others are being written, or are left over from an earlier edition.
    edition: String,
    /// Number of its parts, which have its text; none as long as it is in the form of an earlier version, where the text
    /// is the record's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<u64>,
    /// Model that made the embeddings of its passages; they have none otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedding: Option<String>,
}

impl Kept {
    fn info(self, mark: Option<&String>) -> DocumentInfo {
        DocumentInfo {
            embedded: mark.is_some() && self.embedding.as_ref() == mark,
            ..self.info
        }
    }
}

#[async_trait]
impl ServerTool for SearchKnowledge {
    fn name(&self) -> &'static str {
        "searchKnowledge"
    }
    fn action(&self) -> Action {
        Action {
            description:
                "Search the documents that you were given. Gives the passages that fit best, each with its \
                          document."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "A question, or words that the answer has."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": FOUND_MAX, "description": "Most passages to give. Default: 5."},
                },
                "required": ["query"],
            }),
            timeout: TIMEOUT,
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: SearchInput = input(given)?;
        let of = Collection {
            project: context.project,
            agent: Some(context.agent.clone()),
        };
        let limit = wanted.limit.unwrap_or(FOUND_DEFAULT);
        match self.0.search(&of, &wanted.query, limit).await {
            Ok(found) => Ok(json!({"results": found, "totalResults": found.len()})),
            Err(KnowledgeError::Store(error)) => Err(error.into()),
            Err(error) => Err(CallFailure::new(ErrorCode::ExecutionFailed, error.to_string())),
        }
    }
}

impl Library {
    /// A knowledge base in `records`, with full-text search only.
    pub fn new(records: Arc<dyn Records>, reader: Arc<Reader>) -> Self {
        Self {
            records,
            reader,
            embedder: None,
            unfinished: Notify::new(),
        }
    }

    /// Adds search by embeddings.
    pub fn with_embeddings(self, model: EmbeddingModel, egress: &Egress) -> Self {
        let embedder = Some(Embedder::new(model, egress));
        Self { embedder, ..self }
    }

    /// Title and complete text of a document.
    async fn read(
        &self,
        of: &Collection,
        data: Vec<u8>,
        mime: &Mime,
    ) -> Result<(Option<String>, String), KnowledgeError> {
        if !KINDS.contains(&mime.as_str()) {
            return Err(KnowledgeError::UnknownKind(mime.as_str().to_owned()));
        }
        let source = Source {
            kind: mime.as_str().to_owned(),
            url: None,
            wanted: Wanted::Everything,
            cut: false,
            data,
        };
        let unfit = |words: String| Err(KnowledgeError::Unfit(words));
        let agent = of.agent.as_ref().map(|agent| entity_of(of.project, agent));
        match self.reader.read(source, share_of(of.project, agent)).await {
            Ok(read) if read.cut => unfit(format!(
                "a document may have {TEXT_BYTES_MAX} bytes of text at most, a PDF {PDF_BYTES_MAX} bytes"
            )),
            Ok(read) if read.damaged => unfit("the document is not in UTF-8".into()),
            Ok(read) => Ok((read.title, read.text)),
            Err(Unreadable::Kind(kind)) => Err(KnowledgeError::UnknownKind(kind)),
            Err(Unreadable::Unfit(why)) => unfit(why),
        }
    }

    /// Embeddings of passages, if the server is available. A document without is still found by its words.
    async fn directions(&self, texts: &[String]) -> Option<Vec<Direction>> {
        let embedder = self.embedder.as_ref()?;
        let told = embedder.embed(texts).await;
        told.inspect_err(|error| tracing::warn!(error, "the embedding server cannot be used now"))
            .ok()
    }

    /// Embedding of a query, if it arrives within the timeout.
    async fn direction(&self, query: &str) -> Option<Direction> {
        let asked = [query.to_owned()];
        let told = tokio::time::timeout(QUERY_WAIT, self.directions(&asked)).await;
        if told.is_err() {
            tracing::warn!("the embedding server takes too long; words alone answer");
        }
        told.ok()??.pop()
    }

    /// Name of the embedding model in stored documents.
    fn mark(&self) -> Option<String> {
        self.embedder.as_ref().map(Embedder::mark)
    }

    fn parts(&self, set: RecordSet) -> Parts<'_> {
        Parts {
            records: &*self.records,
            set,
        }
    }

    /// Stores an edition of a document, whose record must have the version `before`, and gives it back.
    ///
    /// Searches skip its parts until the document names their edition; from then on they skip the old ones.
    async fn store(
        &self,
        set: RecordSet,
        mut info: DocumentInfo,
        text: String,
        before: Option<u64>,
        old: &[String],
        now: Time,
    ) -> Result<Kept, StoreError> {
        let edition = parts::edition();
        let (prepared, passages) = prepare(info.clone(), edition.clone(), text).await?;
        let counts: Vec<usize> = passages.iter().map(Vec::len).collect();
        info.passages = counts.iter().sum::<usize>() as u64;
        // A long document gets its embeddings by upkeep: whoever sent it does not wait for hundreds of requests.
        let directions = match info.passages as usize <= embed::BATCH {
            true => self.directions(&passages.concat()).await,
            false => None,
        };
        let kept = Kept {
            embedding: directions.as_ref().and(self.mark()),
            parts: Some(counts.len() as u64),
            edition: edition.clone(),
            info,
        };
        let id = kept.info.id.clone();
        let mut new = prepared;
        new.extend(
            directions
                .into_iter()
                .flat_map(|directions| parts::vector_records(&id, &edition, &counts, directions)),
        );
        let added: Vec<String> = new.iter().map(|record| record.id.clone()).collect();
        let most = RECORDS_MAX + old.len() as u64;
        let switched = match self.parts(set).add(new, most, now).await {
            Ok(mut changes) => {
                changes.push(put(&kept));
                let amendment = Amendment {
                    expected: vec![as_it_is(&id, before)],
                    at_most: Some(most),
                    changes,
                    ..Amendment::default()
                };
                self.records.amend_records(set, amendment, now).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = switched {
            self.parts(set).forget(added, now).await;
            return Err(error);
        }
        if kept.embedding != self.mark() {
            self.unfinished.notify_one();
        }
        Ok(kept)
    }
}

#[async_trait]
impl Knowledge for Library {
    async fn put(
        &self,
        of: &Collection,
        document: NewDocument,
        now: Time,
    ) -> Result<DocumentInfo, KnowledgeError> {
        let set = record_set(of);
        check_id(&document.id)?;
        let plain = document.mime.as_str() == "text/plain";
        let (title, text) = self.read(of, document.data, &document.mime).await?;
        let own = || if plain { first_line(&text) } else { None };
        let title = document.title.or(title).or_else(own);
        if text.trim().is_empty() {
            return Err(KnowledgeError::Unfit("the document has no text".into()));
        }
        let before = self::document(&*self.records, set, &document.id).await?;
        let old = self.parts(set).of(&document.id).await?;
        let (kept, _) = self.records.records_size(set).await?;
        if kept.saturating_sub(old.len() as u64) + chunk::parts(&text).len() as u64 >= RECORDS_MAX {
            return Err(full());
        }
        let info = DocumentInfo {
            title: title.unwrap_or_else(|| document.id.clone()),
            id: document.id,
            source: document.source,
            mime_type: document.mime,
            characters: text.chars().count() as u64,
            passages: 0,
            embedded: false,
            created_at: before.as_ref().map_or(now, |(before, _)| before.info.created_at),
            updated_at: now,
        };
        let version = before.map(|(_, version)| version);
        match self.store(set, info, text, version, &old, now).await {
            Ok(stored) => {
                self.parts(set).forget(old, now).await;
                Ok(stored.info(self.mark().as_ref()))
            }
            Err(error) => {
                let (kept, _) = self.records.records_size(set).await?;
                match kept >= RECORDS_MAX {
                    true => Err(full()),
                    false => Err(error.into()),
                }
            }
        }
    }

    async fn list(
        &self,
        of: &Collection,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<DocumentInfo>, KnowledgeError> {
        let listing = Listing {
            prefix: DOCUMENT.into(),
            after: after.map(|after| format!("{DOCUMENT}{after}")),
            limit,
        };
        let records = self.records.list_records(record_set(of), listing).await?;
        let (mark, mut infos) = (self.mark(), Vec::with_capacity(records.len()));
        for record in records {
            let kept: Kept = record.body.read().map_err(corrupt)?;
            infos.push(kept.info(mark.as_ref()));
        }
        Ok(infos)
    }

    async fn get(&self, of: &Collection, id: &str) -> Result<Option<(DocumentInfo, String)>, KnowledgeError> {
        let record = self
            .records
            .record(record_set(of), &format!("{DOCUMENT}{id}"))
            .await?;
        let Some(record) = record else { return Ok(None) };
        let kept: Kept = record.body.read().map_err(corrupt)?;
        let text = match kept.parts {
            None => parts::as_text(record.data.unwrap_or_default()),
            Some(_) => self
                .parts(record_set(of))
                .texts(id, &kept.edition)
                .await?
                .concat(),
        };
        Ok(Some((kept.info(self.mark().as_ref()), text)))
    }

    async fn remove(&self, of: &Collection, id: &str, now: Time) -> Result<bool, KnowledgeError> {
        let set = record_set(of);
        let Some((_, version)) = document(&*self.records, set, id).await? else {
            return Ok(false);
        };
        let old = self.parts(set).of(id).await?;
        let gone = Amendment {
            expected: vec![as_it_is(id, Some(version))],
            changes: vec![Change::Remove(format!("{DOCUMENT}{id}"))],
            ..Amendment::default()
        };
        self.records.amend_records(set, gone, now).await?;
        self.parts(set).forget(old, now).await;
        Ok(true)
    }

    async fn search(
        &self,
        of: &Collection,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Passage>, KnowledgeError> {
        let everybodys = Collection {
            agent: None,
            ..of.clone()
        };
        let mut sets = vec![record_set(&everybodys)];
        sets.extend(of.agent.is_some().then(|| record_set(of)));
        let direction = self.direction(query).await;
        Ok(find::find(&*self.records, &sets, query, direction.as_ref(), limit).await?)
    }
}

/// The records of a document's parts, and their passages.
async fn prepare(
    info: DocumentInfo,
    edition: String,
    text: String,
) -> Result<(Vec<NewRecord>, Vec<Vec<String>>), StoreError> {
    let work = move || {
        let records = parts::part_records(&info, &edition, &text);
        let passages = chunk::parts(&text).into_iter().map(chunk::chunks).collect();
        (records, passages)
    };
    // Analysis takes a second per megabyte: not for the runtime's threads.
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Unavailable(error.to_string()))
}

/// A document's record, and its version.
async fn document(
    records: &dyn Records,
    set: RecordSet,
    id: &str,
) -> Result<Option<(Kept, u64)>, StoreError> {
    let Some(record) = records.record(set, &format!("{DOCUMENT}{id}")).await? else {
        return Ok(None);
    };
    Ok(Some((record.body.read().map_err(corrupt)?, record.version)))
}

/// The first line of a plain text, if it looks like a title: short, no sentence, and with a blank line behind it.
fn first_line(text: &str) -> Option<String> {
    let mut lines = text.trim_start().lines();
    let first = lines.next()?.split_whitespace().collect::<Vec<_>>().join(" ");
    let alone = lines.next().is_some_and(|line| line.trim().is_empty());
    let is_title = first.chars().count() <= TITLE_CHARS_MAX && !first.ends_with(['.', ',', ';', ':', '。']);
    (alone && is_title && !first.is_empty()).then_some(first)
}

fn check_id(id: &str) -> Result<(), KnowledgeError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match (1..=ID_CHARS_MAX).contains(&id.len()) && id.chars().all(allowed) {
        true => Ok(()),
        false => Err(KnowledgeError::Unfit(format!(
            "a document's id has 1 to {ID_CHARS_MAX} letters, digits, '_', '-' and '.'"
        ))),
    }
}

fn record_set(of: &Collection) -> RecordSet {
    let owner = match &of.agent {
        None => Owner::Project,
        Some(agent) => Owner::Entity(entity_of(of.project, agent)),
    };
    RecordSet {
        project: of.project,
        owner,
        kind: KIND,
    }
}

fn put(kept: &Kept) -> Change {
    Change::Put(NewRecord {
        id: format!("{DOCUMENT}{}", kept.info.id),
        body: serde_json::to_value(kept).expect("it has text keys").into(),
        text: None,
        data: None,
        due: None,
    })
}

fn as_it_is(document: &str, version: Option<u64>) -> Expected {
    Expected {
        id: format!("{DOCUMENT}{document}"),
        version,
    }
}

fn full() -> KnowledgeError {
    KnowledgeError::Full(format!(
        "a collection may have {RECORDS_MAX} records, each with about 4,000 characters of a document; remove documents first"
    ))
}

fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("a document's record: {error}"))
}
