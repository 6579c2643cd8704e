//! Documents that agents search: by their words, and by their meaning when there is a model for that.

mod chunk;
mod embed;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_engine::knowledge::{Collection, DocumentInfo, Knowledge, KnowledgeError, NewDocument, Passage};
use toolgate_engine::records::{Change, Expected, Listing, NewRecord, Owner, Record, Records, Shelf};
use toolgate_engine::store::StoreError;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_engine::workspace::Mime;
use toolgate_kernel::agent::{Action, entity_of};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Retry;

use crate::readable::{PDF_BYTES_MAX, Reader, Source, TEXT_BYTES_MAX, Unreadable, Wanted};
use crate::shelf::{input, store};
use crate::toolkit::ServerTool;
use embed::{Direction, Embedder};

pub use embed::EmbeddingModel;

const KIND: &str = "knowledge";
/// Records of documents and of their passages stand on one shelf, so that they change together.
const DOCUMENT: &str = "d/";
const PASSAGE: &str = "c/";
/// What documents may be.
const KINDS: [&str; 5] = [
    "text/plain",
    "text/markdown",
    "text/html",
    "application/xhtml+xml",
    "application/pdf",
];
const ID_CHARS_MAX: usize = 128;
/// Passages that a collection may have.
const PASSAGES_MAX: u64 = 50_000;
/// Passages of each way to find that are joined.
const CANDIDATES: usize = 50;
/// Passages that are compared by meaning at a time.
const PAGE: usize = 500;
/// How much the first ranks are worth more than the later ones, as is usual for joined rankings.
const RANK_SOFTENER: f64 = 60.0;
const FOUND_DEFAULT: usize = 5;
const FOUND_MAX: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(30);

/// What projects know, kept as records.
pub struct Library {
    records: Arc<dyn Records>,
    reader: Arc<Reader>,
    embedder: Option<Embedder>,
}

/// Searches it.
pub(crate) struct SearchKnowledge(pub Arc<dyn Knowledge>);

#[derive(Deserialize)]
struct SearchInput {
    query: String,
    limit: Option<usize>,
}

/// A passage's record.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    document: String,
    title: String,
    source: Option<String>,
    number: u64,
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    direction: Option<String>,
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
            Err(KnowledgeError::Store(error)) => Err(store(error)),
            Err(error) => Err(CallFailure::new(ErrorCode::ExecutionFailed, error.to_string())),
        }
    }
}

impl Library {
    /// Keeps documents there; finds them by meaning too when there is a model.
    pub fn new(records: Arc<dyn Records>, reader: Arc<Reader>, model: Option<EmbeddingModel>) -> Self {
        let embedder = model.map(Embedder::new);
        Self {
            records,
            reader,
            embedder,
        }
    }

    /// The title and text of a document, all of it.
    async fn read(&self, data: Vec<u8>, mime: &Mime) -> Result<(Option<String>, String), KnowledgeError> {
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
        match self.reader.read(source).await {
            Ok(read) if read.cut => unfit(format!(
                "a document may have {TEXT_BYTES_MAX} bytes of text at most, a PDF {PDF_BYTES_MAX} bytes"
            )),
            Ok(read) if read.damaged => unfit("the document is not in UTF-8".into()),
            Ok(read) => Ok((read.title, read.text)),
            Err(Unreadable::Kind(kind)) => Err(KnowledgeError::UnknownKind(kind)),
            Err(Unreadable::Unfit(why)) => unfit(why),
        }
    }

    /// Where a passage points, if that can be told now. A document without is still found by its words.
    async fn directions(&self, texts: &[String]) -> Option<Vec<Direction>> {
        let embedder = self.embedder.as_ref()?;
        let told = embedder.embed(texts).await;
        told.inspect_err(|error| tracing::warn!(error, "the embedding server cannot be used now"))
            .ok()
    }

