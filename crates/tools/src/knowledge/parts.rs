//! The stored parts of documents: the units that full-text search finds. They are written and removed in small batches, so that
//! a large document blocks no other write; the document's record decides which of them are current.

use aws_lc_rs::rand;
use serde::{Deserialize, Serialize};
use toolgate_engine::knowledge::DocumentInfo;
use toolgate_engine::records::{Amendment, Change, Listing, NewRecord, RecordSet, Records, SearchText};
use toolgate_engine::store::StoreError;
use toolgate_kernel::time::Time;

use super::chunk;
use super::embed::Direction;

/// Id prefix of parts.
pub(super) const PART: &str = "p/";
/// Id prefix of the embeddings of a part's passages.
pub(super) const VECTORS: &str = "v/";
/// Id prefix of passages as earlier versions stored them.
pub(super) const PASSAGE: &str = "c/";
/// Most records of one write.
pub(super) const BATCH: usize = 32;
/// Records of embeddings per page of a similarity search.
const PAGE: usize = 500;
/// Characters at the beginning of a document that say what it is about: each of its parts is found by them too.
const LEAD_CHARS: usize = 200;

/// Stored form of a part. Its text is the record's data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Part {
    pub document: String,
    pub edition: String,
    pub title: String,
    pub source: Option<String>,
    /// Number of its first passage in the document.
    pub first: u64,
}

/// The records of a collection.
pub(super) struct Parts<'l> {
    pub records: &'l dyn Records,
    pub set: RecordSet,
}

/// A passage that is similar to a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Alike {
    pub score: f64,
    /// Id of its part.
    pub part: String,
    /// Index in its part.
    pub passage: usize,
}

impl Parts<'_> {
    /// Ids of everything that is stored of a document beside its own record, of every edition.
    pub async fn of(&self, document: &str) -> Result<Vec<String>, StoreError> {
        let mut ids = Vec::new();
        for prefix in [PART, VECTORS, PASSAGE] {
            let listing = Listing {
                prefix: format!("{prefix}{document}/"),
                after: None,
                limit: usize::MAX,
            };
            let listed = self.records.list_records(self.set, listing).await?;
            ids.extend(listed.into_iter().map(|record| record.id));
        }
        Ok(ids)
    }

    /// The texts of an edition's parts, in order.
    pub async fn texts(&self, document: &str, edition: &str) -> Result<Vec<String>, StoreError> {
        let listing = Listing {
            prefix: format!("{PART}{document}/{edition}/"),
            after: None,
            limit: usize::MAX,
        };
        let data = self.records.list_data(self.set, listing).await?;
        Ok(data.into_iter().map(|(_, text)| as_text(text)).collect())
    }

    /// Writes records ahead of the document that makes them current, all but the last batch, which is returned.
    pub async fn add(
        &self,
        mut new: Vec<NewRecord>,
        most: u64,
        now: Time,
    ) -> Result<Vec<Change>, StoreError> {
        while new.len() > BATCH {
            let rest = new.split_off(BATCH);
            let amendment = Amendment {
                at_most: Some(most),
                changes: new.into_iter().map(Change::Put).collect(),
                ..Amendment::default()
            };
            self.records.amend_records(self.set, amendment, now).await?;
            new = rest;
        }
        Ok(new.into_iter().map(Change::Put).collect())
    }

    /// Deletes records that are no longer current. Leftovers are deleted when the document is written again.
    pub async fn forget(&self, ids: Vec<String>, now: Time) {
        let mut gone = ids.into_iter().map(Change::Remove).peekable();
        while gone.peek().is_some() {
            let changes = gone.by_ref().take(BATCH).collect();
            let changed = self.records.change_records(self.set, Vec::new(), changes, now);
            if let Err(error) = changed.await {
                return tracing::warn!(%error, "parts of an earlier edition are left");
            }
        }
    }

    /// The most similar passages, best first.
    pub async fn alike(&self, wanted: &Direction, most: usize) -> Result<Vec<Alike>, StoreError> {
        let mut best = Vec::new();
        let mut after = None;
        loop {
            let listing = Listing {
                prefix: VECTORS.into(),
                after,
                limit: PAGE,
            };
            let page = self.records.list_data(self.set, listing).await?;
            after = page.last().map(|(id, _)| id.clone());
            let full = page.len() == PAGE;
            let wanted = wanted.clone();
            let ranked = tokio::task::spawn_blocking(move || rank(best, page, &wanted, most)).await;
            best = ranked.map_err(|error| StoreError::Unavailable(error.to_string()))?;
            if !full {
                return Ok(best);
            }
        }
    }
}

/// Merges one more page into the best hits so far.
fn rank(mut best: Vec<Alike>, page: Vec<(String, Vec<u8>)>, wanted: &Direction, most: usize) -> Vec<Alike> {
    for (id, kept) in page {
        let scores = kept
            .chunks(wanted.stored_bytes())
            .map(|kept| wanted.likeness(kept));
        let scored = scores
            .enumerate()
            .filter_map(|(passage, score)| Some((passage, score?)));
        best.extend(scored.map(|(passage, score)| Alike {
            score,
            part: format!("{PART}{}", &id[VECTORS.len()..]),
            passage,
        }));
    }
    best.sort_by(|a, b| b.score.total_cmp(&a.score));
    best.truncate(most);
    best
}

/// A random id of an edition.
pub(super) fn edition() -> String {
    let mut bytes = [0; 8];
    rand::fill(&mut bytes).expect("the system has random numbers");
    format!("{:016x}", u64::from_be_bytes(bytes))
}

/// Record id of a part, or of its embeddings.
fn id(prefix: &str, document: &str, edition: &str, number: usize) -> String {
    format!("{prefix}{document}/{edition}/{number:06}")
}

/// The records of a document's parts. Analyses the whole text: not for the runtime's threads.
pub(super) fn part_records(info: &DocumentInfo, edition: &str, text: &str) -> Vec<NewRecord> {
    let heading = heading(&info.title, text);
    let mut first = 0;
    let mut records = Vec::new();
    for (number, text) in chunk::parts(text).into_iter().enumerate() {
        let part = Part {
            document: info.id.clone(),
            edition: edition.to_owned(),
            title: info.title.clone(),
            source: info.source.clone(),
            first,
        };
        first += chunk::chunks(text).len() as u64;
        records.push(NewRecord {
            id: id(PART, &info.id, edition, number),
            body: serde_json::to_value(part).expect("it has text keys").into(),
            text: Some(SearchText::new(&heading, text)),
            data: Some(text.as_bytes().to_vec()),
            due: None,
        });
    }
    records
}

/// What every part of a document is found by: its title and beginning.
pub(super) fn heading(title: &str, text: &str) -> String {
    let lead: String = text.trim_start().chars().take(LEAD_CHARS).collect();
    match lead.starts_with(title) {
        true => lead,
        false => format!("{title}\n{lead}"),
    }
}

/// The records of the embeddings of a document's passages.
pub(super) fn vector_records(
    document: &str,
    edition: &str,
    passages: &[usize],
    directions: Vec<Direction>,
) -> Vec<NewRecord> {
    let mut directions = directions.into_iter();
    let records = passages.iter().enumerate().map(|(number, count)| NewRecord {
        id: id(VECTORS, document, edition, number),
        body: serde_json::json!({}).into(),
        text: None,
        data: Some(
            directions
                .by_ref()
                .take(*count)
                .flat_map(|one| one.to_bytes())
                .collect(),
        ),
        due: None,
    });
    records.collect()
}

pub(super) fn as_text(data: Vec<u8>) -> String {
    String::from_utf8(data).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
