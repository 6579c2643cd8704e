//! Finds what an utterance asks for by trigger words: case, accents, word order, inflection and small typos do not matter,
//! and every match says why it is one.

use std::collections::HashMap;

use crate::fold::{lower, plain};
use crate::language::Language;
use crate::segment::{Script, segments};
use crate::stopwords::languages_of;
use crate::typos::{distance, is_slip, typos_max};

/// Words of an utterance and its context that are looked at.
pub const UTTERANCE_WORDS_MAX: usize = 64;
/// Words of all triggers together that are looked at, one without words counts as one; triggers beyond match nothing.
pub const TRIGGER_WORDS_MAX: usize = 5_000;

/// What each way to match a word is worth.
const EXACT: f32 = 1.0;
const INFLECTED: f32 = 0.9;
const ONE_TYPO: f32 = 0.8;
const TWO_TYPOS: f32 = 0.65;
/// What a word of the context is worth, compared with one that was said.
const OF_CONTEXT: f32 = 0.5;
/// What a trigger is worth whose words were said in their order with others between, and in another order.
const APART: f32 = 0.95;
const REORDERED: f32 = 0.85;
/// Part of a score that says how much of the utterance the trigger accounts for.
const COVERAGE: f32 = 0.5;
/// Words of an utterance beyond which more of them do not make a match worse.
const COVERED_WORDS_MAX: usize = 6;
/// Shortest word that may be another form of a trigger.
const INFLECTED_CHARS: usize = 4;

/// What somebody said.
#[derive(Debug, Clone, Copy, Default)]
pub struct Utterance<'a> {
    /// The words that were said.
    pub text: &'a str,
    /// Texts that say what the conversation is about; their words count half.
    pub context: &'a [String],
    /// The language, if it is known: inflections of other languages do not count then.
    pub language: Option<Language>,
}

/// A trigger that an utterance has.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerMatch {
    /// Which list of triggers it stands in.
    pub list: usize,
    /// Its place in the list.
    pub trigger: usize,
    /// From 0 to 1; higher is better.
    pub score: f32,
    /// Whether its words were said one after the other, in their order.
    pub order: Order,
    /// Each word of the trigger, with what was said for it.
    pub words: Vec<WordMatch>,
}

/// How the words of a trigger stand in an utterance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One after the other.
    InARow,
    /// In their order, with others between.
    Apart,
    /// In another order.
    Reordered,
}

/// A word of a trigger and what was said for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordMatch {
    /// The word of the trigger, without case and accents.
    pub trigger: String,
    /// The word that was said, without case and accents.
    pub said: String,
    /// Why they are the same.
    pub how: How,
    /// Whether it stands in the context, and was not said.
    pub in_context: bool,
}

/// Why two words count as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The same letters.
    Exact,
    /// Forms of one word.
    Inflected,
    /// So many letters differ.
    Typo(u32),
}

impl How {
    fn worth(self) -> f32 {
        match self {
            Self::Exact => EXACT,
            Self::Inflected => INFLECTED,
            Self::Typo(1) => ONE_TYPO,
            Self::Typo(_) => TWO_TYPOS,
        }
    }
}

/// The best trigger of each list that the utterance has, best first; lists without one are left out. All words of a trigger
/// must be there, in any order.
pub fn match_triggers(utterance: &Utterance<'_>, lists: &[&[String]]) -> Vec<TriggerMatch> {
    match_counted(utterance, lists).0
}

/// What a search has cost: bounded by the limits above, whatever is said and however many triggers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Work {
    /// Triggers that were cut into words.
    triggers: usize,
    /// Pairs of a word of a trigger and a word that was said.
    pairs: usize,
}

fn match_counted(utterance: &Utterance<'_>, lists: &[&[String]]) -> (Vec<TriggerMatch>, Work) {
    let said = Said::new(utterance);
    let mut ways = HashMap::new();
    let mut room = TRIGGER_WORDS_MAX;
    let mut matches = Vec::new();
    let mut work = Work::default();
    'lists: for (list, triggers) in lists.iter().enumerate() {
        let mut best: Option<TriggerMatch> = None;
        for (trigger, text) in triggers.iter().enumerate() {
            work.triggers += 1;
            let words = words(text);
            let Some(left) = room.checked_sub(words.len().max(1)) else {
                matches.extend(best);
                break 'lists;
            };
            room = left;
            let Some((score, order, words)) = said.score(&words, &mut ways) else {
                continue;
            };
            if best.as_ref().is_none_or(|best| best.score < score) {
                best = Some(TriggerMatch {
                    list,
                    trigger,
                    score,
                    order,
                    words,
                });
            }
        }
        matches.extend(best);
    }
    work.pairs = ways.len() * said.words.len();
    matches.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.list.cmp(&b.list)));
    (matches, work)
}

