//! Folding: spellings of the same word become one.

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// The word in lower case and in compatibility form: `ﬁle` and `ＦＩＬＥ` become `file`. Accents stay, because stemmers
/// need them.
pub(crate) fn lower(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let lower = word.to_lowercase();
    let composed = ComposingNormalizerBorrowed::new_nfkc().normalize_iter(lower.chars());
    composed.filter(|c| is_of_word(*c)).collect()
}

/// Compatibility forms may bring in spaces and punctuation, which no term has.
fn is_of_word(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric(),
        false => c != SOFT_HYPHEN && !c.is_whitespace(),
    }
}

const SOFT_HYPHEN: char = '\u{ad}';

/// A word of [`lower`] without accents, and with letters that have no accent to lose spelled out: `ß` as `ss`.
pub(crate) fn plain(lower: &str) -> String {
    if lower.is_ascii() {
        return lower.to_owned();
    }
    let mut folded = String::with_capacity(lower.len());
    for c in lower.chars() {
        match c {
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'þ' => folded.push_str("th"),
            'ø' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' | 'ð' => folded.push('d'),
            'ı' => folded.push('i'),
            'ς' => folded.push('σ'),
            c if has_accents(c) => {
                let apart = DecomposingNormalizerBorrowed::new_nfd().normalize_iter(std::iter::once(c));
                folded.extend(apart.filter(|c| !is_accent(*c)));
            }
            c => folded.push(c),
        }
    }
    folded
}

/// Whether this is of a script whose accents are optional in writing: Latin, Greek, Cyrillic. The voicing marks of
/// kana, the parts of Hangul and vowel signs make another word.
fn has_accents(c: char) -> bool {
    matches!(c, '\u{c0}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}') || is_accent(c)
}

fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: &str) {
        assert_eq!(plain(&lower(word)), expected, "{word:?}");
    }

    #[test]
    fn spellings_of_one_word_become_one() {
        check("Straße", "strasse");
        check("STRASSE", "strasse");
        check("perché", "perche");
        check("perche\u{301}", "perche");
        check("ÅNGSTRÖM", "angstrom");
        check("ＦＩＬＥ", "file");
        check("œuvre", "oeuvre");
        check("Łódź", "lodz");
        check("ТЁМНЫЙ", "темныи");
        check("Ελλάς", "ελλασ");
    }

    #[test]
    fn marks_that_make_another_word_stay() {
        check("が", "が");
        check("ｶﾞ", "ガ");
        check("서울", "서울");
        check("किताब", "किताब");
    }
}
