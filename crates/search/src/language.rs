//! The languages whose inflection is known, and how a text's language is told.

use std::cell::RefCell;
use std::collections::HashMap;

use rust_stemmers::{Algorithm, Stemmer};

use crate::stopwords::{Languages, languages_of};

/// A language with stop words and a stemmer. A text in any other is found by its plain words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Language {
    English,
    German,
    Italian,
    French,
    Spanish,
    Portuguese,
    Dutch,
    Swedish,
    Danish,
    Norwegian,
    Finnish,
    Romanian,
    Hungarian,
    Turkish,
    Russian,
}

const ALL: [Language; 15] = [
    Language::English,
    Language::German,
    Language::Italian,
    Language::French,
    Language::Spanish,
    Language::Portuguese,
    Language::Dutch,
    Language::Swedish,
    Language::Danish,
    Language::Norwegian,
    Language::Finnish,
    Language::Romanian,
    Language::Hungarian,
    Language::Turkish,
    Language::Russian,
];

/// Of a hundred words, so many are stop words at least in running text of any of these languages.
const STOPWORDS_PERCENT_MIN: usize = 8;
/// Words of a text that may be too short to have stop words.
const FEW_WORDS: usize = 30;
/// Longest word that is stemmed; what is longer is no word.
const STEMMED_CHARS_MAX: usize = 40;

impl Language {
    /// The language of a tag such as `it` or `it-IT`; none for one without stop words and a stemmer.
    pub fn of_tag(tag: &str) -> Option<Self> {
        let code = tag.split(['-', '_']).next().unwrap_or_default();
        Some(match code.to_ascii_lowercase().as_str() {
            "en" => Self::English,
            "de" => Self::German,
            "it" => Self::Italian,
            "fr" => Self::French,
            "es" => Self::Spanish,
            "pt" => Self::Portuguese,
            "nl" => Self::Dutch,
            "sv" => Self::Swedish,
            "da" => Self::Danish,
            "no" | "nb" | "nn" => Self::Norwegian,
            "fi" => Self::Finnish,
            "ro" => Self::Romanian,
            "hu" => Self::Hungarian,
            "tr" => Self::Turkish,
            "ru" => Self::Russian,
            _ => return None,
        })
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        ALL.into_iter()
    }

    pub(crate) fn bit(self) -> Languages {
        1 << self as u32
    }

    /// The languages of a set.
    pub(crate) fn of_set(set: Languages) -> impl Iterator<Item = Self> {
        ALL.into_iter().filter(move |language| set & language.bit() != 0)
    }

    /// The stem of a word in lower case, with its accents.
    pub(crate) fn stem(self, lower: &str) -> String {
        thread_local! {
            static STEMMERS: RefCell<HashMap<Language, Stemmer>> = RefCell::default();
        }
        if lower.chars().count() > STEMMED_CHARS_MAX {
            return lower.to_owned();
        }
        STEMMERS.with_borrow_mut(|stemmers| {
            let stemmer = stemmers
                .entry(self)
                .or_insert_with(|| Stemmer::create(self.algorithm()));
            stemmer.stem(lower).into_owned()
        })
    }

    fn algorithm(self) -> Algorithm {
        match self {
            Self::English => Algorithm::English,
            Self::German => Algorithm::German,
            Self::Italian => Algorithm::Italian,
            Self::French => Algorithm::French,
            Self::Spanish => Algorithm::Spanish,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Dutch => Algorithm::Dutch,
            Self::Swedish => Algorithm::Swedish,
            Self::Danish => Algorithm::Danish,
            Self::Norwegian => Algorithm::Norwegian,
            Self::Finnish => Algorithm::Finnish,
            Self::Romanian => Algorithm::Romanian,
            Self::Hungarian => Algorithm::Hungarian,
            Self::Turkish => Algorithm::Turkish,
            Self::Russian => Algorithm::Russian,
        }
    }
}

/// Counts stop words to tell the language of a text.
#[derive(Default)]
pub(crate) struct Detector {
    words: usize,
    counts: [usize; ALL.len()],
}

impl Detector {
    pub fn add(&mut self, lower: &str, folded: &str) {
        self.words += 1;
        let of = languages_of(lower, folded);
        if of != 0 {
            for language in Language::of_set(of) {
                self.counts[language as usize] += 1;
            }
        }
    }

    /// The languages whose stems a text is found by: the one that it is in, if that is one of ours. Who can tell that of
    /// a few words? Those are found by the stems of all languages that they may be in.
    pub fn languages(&self) -> Languages {
        let best = self.candidates();
        if self.words <= FEW_WORDS {
            return if best == 0 { EVERY_LANGUAGE } else { best };
        }
        let most = self.counts.iter().copied().max().unwrap_or(0);
        match most * 100 >= self.words * STOPWORDS_PERCENT_MIN {
            true => best,
            false => 0,
        }
    }

    /// The languages that a question may be in: those with most of its words as stop words, none if it has no stop words.
    pub fn candidates(&self) -> Languages {
        let most = self.counts.iter().copied().max().unwrap_or(0);
        let best = ALL
            .into_iter()
            .filter(|language| most > 0 && self.counts[*language as usize] == most);
        best.fold(0, |set, language| set | language.bit())
    }
}

/// Every language.
pub(crate) const EVERY_LANGUAGE: Languages = (1 << ALL.len()) - 1;