/// A word in lower case, and without accents.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Word {
    lower: String,
    plain: String,
}

/// For each word of a trigger that was looked at before, every word that was said for it: its place, and how.
type Ways = HashMap<Word, Vec<(usize, How)>>;

struct Said {
    words: Vec<Word>,
    /// Of each word, its stem in each of the languages.
    stems: Vec<Vec<String>>,
    /// How many of the words were said; the others are the context's.
    spoken: usize,
    /// Said words that are more than glue.
    weight: usize,
    /// The text without case and accents, for scripts without spaces.
    text: String,
    /// The language, if it is known.
    language: Option<Language>,
    /// That one, or all.
    languages: Vec<Language>,
}

impl Said {
    fn new(utterance: &Utterance<'_>) -> Self {
        let mut words = words(utterance.text);
        words.truncate(UTTERANCE_WORDS_MAX);
        let spoken = words.len();
        let weight = words
            .iter()
            .filter(|word| !is_glue(word, utterance.language))
            .count();
        for text in utterance.context {
            words.extend(self::words(text));
            words.truncate(UTTERANCE_WORDS_MAX);
        }
        let languages = match utterance.language {
            Some(language) => vec![language],
            None => Language::all().collect(),
        };
        Self {
            stems: words.iter().map(|word| stems(word, &languages)).collect(),
            words,
            spoken,
            weight: weight.clamp(1, COVERED_WORDS_MAX),
            text: plain(&utterance.text.to_lowercase()),
            language: utterance.language,
            languages,
        }
    }

    /// How well the utterance has all these words; none if it has not.
    fn score(&self, trigger: &[Word], ways: &mut Ways) -> Option<(f32, Order, Vec<WordMatch>)> {
        if trigger.is_empty() {
            return None;
        }
        let (mut places, mut words): (Vec<usize>, Vec<WordMatch>) = (Vec::new(), Vec::new());
        let mut worth = 0.0;
        for word in trigger {
            let known = ways.entry(word.clone()).or_insert_with(|| self.ways(word));
            let next = places.last().map_or(0, |last| last + 1);
            let free = known.iter().filter(|(place, _)| !places.contains(place));
            // The best one, and of equals the one that keeps the words in a row.
            let value = |(place, how): &(usize, How)| self.worth(*place, *how);
            let best = free.max_by(|a, b| {
                let nearness = |place: usize| std::cmp::Reverse(place.abs_diff(next));
                value(a)
                    .total_cmp(&value(b))
                    .then(nearness(a.0).cmp(&nearness(b.0)))
            })?;
            let (place, how) = *best;
            worth += self.worth(place, how);
            places.push(place);
            let said = self.words.get(place);
            words.push(WordMatch {
                trigger: word.plain.clone(),
                said: said.map_or_else(|| word.plain.clone(), |said| said.plain.clone()),
                how,
                in_context: (self.spoken..self.words.len()).contains(&place),
            });
        }
        let order = order(&places);
        let factor = match order {
            Order::InARow => 1.0,
            Order::Apart => APART,
            Order::Reordered => REORDERED,
        };
        let spoken = words.iter().filter(|word| !word.in_context).count();
        let coverage = (spoken as f32 / self.weight as f32).min(1.0);
        let quality = worth / trigger.len() as f32 * factor;
        Some((quality * (1.0 - COVERAGE + COVERAGE * coverage), order, words))
    }

    fn worth(&self, place: usize, how: How) -> f32 {
        match (self.spoken..self.words.len()).contains(&place) {
            true => how.worth() * OF_CONTEXT,
            false => how.worth(),
        }
    }

    /// Every word that was said for this one.
    fn ways(&self, word: &Word) -> Vec<(usize, How)> {
        let mut found: Vec<(usize, How)> = Vec::new();
        let mut own = None;
        for (place, said) in self.words.iter().enumerate() {
            let mut is_inflected = || {
                begin_alike(word, said) && {
                    let own = own.get_or_insert_with(|| stems(word, &self.languages));
                    own.iter().zip(&self.stems[place]).any(|(own, said)| own == said)
                }
            };
            // Glue is said on purpose: `from` is no slip of `form`.
            let is_slip = is_slip(&word.plain, &said.plain) && !is_glue(said, self.language);
            let how = if said.plain == word.plain {
                Some(How::Exact)
            } else if is_slip && self.language.is_none() {
                // Among all languages there is one that inflects like this.
                Some(How::Typo(1))
            } else if is_inflected() {
                Some(How::Inflected)
            } else if is_slip {
                Some(How::Typo(1))
            } else {
                let allowed = typos_max(&word.plain).min(typos_max(&said.plain));
                distance(&word.plain, &said.plain, allowed).map(How::Typo)
            };
            found.extend(how.map(|how| (place, how)));
        }
        let is_unspaced = || segments(&word.plain).any(|part| part.script != Script::Spaced);
        if found.is_empty() && is_unspaced() && self.text.contains(&word.plain) {
            found.push((self.words.len(), How::Exact));
        }
        found
    }
}

