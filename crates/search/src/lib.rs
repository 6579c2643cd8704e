//! Full-text search for every language, without a store: text becomes opaque terms ([`index_terms`]), a question
//! becomes the terms to look up ([`Query`]), and the rows that have them become a ranking ([`rank`]). An utterance finds
//! the triggers that it has ([`match_triggers`]).
//!
//! A store only keeps which rows have which terms. How often a word occurs is part of the term, so a list of row
//! numbers per term is all that ranking needs, and every store ranks alike. No IO, no clock, no state.

mod excerpt;
mod fold;
mod language;
mod query;
mod rank;
mod segment;
mod stopwords;
mod terms;
mod triggers;
mod typos;

pub use excerpt::{Weighed, best_passage, excerpt};
pub use language::Language;
pub use query::Query;
pub use rank::{Ranking, rank};
pub use terms::{ANALYSIS, index_terms};
pub use triggers::{
    How, Order, TRIGGER_WORDS_MAX, TriggerMatch, UTTERANCE_WORDS_MAX, Utterance, WordMatch, match_triggers,
};
