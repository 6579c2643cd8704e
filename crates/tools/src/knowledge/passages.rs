//! The stored passages of documents. They are written and removed in small batches, so that a large document blocks no
//! other write; the document's record decides which of them are current.

use aws_lc_rs::rand;
use toolgate_engine::knowledge::DocumentInfo;
use toolgate_engine::records::{Amendment, Change, Listing, NewRecord, RecordSet, Records};
use toolgate_engine::store::StoreError;
use toolgate_kernel::time::Time;

use super::Stored;
use super::embed::Direction;

/// Id prefix of passages.
const PASSAGE: &str = "c/";
/// Most passages of one write.
const BATCH: usize = 64;
/// Passages per page of a similarity search.
const PAGE: usize = 2000;

/// The passages of a record set.
pub(super) struct Passages<'l> {
    pub records: &'l dyn Records,
    pub set: RecordSet,
}

impl Passages<'_> {
    /// Ids of all passages of a document, of every edition.
    pub async fn of(&self, document: &str) -> Result<Vec<String>, StoreError> {
        let listing = Listing {
            prefix: format!("{PASSAGE}{document}/"),
            after: None,
            limit: usize::MAX,
        };
        let listed = self.records.list_records(self.set, listing).await?;
        Ok(listed.into_iter().map(|record| record.id).collect())
    }

    /// Adds passages while the set has no more than `most` records.
    pub async fn add(&self, new: Vec<NewRecord>, most: u64, now: Time) -> Result<(), StoreError> {
        let mut new = new.into_iter().map(Change::Put).peekable();
        while new.peek().is_some() {
            let amendment = Amendment {
                at_most: Some(most),
                changes: new.by_ref().take(BATCH).collect(),
                ..Amendment::default()
            };
            self.records.amend_records(self.set, amendment, now).await?;
        }
        Ok(())
    }

    /// Deletes passages that are no longer current. Leftovers are deleted when the document is written again.
    pub async fn forget(&self, ids: Vec<String>, now: Time) {
        let mut gone = ids.into_iter().map(Change::Remove).peekable();
        while gone.peek().is_some() {
            let changes = gone.by_ref().take(BATCH).collect();
            let changed = self.records.change_records(self.set, Vec::new(), changes, now);
            if let Err(error) = changed.await {
                return tracing::warn!(%error, "passages of an earlier edition are left");
            }
        }
    }

    /// Ids of the most similar passages, best first.
    pub async fn alike(&self, wanted: &Direction, most: usize) -> Result<Vec<(f64, String)>, StoreError> {
        let mut best = Vec::new();
        let mut after = None;
        loop {
            let listing = Listing {
                prefix: PASSAGE.into(),
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
fn rank(
    mut best: Vec<(f64, String)>,
    page: Vec<(String, Vec<u8>)>,
    wanted: &Direction,
    most: usize,
) -> Vec<(f64, String)> {
    let scored = page
        .into_iter()
        .filter_map(|(id, kept)| Some((wanted.likeness(&kept)?, id)));
    best.extend(scored);
    best.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    best.truncate(most);
    best
}

/// A random id of an edition.
pub(super) fn edition() -> String {
    let mut bytes = [0; 8];
    rand::fill(&mut bytes).expect("the system has random numbers");
    format!("{:016x}", u64::from_be_bytes(bytes))
}

/// The records of a document's passages.
pub(super) fn changes(
    info: &DocumentInfo,
    edition: &str,
    chunks: Vec<String>,
    directions: Option<Vec<Direction>>,
) -> Vec<NewRecord> {
    let record = |(number, text): (usize, String)| {
        let stored = Stored {
            document: info.id.clone(),
            edition: edition.to_owned(),
            title: info.title.clone(),
            source: info.source.clone(),
            number: number as u64,
            text,
        };
        NewRecord {
            id: format!("{PASSAGE}{}/{edition}/{number:06}", info.id),
            text: Some(format!("{}\n{}", info.title, stored.text)),
            body: serde_json::to_value(stored).expect("it has text keys").into(),
            data: directions
                .as_ref()
                .map(|directions| directions[number].to_bytes()),
            due: None,
        }
    };
    chunks.into_iter().enumerate().map(record).collect()
}
