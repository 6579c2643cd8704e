//! What a text is found by.

use std::collections::HashMap;

use crate::fold::{lower, plain};
use crate::language::{Detector, Language};
use crate::segment::{Script, Segment, segments};
use crate::stopwords::{Languages, languages_of};

/// Version of the analysis. Rows that were indexed by an earlier one do not match the queries of this one, and are indexed
/// again.
pub const ANALYSIS: u32 = 1;

/// Marks a stem, which is no word of any text.
pub(crate) const STEM: char = '~';
/// Longest term in characters; the rest of a longer word is cut off.
const TERM_CHARS_MAX: usize = 48;
/// Occurrences that one in the heading counts as.
const HEADING_BOOST: f32 = 5.0;
/// Words of a text of usual length: in a longer one each occurrence says less.
const USUAL_WORDS: f32 = 400.0;
/// A shorter text counts as this long: otherwise one occurrence in it would say as much as many.
const SHORT_WORDS: usize = 100;
/// `k1` of BM25: how soon further occurrences stop to matter.
const SATURATION: f32 = 1.2;
/// `b` of BM25: how much the length matters.
const LENGTH_WEIGHT: f32 = 0.75;
/// Impacts that a term may have in a text. An impact is BM25's weight of the number of occurrences in a text of this
/// length; it is part of the stored term, rounded to one of these.
pub(crate) const IMPACTS: [f32; 6] = [0.35, 0.7, 1.05, 1.4, 1.75, 2.1];

/// A term of a text and where it stands.
pub(crate) struct Token {
    pub term: String,
    pub at: usize,
}

/// The terms that a text is found by, each once, with its impact: see [`crate::Query::lookups`]. Words of the heading,
/// such as a title, count more.
pub fn index_terms(heading: &str, text: &str) -> Vec<String> {
    let mut counts: HashMap<String, f32> = HashMap::new();
    let (tokens, words) = analyse(text);
    for token in tokens {
        *counts.entry(token.term).or_default() += 1.0;
    }
    for token in analyse(heading).0 {
        *counts.entry(token.term).or_default() += HEADING_BOOST;
    }
    let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * words.max(SHORT_WORDS) as f32 / USUAL_WORDS;
    let mut terms: Vec<String> = counts
        .into_iter()
        .map(|(term, count)| {
            let impact = count * (SATURATION + 1.0) / (count + SATURATION * length);
            stored(class(impact), &term)
        })
        .collect();
    terms.sort_unstable();
    terms
}

/// A term as it is stored: the class of its impact before it.
pub(crate) fn stored(class: usize, term: &str) -> String {
    format!("{class}{term}")
}

/// The class of the nearest impact.
fn class(impact: f32) -> usize {
    let step = IMPACTS[1] - IMPACTS[0];
    let nearest = ((impact - IMPACTS[0]) / step).round();
    (nearest.max(0.0) as usize).min(IMPACTS.len() - 1)
}

/// The terms of a text in its order, and the number of its words.
pub(crate) fn analyse(text: &str) -> (Vec<Token>, usize) {
    let mut detector = Detector::default();
    let mut words = Vec::new();
    let mut tokens = Vec::new();
    for segment in segments(text) {
        let at = segment.range.start;
        if segment.script == Script::Spaced {
            let lower = lower(cut(&text[segment.range]));
            let plain = plain(&lower);
            if !plain.is_empty() {
                detector.add(&lower, &plain);
                words.push((at, lower, plain));
            }
        } else {
            unspaced(text, &segment, &mut tokens);
        }
    }
    let characters = tokens.len();
    let languages = detector.languages();
    let count = words.len() + characters / 2;
    let mut stems: HashMap<String, Vec<String>> = HashMap::new();
    for (at, lower, plain) in words {
        if languages != 0 {
            let known = stems.get(&lower).cloned();
            let terms = known.unwrap_or_else(|| {
                let terms = self::stems(languages, &lower, &plain);
                stems.insert(lower, terms.clone());
                terms
            });
            tokens.extend(terms.into_iter().map(|term| Token { term, at }));
        }
        tokens.push(Token { term: plain, at });
    }
    (tokens, count)
}

/// The terms of a word's stems, each once; none in languages where it is a stop word.
pub(crate) fn stems(languages: Languages, lower: &str, folded: &str) -> Vec<String> {
    let mut terms = Vec::new();
    if folded.chars().all(|c| c.is_ascii_digit()) {
        return terms;
    }
    for language in Language::of_set(languages & !languages_of(lower, folded)) {
        let term = format!("{STEM}{}", plain(&language.stem(lower)));
        if !terms.contains(&term) {
            terms.push(term);
        }
    }
    terms
}