    async fn passages_of(&self, shelf: Shelf, id: &str) -> Result<Vec<Record>, StoreError> {
        let listing = Listing {
            prefix: format!("{PASSAGE}{id}/"),
            after: None,
            limit: PASSAGES_MAX as usize,
        };
        self.records.list_records(shelf, listing).await
    }

    /// The passages of a shelf that are closest in meaning, best first.
    async fn alike(&self, shelf: Shelf, wanted: &Direction) -> Result<Vec<(f64, Record)>, StoreError> {
        let mut best: Vec<(f64, Record)> = Vec::new();
        let mut after = None;
        loop {
            let listing = Listing {
                prefix: PASSAGE.into(),
                after,
                limit: PAGE,
            };
            let page = self.records.list_records(shelf, listing).await?;
            after = page.last().map(|record| record.id.clone());
            let full = page.len() == PAGE;
            for record in page {
                let stored: Stored = record.body.read().map_err(corrupt)?;
                let direction = stored.direction.as_deref().and_then(Direction::from_text);
                if let Some(direction) = direction {
                    best.push((wanted.likeness(&direction), record));
                }
            }
            best.sort_by(|(a, _), (b, _)| b.total_cmp(a));
            best.truncate(CANDIDATES);
            if !full {
                return Ok(best);
            }
        }
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
        let shelf = shelf(of);
        check_id(&document.id)?;
        let (title, text) = self.read(document.data, &document.mime).await?;
        let title = document.title.or(title).unwrap_or_else(|| document.id.clone());
        let chunks = chunk::chunks(&text);
        if chunks.is_empty() {
            return Err(KnowledgeError::Unfit("the document has no text".into()));
        }
        let directions = self.directions(&chunks).await;
        let id = format!("{DOCUMENT}{}", document.id);
        let before = self.records.record(shelf, &id).await?;
        let old = self.passages_of(shelf, &document.id).await?;
        let (kept, _) = self.records.shelf_size(shelf).await?;
        if kept.saturating_sub(old.len() as u64) + chunks.len() as u64 > PASSAGES_MAX {
            let words = format!("a collection may have {PASSAGES_MAX} passages; remove documents first");
            return Err(KnowledgeError::Full(words));
        }
        let info = DocumentInfo {
            id: document.id.clone(),
            title: title.clone(),
            source: document.source.clone(),
            mime_type: document.mime,
            characters: text.chars().count() as u64,
            passages: chunks.len() as u64,
            embedded: directions.is_some(),
            created_at: before.as_ref().map_or(now, |before| before.created),
            updated_at: now,
        };
        let mut changes: Vec<Change> = old.into_iter().map(|record| Change::Remove(record.id)).collect();
        for (number, chunk) in chunks.into_iter().enumerate() {
            let direction = directions.as_ref().map(|directions| directions[number].to_text());
            let stored = Stored {
                document: document.id.clone(),
                title: title.clone(),
                source: document.source.clone(),
                number: number as u64,
                direction,
                text: chunk.clone(),
            };
            let id = format!("{PASSAGE}{}/{number:06}", document.id);
            changes.push(put(id, &stored, Some(format!("{title}\n{chunk}")), None));
        }
        let expected = Expected {
            id: id.clone(),
            version: before.map(|before| before.version),
        };
        changes.push(put(id, &info, None, Some(text.into_bytes())));
        self.records
            .change_records(shelf, vec![expected], changes, now)
            .await?;
        Ok(info)
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
        let records = self.records.list_records(shelf(of), listing).await?;
        let infos: Result<_, _> = records.iter().map(|record| record.body.read()).collect();
        Ok(infos.map_err(corrupt)?)
    }

    async fn get(&self, of: &Collection, id: &str) -> Result<Option<(DocumentInfo, String)>, KnowledgeError> {
        let record = self.records.record(shelf(of), &format!("{DOCUMENT}{id}")).await?;
        let Some(record) = record else { return Ok(None) };
        let info = record.body.read().map_err(corrupt)?;
        let text = String::from_utf8_lossy(&record.data.unwrap_or_default()).into_owned();
        Ok(Some((info, text)))
    }

