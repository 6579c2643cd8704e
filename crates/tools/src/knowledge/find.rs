//! Searching documents: by words, by meaning, and both rankings together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use toolgate_engine::knowledge::Passage;
use toolgate_engine::records::{RecordSet, Records};
use toolgate_engine::store::StoreError;
use toolgate_search::{Weighed, best_passage, excerpt};

use super::embed::Direction;
use super::parts::{Part, Parts, as_text};
use super::{Kept, chunk, corrupt, document};
use crate::records::share;

/// Hits of each ranking that are merged.
const CANDIDATES: usize = 50;
/// Constant `k` of reciprocal rank fusion, at its usual value.
const RANK_SOFTENER: f64 = 60.0;
/// Weight of each further part of one document, so that a long document does not hide the others.
const REPEAT_WEIGHT: f64 = 0.5;

/// A part that was found.
struct Hit {
    score: f64,
    set: RecordSet,
    id: String,
    part: Part,
    /// The passage that was found by its meaning; among those found by words the best is chosen later.
    passage: Option<usize>,
}

/// The best passages of these collections.
pub(super) async fn find(
    records: &dyn Records,
    sets: &[RecordSet],
    query: &str,
    direction: Option<&Direction>,
    limit: usize,
) -> Result<Vec<Passage>, StoreError> {
    let mut editions = Editions {
        records,
        known: HashMap::new(),
    };
    let found = records.find_records(sets, query, CANDIDATES).await?;
    let mut by_words = Vec::new();
    for hit in found.hits {
        let part: Part = hit.record.body.read().map_err(corrupt)?;
        if editions.is_current(hit.set, &part).await? {
            by_words.push(Hit {
                score: hit.score,
                set: hit.set,
                id: hit.record.id,
                part,
                passage: None,
            });
        }
    }
    let mut hits = match direction {
        None => by_words,
        Some(direction) => joined([by_words, by_meaning(&mut editions, sets, direction).await?]),
    };
    spread(&mut hits);
    hits.truncate(limit);
    let best = hits.first().map_or(1.0, |hit| hit.score);
    let mut passages = Vec::with_capacity(hits.len());
    for mut hit in hits {
        hit.score = share(hit.score, best);
        passages.extend(shown(records, hit, &found.query).await?);
    }
    Ok(passages)
}

async fn by_meaning(
    editions: &mut Editions<'_>,
    sets: &[RecordSet],
    direction: &Direction,
) -> Result<Vec<Hit>, StoreError> {
    let mut hits = Vec::new();
    for set in sets {
        let parts = Parts {
            records: editions.records,
            set: *set,
        };
        for alike in parts.alike(direction, CANDIDATES).await? {
            // A part that was deleted meanwhile is skipped.
            let Some(record) = editions.records.record(*set, &alike.part).await? else {
                continue;
            };
            let part: Part = record.body.read().map_err(corrupt)?;
            if editions.is_current(*set, &part).await? {
                hits.push(Hit {
                    score: alike.score,
                    set: *set,
                    id: alike.part,
                    part,
                    passage: Some(alike.passage),
                });
            }
        }
    }
    Ok(hits)
}

/// Which edition of each document is current.
struct Editions<'r> {
    records: &'r dyn Records,
    known: HashMap<(RecordSet, String), Option<String>>,
}

impl Editions<'_> {
    async fn is_current(&mut self, set: RecordSet, part: &Part) -> Result<bool, StoreError> {
        let current = match self.known.entry((set, part.document.clone())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let kept = document(self.records, set, &part.document).await?;
                place.insert(kept.map(|(Kept { edition, .. }, _)| edition))
            }
        };
        Ok(current.as_ref() == Some(&part.edition))
    }
}

/// Reciprocal rank fusion: merges rankings by rank, because their scores are not comparable. Each part counts once per
/// ranking, with its best passage.
fn joined(rankings: [Vec<Hit>; 2]) -> Vec<Hit> {
    let mut all: HashMap<(RecordSet, String), (Hit, usize)> = HashMap::new();
    for (turn, mut ranking) in rankings.into_iter().enumerate() {
        ranking.sort_by(|a, b| b.score.total_cmp(&a.score));
        for (rank, mut hit) in ranking.into_iter().enumerate() {
            hit.score = 1.0 / (RANK_SOFTENER + 1.0 + rank as f64);
            match all.entry((hit.set, hit.id.clone())) {
                Entry::Vacant(place) => _ = place.insert((hit, turn)),
                Entry::Occupied(mut known) => {
                    let (known, last) = known.get_mut();
                    if *last != turn {
                        *last = turn;
                        known.score += hit.score;
                        known.passage = known.passage.or(hit.passage);
                    }
                }
            }
        }
    }
    all.into_values().map(|(hit, _)| hit).collect()
}

/// Orders hits by score, with those of one document spread out.
fn spread(hits: &mut [Hit]) {
    let by_score = |a: &Hit, b: &Hit| {
        let by_score = b.score.total_cmp(&a.score);
        by_score.then_with(|| (a.set, &a.id).cmp(&(b.set, &b.id)))
    };
    hits.sort_by(by_score);
    let mut seen: HashMap<(RecordSet, String), i32> = HashMap::new();
    for hit in hits.iter_mut() {
        let repeats = seen.entry((hit.set, hit.part.document.clone())).or_default();
        hit.score *= REPEAT_WEIGHT.powi(*repeats);
        *repeats += 1;
    }
    hits.sort_by(by_score);
}

/// The passage of a hit; none if it was deleted meanwhile.
async fn shown(records: &dyn Records, hit: Hit, query: &Weighed) -> Result<Option<Passage>, StoreError> {
    let Some(record) = records.record(hit.set, &hit.id).await? else {
        return Ok(None);
    };
    let text = as_text(record.data.unwrap_or_default());
    let mut chunks = chunk::chunks(&text);
    let best = || {
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        best_passage(query, &chunks)
    };
    let number = hit.passage.unwrap_or_else(best);
    if number >= chunks.len() {
        return Ok(None);
    }
    let text = chunks.swap_remove(number);
    Ok(Some(Passage {
        document_id: hit.part.document,
        title: hit.part.title,
        source: hit.part.source,
        passage: hit.part.first + number as u64,
        snippet: excerpt(query, &text),
        text,
        score: hit.score,
    }))
}
