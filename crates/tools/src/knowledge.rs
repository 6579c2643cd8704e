//! The knowledge base: documents that agents search by words, and by meaning if there is an embedding model.

mod chunk;
mod embed;
mod passages;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
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
use crate::records::{input, share};
use crate::toolkit::ServerTool;
use embed::{Direction, Embedder};
use passages::Passages;

pub use embed::EmbeddingModel;

const KIND: &str = "knowledge";
/// Id prefix of documents. Their passages are in the same record set.
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
/// Most passages of a collection.
const PASSAGES_MAX: u64 = 50_000;
/// Hits of each ranking that are merged.
const CANDIDATES: usize = 50;
/// Timeout of a query's embedding; after it only the full-text search counts.
const QUERY_WAIT: Duration = Duration::from_secs(5);
/// Constant `k` of reciprocal rank fusion, at its usual value.
const RANK_SOFTENER: f64 = 60.0;
const FOUND_DEFAULT: usize = 5;
const FOUND_MAX: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(30);

/// A knowledge base that stores documents as records.
pub struct Library {
    records: Arc<dyn Records>,
    reader: Arc<Reader>,
    embedder: Option<Embedder>,
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
    /// Edition of its current passages. Others are being written, or are left over from an earlier edition.
    edition: String,
}

/// Stored form of a passage. Its embedding is the record's data.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    document: String,
    edition: String,
    title: String,
    source: Option<String>,
    number: u64,
    text: String,
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

    fn passages(&self, set: RecordSet) -> Passages<'_> {
        Passages {
            records: &*self.records,
            set,
        }
    }

    /// A document without its text, and the version of its record.
    async fn document(&self, set: RecordSet, id: &str) -> Result<Option<(Kept, u64)>, StoreError> {
        let id = format!("{DOCUMENT}{id}");
        let listing = Listing {
            prefix: id.clone(),
            after: None,
            // Of all ids with this prefix it is the first.
            limit: 1,
        };
        let listed = self.records.list_records(set, listing).await?;
        let Some(record) = listed.into_iter().find(|record| record.id == id) else {
            return Ok(None);
        };
        Ok(Some((record.body.read().map_err(corrupt)?, record.version)))
    }

    /// Hits of full-text search and of embeddings in a set, one ranking each.
    async fn found(
        &self,
        set: RecordSet,
        query: &str,
        direction: Option<&Direction>,
    ) -> Result<[Vec<Hit>; 2], StoreError> {
        let (mut by_words, mut by_meaning) = (Vec::new(), Vec::new());
        for found in self.records.find_records(set, query, CANDIDATES).await? {
            by_words.push(Hit {
                score: found.score,
                snippet: Some(found.snippet),
                owner: set.owner,
                passage: found.record.body.read().map_err(corrupt)?,
            });
        }
        if let Some(direction) = direction {
            let alike = self.passages(set).alike(direction, CANDIDATES).await?;
            for (score, id) in alike {
                // A passage that was deleted meanwhile is skipped.
                let Some(record) = self.records.record(set, &id).await? else {
                    continue;
                };
                by_meaning.push(Hit {
                    score,
                    snippet: None,
                    owner: set.owner,
                    passage: record.body.read().map_err(corrupt)?,
                });
            }
        }
        let mut editions: HashMap<String, Option<String>> = HashMap::new();
        for hit in by_words.iter().chain(&by_meaning) {
            if let Entry::Vacant(place) = editions.entry(hit.passage.document.clone()) {
                let document = self.document(set, &hit.passage.document).await?;
                place.insert(document.map(|(kept, _)| kept.edition));
            }
        }
        let is_own = |hit: &Hit| editions[&hit.passage.document].as_ref() == Some(&hit.passage.edition);
        by_words.retain(is_own);
        by_meaning.retain(is_own);
        Ok([by_words, by_meaning])
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
        let (title, text) = self.read(of, document.data, &document.mime).await?;
        let title = document.title.or(title).unwrap_or_else(|| document.id.clone());
        let chunks = chunk::chunks(&text);
        if chunks.is_empty() {
            return Err(KnowledgeError::Unfit("the document has no text".into()));
        }
        let directions = self.directions(&chunks).await;
        let before = self.document(set, &document.id).await?;
        let passages = self.passages(set);
        let old = passages.of(&document.id).await?;
        let (kept, _) = self.records.records_size(set).await?;
        if kept.saturating_sub(old.len() as u64) + chunks.len() as u64 > PASSAGES_MAX {
            return Err(full());
        }
        let info = DocumentInfo {
            id: document.id.clone(),
            title,
            source: document.source,
            mime_type: document.mime,
            characters: text.chars().count() as u64,
            passages: chunks.len() as u64,
            embedded: directions.is_some(),
            created_at: before.as_ref().map_or(now, |(before, _)| before.info.created_at),
            updated_at: now,
        };
        let edition = passages::edition();
        let changes = passages::changes(&info, &edition, chunks, directions);
        let added: Vec<String> = changes.iter().map(|record| record.id.clone()).collect();
        // Searches skip passages until the document names their edition; from then on they skip the old ones.
        let most = PASSAGES_MAX + old.len() as u64;
        let document = Amendment {
            expected: vec![as_it_is(&info.id, before.as_ref().map(|(_, version)| *version))],
            changes: vec![put(&info, edition, text)],
            ..Amendment::default()
        };
        let switched = match passages.add(changes, most, now).await {
            Ok(()) => self.records.amend_records(set, document, now).await,
            Err(error) => Err(error),
        };
        match switched {
            Ok(()) => {
                passages.forget(old, now).await;
                Ok(info)
            }
            Err(error) => {
                passages.forget(added, now).await;
                let (kept, _) = self.records.records_size(set).await?;
                match kept >= PASSAGES_MAX {
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
        let mut infos = Vec::with_capacity(records.len());
        for record in records {
            infos.push(record.body.read::<Kept>().map_err(corrupt)?.info);
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
        let text = String::from_utf8_lossy(&record.data.unwrap_or_default()).into_owned();
        Ok(Some((kept.info, text)))
    }

    async fn remove(&self, of: &Collection, id: &str, now: Time) -> Result<bool, KnowledgeError> {
        let set = record_set(of);
        let Some((_, version)) = self.document(set, id).await? else {
            return Ok(false);
        };
        let passages = self.passages(set);
        let old = passages.of(id).await?;
        let gone = Amendment {
            expected: vec![as_it_is(id, Some(version))],
            changes: vec![Change::Remove(format!("{DOCUMENT}{id}"))],
            ..Amendment::default()
        };
        self.records.amend_records(set, gone, now).await?;
        passages.forget(old, now).await;
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
        let [mut by_words, mut by_meaning] = [Vec::new(), Vec::new()];
        for set in sets {
            let [words, meaning] = self.found(set, query, direction.as_ref()).await?;
            by_words.extend(words);
            by_meaning.extend(meaning);
        }
        let mut found = match direction {
            Some(_) => joined([by_words, by_meaning]),
            None => by_words,
        };
        found.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score.then_with(|| a.place().cmp(&b.place()))
        });
        found.truncate(limit);
        let best = found.first().map_or(1.0, |hit| hit.score);
        found
            .iter_mut()
            .for_each(|hit| hit.score = share(hit.score, best));
        Ok(found.into_iter().map(told).collect())
    }
}

/// A hit.
struct Hit {
    score: f64,
    /// Excerpt around the words, if full-text search found it.
    snippet: Option<String>,
    owner: Owner,
    passage: Stored,
}

impl Hit {
    /// Identity of the passage.
    fn place(&self) -> (Owner, &str, u64) {
        (self.owner, &self.passage.document, self.passage.number)
    }
}

/// Reciprocal rank fusion: merges rankings by rank, because their scores are not comparable.
fn joined(rankings: [Vec<Hit>; 2]) -> Vec<Hit> {
    let mut all: HashMap<(Owner, String, u64), Hit> = HashMap::new();
    for mut ranking in rankings {
        ranking.sort_by(|a, b| b.score.total_cmp(&a.score));
        for (rank, mut hit) in ranking.into_iter().enumerate() {
            hit.score = 1.0 / (RANK_SOFTENER + 1.0 + rank as f64);
            let (owner, document, number) = hit.place();
            match all.entry((owner, document.to_owned(), number)) {
                Entry::Vacant(place) => _ = place.insert(hit),
                Entry::Occupied(mut known) => known.get_mut().score += hit.score,
            }
        }
    }
    all.into_values().collect()
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

fn put(info: &DocumentInfo, edition: String, text: String) -> Change {
    let kept = Kept {
        info: info.clone(),
        edition,
    };
    Change::Put(NewRecord {
        id: format!("{DOCUMENT}{}", info.id),
        body: serde_json::to_value(kept).expect("it has text keys").into(),
        text: None,
        data: Some(text.into_bytes()),
        due: None,
    })
}

fn as_it_is(document: &str, version: Option<u64>) -> Expected {
    Expected {
        id: format!("{DOCUMENT}{document}"),
        version,
    }
}

fn told(hit: Hit) -> Passage {
    const SNIPPET_CHARS: usize = 200;
    let stored = hit.passage;
    Passage {
        document_id: stored.document,
        title: stored.title,
        source: stored.source,
        passage: stored.number,
        snippet: hit
            .snippet
            .unwrap_or_else(|| stored.text.chars().take(SNIPPET_CHARS).collect()),
        text: stored.text,
        score: hit.score,
    }
}

fn full() -> KnowledgeError {
    KnowledgeError::Full(format!(
        "a collection may have {PASSAGES_MAX} passages; remove documents first"
    ))
}

fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("a document's record: {error}"))
}
