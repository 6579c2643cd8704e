//! Work on stored documents that nobody waits for: terms of an earlier analysis, documents as earlier versions stored them,
//! embeddings that are missing or of another model. What is left to do is read from the store, so a restart loses nothing.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolgate_engine::clock::Clock;
use toolgate_engine::records::{Amendment, Listing, Record, RecordSet, Reindexed, SearchText};
use toolgate_engine::store::StoreError;
use toolgate_kernel::time::Time;

use super::parts::{self, PART, PASSAGE, Part, Parts, as_text};
use super::{DOCUMENT, KIND, Kept, Library, as_it_is, chunk, corrupt, document, put};
use crate::memory;

/// Records that are read and indexed at once.
const BATCH: usize = 16;
/// Documents of a page while looking for those without embeddings.
const PAGE: usize = 100;
/// First and longest wait after a failure of the store or of the embedding server.
const WAIT_FIRST: Duration = Duration::from_secs(5);
const WAIT_MAX: Duration = Duration::from_secs(600);

/// Documents without embeddings in one pass after which the server is not asked any more.
const FAILURES_MAX: usize = 8;

/// Why upkeep stopped before everything was done.
#[derive(Debug, thiserror::Error)]
pub enum UpkeepError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The embedding server cannot be used now.
    #[error("the embedding server cannot be used now: {0}")]
    Embeddings(String),
}

