//! Splits a text into words for search.

use icu_normalizer::DecomposingNormalizerBorrowed;

/// The words of a text: in lower case, without accents. `Créa_foglio!` has the words `crea` and `foglio`.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    let plain = folded(text);
    let parts = plain.split(|c: char| !c.is_alphanumeric());
    let words: Vec<String> = parts.filter(|word| !word.is_empty()).map(str::to_owned).collect();
    words.into_iter()
}

/// Whether the text contains these words in sequence; false for no words.
pub(crate) fn stand_in(wanted: &[String], text: &str) -> bool {
    let words: Vec<String> = words(text).collect();
    !wanted.is_empty() && words.windows(wanted.len()).any(|some| some == wanted)
}

fn folded(text: &str) -> String {
    let lower = text.to_lowercase();
    let apart = DecomposingNormalizerBorrowed::new_nfd().normalize_iter(lower.chars());
    apart.filter(|c| !is_accent(*c)).collect()
}

/// Whether this is a combining accent that search ignores. Vowel signs, which change the word, are kept.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(words(text).collect::<Vec<_>>(), expected, "{text:?}");
    }

    #[test]
    fn words_have_no_case_and_no_accents_however_they_are_written() {
        check("Créa_FOGLIO!", &["crea", "foglio"]);
        check("cre\u{301}a  foglio", &["crea", "foglio"]);
        check("ÅNGSTRÖM İzmir perché", &["angstrom", "izmir", "perche"]);
        check("Ελλάς ТЁМНЫЙ", &["ελλας", "темныи"]);
        check("किताब 東京 42", &["किताब", "東京", "42"]);
        check(" -- ", &[]);
    }
}