fn stems(word: &Word, languages: &[Language]) -> Vec<String> {
    let stem = |language: &Language| plain(&language.stem(&word.lower));
    languages.iter().map(stem).collect()
}

/// Forms of one word begin alike; others need not be stemmed.
fn begin_alike(one: &Word, other: &Word) -> bool {
    let is_long = one.plain.chars().nth(INFLECTED_CHARS - 1).is_some();
    is_long && one.plain.chars().take(2).eq(other.plain.chars().take(2))
}

fn order(places: &[usize]) -> Order {
    let pairs = || places.windows(2);
    match (
        pairs().all(|pair| pair[1] == pair[0] + 1),
        pairs().all(|pair| pair[0] < pair[1]),
    ) {
        (true, _) => Order::InARow,
        (false, true) => Order::Apart,
        (false, false) => Order::Reordered,
    }
}

fn is_glue(word: &Word, language: Option<Language>) -> bool {
    let of = languages_of(&word.lower, &word.plain);
    match language {
        Some(language) => of & language.bit() != 0,
        None => of != 0,
    }
}

/// The words of a text. `mio_tool` has two.
fn words(text: &str) -> Vec<Word> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && !is_mark(c));
    let words = parts.map(lower).filter(|word| !word.is_empty());
    words
        .map(|lower| Word {
            plain: plain(&lower),
            lower,
        })
        .collect()
}