    async fn remove(&self, of: &Collection, id: &str, now: Time) -> Result<bool, KnowledgeError> {
        let shelf = shelf(of);
        let name = format!("{DOCUMENT}{id}");
        let Some(record) = self.records.record(shelf, &name).await? else {
            return Ok(false);
        };
        let passages = self.passages_of(shelf, id).await?;
        let mut changes: Vec<Change> = passages
            .into_iter()
            .map(|record| Change::Remove(record.id))
            .collect();
        changes.push(Change::Remove(name.clone()));
        let expected = Expected {
            id: name,
            version: Some(record.version),
        };
        self.records
            .change_records(shelf, vec![expected], changes, now)
            .await?;
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
        let mut shelves = vec![shelf(&everybodys)];
        shelves.extend(of.agent.is_some().then(|| shelf(of)));
        let (mut by_words, mut by_meaning) = (Vec::new(), Vec::new());
        let directions = self.directions(&[query.to_owned()]).await;
        let direction = directions.and_then(|mut directions| directions.pop());
        for shelf in shelves {
            for found in self.records.find_records(shelf, query, CANDIDATES).await? {
                by_words.push(Hit {
                    score: found.score,
                    snippet: Some(found.snippet),
                    owner: shelf.owner,
                    record: found.record,
                });
            }
            if let Some(direction) = &direction {
                let alike = self.alike(shelf, direction).await?;
                by_meaning.extend(alike.into_iter().map(|(score, record)| Hit {
                    score,
                    snippet: None,
                    owner: shelf.owner,
                    record,
                }));
            }
        }
        let mut found = match direction {
            Some(_) => joined([by_words, by_meaning]),
            None => by_words,
        };
        found.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score.then_with(|| a.record.id.cmp(&b.record.id))
        });
        found.truncate(limit);
        let passages: Result<_, _> = found.into_iter().map(passage).collect();
        Ok(passages.map_err(corrupt)?)
    }
}

/// A passage that was found.
struct Hit {
    score: f64,
    /// A piece of it around the words, when it was found by them.
    snippet: Option<String>,
    owner: Owner,
    record: Record,
}

/// Rankings of the same things as one: what stands high in either stands high, whatever the scores mean there.
fn joined(rankings: [Vec<Hit>; 2]) -> Vec<Hit> {
    let mut all: HashMap<(Owner, String), Hit> = HashMap::new();
    for mut ranking in rankings {
        ranking.sort_by(|a, b| b.score.total_cmp(&a.score));
        for (rank, mut hit) in ranking.into_iter().enumerate() {
            hit.score = 1.0 / (RANK_SOFTENER + 1.0 + rank as f64);
            match all.entry((hit.owner, hit.record.id.clone())) {
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

fn shelf(of: &Collection) -> Shelf {
    let owner = match &of.agent {
        None => Owner::Project,
        Some(agent) => Owner::Entity(entity_of(of.project, agent)),
    };
    Shelf {
        project: of.project,
        owner,
        kind: KIND,
    }
}

fn put(id: String, body: &impl Serialize, text: Option<String>, data: Option<Vec<u8>>) -> Change {
    Change::Put(NewRecord {
        id,
        body: serde_json::to_value(body).expect("it has text keys").into(),
        text,
        data,
        due: None,
    })
}

fn passage(hit: Hit) -> Result<Passage, serde_json::Error> {
    const SNIPPET_CHARS: usize = 200;
    let stored: Stored = hit.record.body.read()?;
    Ok(Passage {
        document_id: stored.document,
        title: stored.title,
        source: stored.source,
        passage: stored.number,
        snippet: hit
            .snippet
            .unwrap_or_else(|| stored.text.chars().take(SNIPPET_CHARS).collect()),
        text: stored.text,
        score: hit.score,
    })
}

fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("a document's record: {error}"))
}
