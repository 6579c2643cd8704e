//! Ranking: BM25 over the rows of one set.

use std::collections::HashMap;

use crate::query::Query;
use crate::terms::IMPACTS;

/// The best rows of a set, and what each term of the query was worth in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ranking {
    /// Rows and their scores, best first.
    pub rows: Vec<(u64, f64)>,
    /// Weight of each term in [`Query`]'s order.
    pub weights: Vec<f32>,
}

/// Ranks rows. `lists` are the rows of each of the query's lookups, `total` is the number of rows in the set: how rare a
/// term is depends on this set alone, so scores neither depend on nor reveal what others store.
pub fn rank(query: &Query, lists: &[Vec<u64>], total: u64, limit: usize) -> Ranking {
    let mut scores: HashMap<u64, f32> = HashMap::new();
    let mut weights = Vec::new();
    let mut lists = lists.chunks(IMPACTS.len());
    for group in &query.groups {
        // A text that has both the word and its stem has one of them: the better one counts.
        let mut best: HashMap<u64, f32> = HashMap::new();
        for wanted in group {
            let classes = lists.next().unwrap_or_default();
            let rows: usize = classes.iter().map(Vec::len).sum();
            let weight = wanted.weight * rarity(rows as f32, total as f32);
            weights.push(weight);
            for (rows, impact) in classes.iter().zip(IMPACTS) {
                for row in rows {
                    let score = best.entry(*row).or_default();
                    *score = score.max(weight * impact);
                }
            }
        }
        for (row, score) in best {
            *scores.entry(row).or_default() += score;
        }
    }
    let mut rows: Vec<(u64, f64)> = scores
        .into_iter()
        .map(|(row, score)| (row, f64::from(score)))
        .collect();
    let better = |a: &(u64, f64), b: &(u64, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if rows.len() > limit {
        rows.select_nth_unstable_by(limit, better);
        rows.truncate(limit);
    }
    rows.sort_unstable_by(better);
    Ranking { rows, weights }
}

/// Inverse document frequency, never negative.
fn rarity(rows: f32, total: f32) -> f32 {
    (1.0 + (total - rows + 0.5).max(0.0) / (rows + 0.5)).ln()
}