/// Whether this belongs to the letter before it, as an accent does that is written apart.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{dff}' | '\u{e31}' | '\u{e34}'..='\u{e4e}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists() -> Vec<Vec<String>> {
        let list = |triggers: &[&str]| triggers.iter().map(|&trigger| trigger.to_owned()).collect();
        vec![
            list(&["mio_tool", "crea", "foglio", "quiz"]),
            list(&["demo", "mostra demo", "visualizza", "interattivo"]),
            list(&["verifica la città"]),
            list(&["地図"]),
        ]
    }

    fn found(utterance: Utterance<'_>) -> Vec<TriggerMatch> {
        let lists = lists();
        let lists: Vec<&[String]> = lists.iter().map(Vec::as_slice).collect();
        match_triggers(&utterance, &lists)
    }

    /// The trigger that is found first.
    fn first(text: &str) -> Option<String> {
        let language = Some(Language::Italian);
        let first = found(Utterance {
            text,
            language,
            ..Utterance::default()
        })
        .into_iter()
        .next()?;
        Some(lists()[first.list][first.trigger].clone())
    }

    #[test]
    fn what_is_said_finds_the_trigger() {
        for (text, trigger) in [
            ("mostra demo", "mostra demo"),
            ("MOSTRA la DEMO per favore", "mostra demo"),
            ("una demo, mostra!", "mostra demo"),
            ("mi mostri una demo?", "mostra demo"),
            ("che demo hai?", "demo"),
            ("crea", "crea"),
            ("Créa qualcosa", "crea"),
            ("vorrei un foglio nuovo", "foglio"),
            ("vorrei dei fogli", "foglio"),
            ("un fogilo", "foglio"),
            ("usa mio tool", "mio_tool"),
            ("visualiza il moto", "visualizza"),
            ("qualcosa di interatttivo", "interattivo"),
            ("mostra una demmo", "mostra demo"),
            ("una dmeo", "demo"),
            ("creaa un quizz", "crea"),
            ("il quizz", "quiz"),
            ("usa mio tol", "mio_tool"),
            ("verifica la citta", "verifica la città"),
            ("la citta\u{300} verifica", "verifica la città"),
            ("この地図を見せて", "地図"),
        ] {
            assert_eq!(first(text).as_deref(), Some(trigger), "{text:?}");
        }
    }

    #[test]
    fn what_has_no_trigger_finds_nothing() {
        for text in [
            "",
            "  ",
            "buongiorno",
            "mostra",
            "la città",
            "地",
            "crew",
            "creta",
            "memo",
            "nemo",
            "deno",
            "edmo",
            "quid",
            "quia",
        ] {
            assert_eq!(first(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_stop_word_is_no_slip_of_a_short_word() {
        let list = ["form".to_owned()];
        for language in [None, Some(Language::English)] {
            let found = |text| {
                let utterance = Utterance {
                    text,
                    language,
                    ..Utterance::default()
                };
                match_triggers(&utterance, &[&list]).len()
            };
            assert_eq!((found("a letter from Ada"), found("a fomr for Ada")), (0, 1));
        }
    }

    #[test]
    fn a_slip_is_a_typo_whether_the_language_is_known_or_not() {
        for language in [None, Some(Language::Italian)] {
            let matches = found(Utterance {
                text: "mostra una demmo",
                language,
                ..Utterance::default()
            });
            let best = &matches[0];
            assert_eq!(best.words[1].how, How::Typo(1), "{language:?}");
            assert_eq!(best.order, Order::Apart, "{language:?}");
        }
    }

    #[test]
    fn a_match_says_why() {
        let matches = found(Utterance {
            text: "una demo, mostrra!",
            language: Some(Language::Italian),
            ..Utterance::default()
        });
        let best = &matches[0];
        assert_eq!(best.order, Order::Reordered);
        let words: Vec<_> = best
            .words
            .iter()
            .map(|word| (word.trigger.as_str(), word.said.as_str(), word.how))
            .collect();
        assert_eq!(
            words,
            [("mostra", "mostrra", How::Typo(1)), ("demo", "demo", How::Exact)]
        );
    }

    #[test]
    fn exact_words_rank_before_inflected_and_these_before_typos() {
        let score = |text| {
            found(Utterance {
                text,
                ..Utterance::default()
            })[0]
                .score
        };
        assert!(
            score("foglio") > score("fogli"),
            "{} {}",
            score("foglio"),
            score("fogli")
        );
        assert!(score("fogli") > score("fogilo"));
        assert!(score("mostra demo") > score("mostra una bella demo"));
        assert!(score("mostra demo") > score("demo mostra"));
    }

    #[test]
    fn the_context_helps_and_counts_less() {
        let context = ["foglio".to_owned()];
        let matches = found(Utterance {
            text: "crea",
            context: &context,
            ..Utterance::default()
        });
        assert_eq!((matches[0].trigger, matches[0].words[0].in_context), (1, false));
        let alone = found(Utterance {
            text: "sì",
            context: &context,
            ..Utterance::default()
        });
        assert!(alone[0].words[0].in_context && alone[0].score < 0.6);
    }

    #[test]
    fn words_beyond_the_limit_match_nothing() {
        let mut list: Vec<String> = (0..TRIGGER_WORDS_MAX)
            .map(|number| format!("parola{number}"))
            .collect();
        list.push("foglio".into());
        let said = |text| Utterance {
            text,
            ..Utterance::default()
        };
        assert_eq!(match_triggers(&said("un foglio"), &[&list]), []);
        let long = "parola ".repeat(UTTERANCE_WORDS_MAX) + "foglio";
        assert_eq!(match_triggers(&said(&long), &[&lists()[0]]), []);
    }

    /// As many tools as are looked at, with as many triggers as a tool may have, each as long as it may be.
    fn most_triggers(text: impl Fn(usize) -> String) -> Vec<Vec<String>> {
        const TOOLS: usize = 2_000;
        const TRIGGERS: usize = 64;
        let list = |tool| {
            (0..TRIGGERS)
                .map(|trigger| text(tool * TRIGGERS + trigger))
                .collect()
        };
        (0..TOOLS).map(list).collect()
    }

    /// A word of 40 letters that differs from the others of its kind at the end alone, so that comparing two takes longest.
    fn long_word(number: usize) -> String {
        format!("{}{number:06}", "a".repeat(34))
    }

    #[test]
    fn the_work_is_bounded_whatever_is_said_and_however_many_triggers_there_are() {
        const TRIGGER_CHARS: usize = 256;
        let said: Vec<String> = (0..UTTERANCE_WORDS_MAX).map(|n| long_word(900_000 + n)).collect();
        let utterance = Utterance {
            text: "sì",
            context: &said,
            language: None,
        };
        let texts: [fn(usize) -> String; 4] = [
            long_word,
            |number| format!("{} ", long_word(number)).repeat(TRIGGER_CHARS / 41),
            |_| "!".repeat(TRIGGER_CHARS),
            |_| "a ".repeat(TRIGGER_CHARS / 2),
        ];
        for text in texts {
            let lists = most_triggers(text);
            let lists: Vec<&[String]> = lists.iter().map(Vec::as_slice).collect();
            let (_, work) = match_counted(&utterance, &lists);
            assert!(work.triggers <= TRIGGER_WORDS_MAX + 1, "{work:?}");
            assert!(work.pairs <= TRIGGER_WORDS_MAX * UTTERANCE_WORDS_MAX, "{work:?}");
        }
    }
}