/// Terms of a run without spaces: its pairs of characters. Han characters are terms by themselves too, since one of them may be
/// a word.
fn unspaced(text: &str, segment: &Segment, tokens: &mut Vec<Token>) {
    let characters = characters(text, segment);
    for pair in characters.windows(2) {
        let (at, first) = pair[0];
        let term = String::from_iter([first, pair[1].1]);
        tokens.push(Token { term, at });
    }
    if segment.script == Script::Han || characters.len() == 1 {
        let alone = characters.into_iter().map(|(at, c)| Token {
            term: c.to_string(),
            at,
        });
        tokens.extend(alone);
    }
}

/// The characters of a run without spaces, with their places.
pub(crate) fn characters(text: &str, segment: &Segment) -> Vec<(usize, char)> {
    let start = segment.range.start;
    let run = &text[segment.range.clone()];
    match segment.script {
        // Half-width kana, whose voicing marks are characters of their own, become one each.
        Script::Katakana if run.contains(|c| matches!(c, '\u{ff66}'..='\u{ff9f}')) => {
            lower(run).chars().map(|c| (start, c)).collect()
        }
        _ => run.char_indices().map(|(at, c)| (start + at, c)).collect(),
    }
}

pub(crate) fn cut(word: &str) -> &str {
    match word.char_indices().nth(TERM_CHARS_MAX) {
        Some((end, _)) => &word[..end],
        None => word,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Query, rank};

    /// The texts that a question finds, best first.
    fn found(texts: &[&str], question: &str) -> Vec<usize> {
        let rows: Vec<Vec<String>> = texts.iter().map(|text| index_terms("", text)).collect();
        let query = Query::new(question);
        let having = |term: &String| {
            let rows = rows.iter().enumerate().filter(|(_, terms)| terms.contains(term));
            rows.map(|(row, _)| row as u64).collect()
        };
        let lists: Vec<Vec<u64>> = query.lookups().iter().map(having).collect();
        let ranking = rank(&query, &lists, texts.len() as u64, 10);
        ranking.rows.iter().map(|(row, _)| *row as usize).collect()
    }

    #[test]
    fn spelling_and_inflection_do_not_matter() {
        let texts = [
            "The running shoes are in the box by the door.",
            "Die Häuser der Straße sind alle gelb und haben einen Garten.",
            "I gatti dormono sul divano della cucina.",
        ];
        assert_eq!(found(&texts, "run shoe"), [0]);
        assert_eq!(found(&texts, "Haus in der STRASSE"), [1]);
        assert_eq!(found(&texts, "dove dorme il gatto?"), [2]);
    }

    #[test]
    fn scripts_without_spaces_are_found_by_words_inside() {
        let texts = [
            "如何查看磁盘空间",
            "ファイルを消す方法",
            "서울에서 만나요",
            "我喜欢喝茶",
        ];
        assert_eq!(found(&texts, "磁盘"), [0]);
        assert_eq!(found(&texts, "ファイルの消去"), [1]);
        assert_eq!(found(&texts, "서울"), [2]);
        assert_eq!(found(&texts, "茶"), [3]);
        assert_eq!(found(&texts, "怎么查看？"), [0]);
    }

    #[test]
    fn the_word_itself_stands_before_its_stem_and_rare_words_before_common_ones() {
        let texts = [
            "She walks to the lake with the dog.",
            "She walked to the lake with the dog.",
            "She saw the lake.",
        ];
        assert_eq!(found(&texts, "walked")[0], 1);
        assert_eq!(found(&texts, "walked").len(), 2);
        assert_eq!(found(&texts, "lake dog")[2], 2);
    }

    #[test]
    fn stop_words_are_looked_for_when_there_is_nothing_else() {
        assert_eq!(
            found(&["to be or not to be", "apples"], "to be or not to be"),
            [0]
        );
        assert_eq!(found(&["where is it", "apples"], "where are the apples?"), [1]);
    }

    #[test]
    fn the_heading_counts_more_than_the_text() {
        let terms = |heading, text| {
            index_terms(heading, text)
                .into_iter()
                .find(|term| term.ends_with("tea"))
        };
        assert!(terms("tea", "water boils") > terms("", "tea water boils"));
    }

    proptest! {
        #[test]
        fn terms_have_no_spaces_and_every_text_is_found_by_itself(text in "\\PC{0,60}") {
            let terms = index_terms("", &text);
            prop_assert!(terms.iter().all(|term| !term.contains(|c: char| c.is_whitespace() || c == '"')), "{:?}", terms);
            let query = Query::new(&text);
            if !query.is_empty() {
                prop_assert!(query.lookups().iter().any(|term| terms.contains(term)), "{:?} {:?}", query, terms);
            }
        }
    }
}
