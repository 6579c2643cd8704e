//! Which part of a text answers a question.

use std::collections::HashMap;

use crate::query::Query;
use crate::terms::analyse;

/// Characters of an excerpt.
const EXCERPT_CHARS: usize = 200;
/// Of these, characters before the first hit.
const BEFORE_CHARS: usize = 60;

/// A query whose terms have the weights of a ranking: tells parts of one text apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighed {
    /// Group and weight of each term.
    terms: HashMap<String, (usize, f32)>,
    groups: usize,
}

impl Weighed {
    /// The weights are those of [`crate::Ranking`].
    pub fn new(query: &Query, weights: &[f32]) -> Self {
        let mut terms = HashMap::new();
        let mut weights = weights.iter().copied();
        for (group, alternatives) in query.groups.iter().enumerate() {
            for wanted in alternatives {
                let weight = weights.next().unwrap_or(wanted.weight);
                terms.entry(wanted.term.clone()).or_insert((group, weight));
            }
        }
        Self {
            terms,
            groups: query.groups.len(),
        }
    }

    /// How well a passage fits: what it has of each group, once.
    fn score(&self, passage: &str) -> f32 {
        let mut best = vec![(0.0_f32, 0.0_f32); self.groups];
        for token in analyse(passage).0 {
            if let Some((group, weight)) = self.terms.get(&token.term) {
                let (most, count) = &mut best[*group];
                *most = most.max(*weight);
                *count += 1.0;
            }
        }
        best.iter()
            .map(|(weight, count)| weight * count / (count + 1.2))
            .sum()
    }
}

/// Index of the passage that fits best; the first of equals.
pub fn best_passage(query: &Weighed, passages: &[&str]) -> usize {
    let mut best = (0, f32::MIN);
    for (index, passage) in passages.iter().enumerate() {
        let score = query.score(passage);
        if score > best.1 {
            best = (index, score);
        }
    }
    best.0
}

/// A piece of the text around the place that fits the query best; its beginning if none does.
pub fn excerpt(query: &Weighed, text: &str) -> String {
    let mut hits: Vec<(usize, usize, f32)> = analyse(text)
        .0
        .into_iter()
        .filter_map(|token| {
            query
                .terms
                .get(&token.term)
                .map(|(group, weight)| (token.at, *group, *weight))
        })
        .collect();
    hits.sort_unstable_by_key(|(at, ..)| *at);
    let mut best = (0, f32::MIN);
    for (index, (at, ..)) in hits.iter().enumerate() {
        let mut seen = vec![0.0_f32; query.groups];
        let near = hits[index..]
            .iter()
            .take_while(|(other, ..)| other - at < EXCERPT_CHARS - BEFORE_CHARS);
        near.for_each(|(_, group, weight)| seen[*group] = seen[*group].max(*weight));
        let score: f32 = seen.iter().sum();
        if score > best.1 {
            best = (*at, score);
        }
    }
    let before = text[..best.0].char_indices().rev().take(BEFORE_CHARS).last();
    let start = before.map_or(best.0, |(start, _)| start);
    let start = match text[start..best.0].find(char::is_whitespace) {
        Some(space) if start > 0 => start + space,
        _ => start,
    };
    let piece: String = text[start..].trim_start().chars().take(EXCERPT_CHARS).collect();
    piece.trim_end().to_owned()
}
