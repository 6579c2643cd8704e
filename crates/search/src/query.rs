//! What a question looks for.

use crate::fold::{lower, plain};
use crate::language::{Detector, EVERY_LANGUAGE};
use crate::segment::{Script, Segment, segments};
use crate::stopwords::{HAN_PHRASES, HAN_WEAK, Languages, languages_of};
use crate::terms::{IMPACTS, characters, cut, stems, stored};

/// Most terms of a question; further ones are ignored.
const TERMS_MAX: usize = 48;
/// Weight of a stem beside the word itself: a second chance, since stems help some languages and hurt others.
const STEM_WEIGHT: f32 = 0.6;
/// Weight of grammar in scripts without spaces: hiragana, and Chinese characters such as 的.
const GRAMMAR_WEIGHT: f32 = 0.2;
/// Weight of one Han character: it may be a word, or a part of many.
const CHARACTER_WEIGHT: f32 = 0.5;

/// A question: groups of terms of which a text should have one each.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Query {
    pub(crate) groups: Vec<Vec<Wanted>>,
}

/// A term and what it counts, if a text has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub term: String,
    pub weight: f32,
}

impl Query {
    /// Analyses a question, or words that the answer has.
    pub fn new(question: &str) -> Self {
        let segments: Vec<Segment> = segments(question).collect();
        let words: Vec<Word> = segments
            .iter()
            .filter(|segment| segment.script == Script::Spaced)
            .map(|segment| Word::new(cut(&question[segment.range.clone()])))
            .filter(|word| !word.plain.is_empty())
            .collect();
        let mut detector = Detector::default();
        words
            .iter()
            .for_each(|word| detector.add(&word.lower, &word.plain));
        let languages = detector.candidates();
        let mut groups = Vec::new();
        for segment in &segments {
            if segment.script != Script::Spaced {
                unspaced(question, segment, &mut groups);
            }
        }
        let only_stopwords = groups.is_empty()
            && words
                .iter()
                .all(|word| languages_of(&word.lower, &word.plain) & languages != 0);
        for word in words {
            if only_stopwords || languages_of(&word.lower, &word.plain) & languages == 0 {
                groups.push(word.alternatives(languages));
            }
        }
        let mut query = Self::default();
        for group in groups {
            if !query.groups.contains(&group) && query.groups.len() < TERMS_MAX {
                query.groups.push(group);
            }
        }
        query
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The terms to look up in the index. [`crate::rank`] takes the rows of each, in this order.
    pub fn lookups(&self) -> Vec<String> {
        let terms = self.groups.iter().flatten();
        terms
            .flat_map(|wanted| (0..IMPACTS.len()).map(|class| stored(class, &wanted.term)))
            .collect()
    }
}

/// A word of a question.
struct Word {
    lower: String,
    plain: String,
}

impl Word {
    fn new(word: &str) -> Self {
        let lower = lower(word);
        let plain = plain(&lower);
        Self { lower, plain }
    }

    /// The word, and its stems in the languages that the question may be in; in all of them if nobody knows.
    fn alternatives(self, languages: Languages) -> Vec<Wanted> {
        let known = if languages == 0 { EVERY_LANGUAGE } else { languages };
        let stems = stems(known, &self.lower, &self.plain).into_iter();
        let mut group = vec![Wanted {
            term: self.plain,
            weight: 1.0,
        }];
        group.extend(stems.map(|term| Wanted {
            term,
            weight: STEM_WEIGHT,
        }));
        group
    }
}

/// Terms of a run without spaces: pairs of characters, or its one character.
fn unspaced(question: &str, segment: &Segment, groups: &mut Vec<Vec<Wanted>>) {
    let mut push = |term: String, weight| groups.push(vec![Wanted { term, weight }]);
    match segment.script {
        Script::Han => {
            for part in without_phrases(&question[segment.range.clone()]) {
                let part: Vec<char> = part.chars().collect();
                let weak = part.iter().any(|c| HAN_WEAK.contains(*c));
                match part.as_slice() {
                    [alone] if weak => push(alone.to_string(), GRAMMAR_WEIGHT * CHARACTER_WEIGHT),
                    [alone] => push(alone.to_string(), CHARACTER_WEIGHT),
                    part => {
                        for pair in part.windows(2) {
                            let weak = pair.iter().any(|c| HAN_WEAK.contains(*c));
                            push(String::from_iter(pair), if weak { GRAMMAR_WEIGHT } else { 1.0 });
                        }
                    }
                }
            }
        }
        script => {
            let characters = characters(question, segment);
            let weight = if script == Script::Hiragana {
                GRAMMAR_WEIGHT
            } else {
                1.0
            };
            if let [(_, alone)] = characters.as_slice() {
                if script != Script::Hiragana {
                    push(alone.to_string(), GRAMMAR_WEIGHT);
                }
                return;
            }
            for pair in characters.windows(2) {
                push(String::from_iter([pair[0].1, pair[1].1]), weight);
            }
        }
    }
}

/// What is left of a run of Chinese characters between the phrases of a question; all of it if nothing is left.
fn without_phrases(run: &str) -> Vec<&str> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while at < run.len() {
        let phrase = HAN_PHRASES.iter().find(|phrase| run[at..].starts_with(**phrase));
        if let Some(phrase) = phrase {
            parts.push(&run[start..at]);
            at += phrase.len();
            start = at;
        } else {
            at += run[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    parts.push(&run[start..]);
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() {
        parts.push(run);
    }
    parts
}