impl Library {
    /// Keeps documents and memories findable until `stop` fires: at once, whenever a document was stored without
    /// embeddings, and again some time after a failure.
    pub async fn upkeep(&self, clock: &dyn Clock, stop: CancellationToken) {
        let mut wait = WAIT_FIRST;
        loop {
            let done = tokio::select! {
                done = self.upkeep_once(clock.now()) => done,
                () = stop.cancelled() => return,
            };
            let pause = async {
                match done {
                    Ok(()) => {
                        wait = WAIT_FIRST;
                        self.unfinished.notified().await;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "upkeep of documents goes on in {} s", wait.as_secs());
                        tokio::time::sleep(wait).await;
                        wait = (wait * 2).min(WAIT_MAX);
                    }
                }
            };
            tokio::select! {
                () = pause => (),
                () = stop.cancelled() => return,
            }
        }
    }

    /// Does all that there is to do now.
    pub async fn upkeep_once(&self, now: Time) -> Result<(), UpkeepError> {
        self.index_again(memory::KIND, now).await?;
        self.index_again(KIND, now).await?;
        if self.embedder.is_some() {
            let mut failures = Vec::new();
            for set in self.records.record_sets(KIND).await? {
                self.embed_set(set, now, &mut failures).await?;
            }
            return failures.pop().map_or(Ok(()), Err);
        }
        Ok(())
    }

    async fn index_again(&self, kind: &'static str, now: Time) -> Result<(), StoreError> {
        let mut count = 0;
        loop {
            let stale = self.records.stale_records(kind, BATCH).await?;
            if stale.is_empty() {
                break;
            }
            count += stale.len();
            for (set, record) in stale {
                self.index_record(set, record, now).await?;
            }
        }
        if count > 0 {
            tracing::info!(kind, count, "records are indexed again");
        }
        Ok(())
    }

    /// Indexes one record again, or what replaces it.
    async fn index_record(&self, set: RecordSet, record: Record, now: Time) -> Result<(), StoreError> {
        if set.kind == KIND && record.id.starts_with(PASSAGE) {
            let owner = record.id[PASSAGE.len()..].split('/').next().unwrap_or_default();
            if self.convert(set, owner, now).await? {
                return Ok(());
            }
        }
        let (id, version) = (record.id.clone(), record.version);
        let text = match set.kind {
            memory::KIND => memory::search_text(&record),
            _ => self.part_text(set, record).await?,
        };
        // What cannot be read is found by nothing, rather than read again forever.
        let text = text.unwrap_or_else(|| {
            tracing::error!(
                id,
                kind = set.kind,
                "a stored record cannot be read and is not found by search"
            );
            SearchText::new("", "")
        });
        let reindexed = Reindexed { id, version, text };
        self.records.reindex_records(set, vec![reindexed]).await
    }

    async fn part_text(&self, set: RecordSet, record: Record) -> Result<Option<SearchText>, StoreError> {
        let Ok(part) = record.body.read::<Part>() else {
            return Ok(None);
        };
        let first = format!("{PART}{}/{}/000000", part.document, part.edition);
        let first = self.records.record(set, &first).await?;
        let lead = as_text(first.and_then(|first| first.data).unwrap_or_default());
        let heading = parts::heading(&part.title, &lead);
        let text = as_text(record.data.unwrap_or_default());
        Ok(Some(analysed(move || SearchText::new(&heading, &text)).await))
    }

    /// Stores a document of an earlier version in today's form. What is left of one that is gone is removed. False if the
    /// document cannot be read.
    async fn convert(&self, set: RecordSet, id: &str, now: Time) -> Result<bool, StoreError> {
        let parts = Parts {
            records: &*self.records,
            set,
        };
        let mut old = parts.of(id).await?;
        let record = self.records.record(set, &format!("{DOCUMENT}{id}")).await?;
        if let Some(record) = record {
            let Ok(kept) = record.body.read::<Kept>() else {
                return Ok(false);
            };
            if kept.parts.is_some() {
                // It was converted, and a crash left these.
                old.retain(|id| id.starts_with(PASSAGE));
            } else {
                let text = as_text(record.data.unwrap_or_default());
                let before = Some(record.version);
                match self.store(set, kept.info, text, before, &old, now).await {
                    // Somebody put it again meanwhile, and removes what was there before.
                    Err(StoreError::Conflict) => return Ok(true),
                    stored => _ = stored?,
                }
            }
        }
        parts.forget(old, now).await;
        Ok(true)
    }

    /// One document that the server refuses must not keep the others from their embeddings: it is tried again in the next
    /// pass. After some the server is not asked any more in this one.
    async fn embed_set(
        &self,
        set: RecordSet,
        now: Time,
        failures: &mut Vec<UpkeepError>,
    ) -> Result<(), UpkeepError> {
        let mut after = None;
        loop {
            let listing = Listing {
                prefix: DOCUMENT.into(),
                after,
                limit: PAGE,
            };
            let page = self.records.list_records(set, listing).await?;
            after = page.last().map(|record| record.id.clone());
            for record in &page {
                let kept: Result<Kept, _> = record.body.read().map_err(corrupt);
                let embedded = match kept {
                    Ok(kept) if kept.embedding != self.mark() && kept.parts.is_some() => {
                        self.embed_document(set, kept, record.version, now).await
                    }
                    Ok(_) => Ok(()),
                    Err(error) => Err(error.into()),
                };
                if let Err(error) = embedded {
                    tracing::warn!(%error, document = record.id, "a document has no embeddings yet");
                    if failures.len() >= FAILURES_MAX {
                        return Err(error);
                    }
                    failures.push(error);
                }
            }
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Adds the embeddings of a document. They count once the document says so.
    async fn embed_document(
        &self,
        set: RecordSet,
        kept: Kept,
        version: u64,
        now: Time,
    ) -> Result<(), UpkeepError> {
        let Some(embedder) = &self.embedder else {
            return Ok(());
        };
        let parts = Parts {
            records: &*self.records,
            set,
        };
        let id = kept.info.id.clone();
        let passages: Vec<Vec<String>> = parts
            .texts(&id, &kept.edition)
            .await?
            .iter()
            .map(|text| chunk::chunks(text))
            .collect();
        let counts: Vec<usize> = passages.iter().map(Vec::len).collect();
        let told = embedder.embed(&passages.concat()).await;
        let directions = told.map_err(UpkeepError::Embeddings)?;
        let new = parts::vector_records(&id, &kept.edition, &counts, directions);
        let added: Vec<String> = new.iter().map(|record| record.id.clone()).collect();
        let mut changes = parts.add(new, u64::MAX, now).await?;
        let kept = Kept {
            embedding: self.mark(),
            ..kept
        };
        changes.push(put(&kept));
        let amendment = Amendment {
            expected: vec![as_it_is(&id, Some(version))],
            changes,
            ..Amendment::default()
        };
        match self.records.amend_records(set, amendment, now).await {
            Err(StoreError::Conflict) => {
                // Another edition was put meanwhile, with embeddings of its own or soon to have them.
                let current = document(&*self.records, set, &id).await?;
                if current.is_none_or(|(current, _)| current.edition != kept.edition) {
                    parts.forget(added, now).await;
                }
                Ok(())
            }
            amended => Ok(amended?),
        }
    }
}

/// Analysis off the runtime's threads.
async fn analysed<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.expect("analysis does not panic, and is not cancelled")
}
