//! Segmentation: a text becomes words, and runs of the scripts that write without spaces.

use std::ops::Range;

use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;

/// How a piece of text is made into terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    /// Letters and digits between spaces.
    Spaced,
    /// Chinese characters.
    Han,
    Hiragana,
    Katakana,
    /// Korean: spaces stand around phrases, not words.
    Hangul,
    /// Thai, Lao, Burmese, Khmer.
    Southeast,
}

/// A run of characters of one script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub script: Script,
    /// Bytes of the text.
    pub range: Range<usize>,
}

/// The segments of a text, in order.
pub(crate) fn segments(text: &str) -> impl Iterator<Item = Segment> + '_ {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, script) = loop {
            let (at, c) = rest.next()?;
            if let Some(script) = script(c) {
                break (at, script);
            }
        };
        let mut end = text.len();
        while let Some((at, c)) = rest.peek() {
            if continues(script, *c) {
                rest.next();
            } else {
                end = *at;
                break;
            }
        }
        Some(Segment {
            script,
            range: start..end,
        })
    })
}

fn continues(run: Script, c: char) -> bool {
    match script(c) {
        Some(script) => script == run,
        // Viramas, nuktas and accents written apart are no letters, but do not end a word either.
        None if c.is_ascii() => false,
        None => matches!(c, '\u{ad}' | '\u{200c}' | '\u{200d}') || is_mark(c),
    }
}

fn is_mark(c: char) -> bool {
    CanonicalCombiningClassMapBorrowed::new().get_u8(c) != 0
}

/// The script of a letter or digit; none for anything else.
fn script(c: char) -> Option<Script> {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric().then_some(Script::Spaced);
    }
    match c {
        '\u{4e00}'..='\u{9fff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}'
        | '々'
        | '〇' => Some(Script::Han),
        '\u{3041}'..='\u{309f}' => Some(Script::Hiragana),
        '・' => None,
        '\u{30a1}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' => Some(Script::Katakana),
        '\u{ac00}'..='\u{d7ff}' | '\u{1100}'..='\u{11ff}' | '\u{3131}'..='\u{318e}' => Some(Script::Hangul),
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => {
            (c.is_alphanumeric() || is_mark(c)).then_some(Script::Southeast)
        }
        c => c.is_alphanumeric().then_some(Script::Spaced),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = segments(text).map(|segment| &text[segment.range]).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn words_end_at_anything_but_letters_digits_and_marks() {
        check("Créa_FOGLIO! l'uva", &["Créa", "FOGLIO", "l", "uva"]);
        check("cre\u{301}a ext4", &["cre\u{301}a", "ext4"]);
        check("हिन्दी में", &["हिन्दी", "में"]);
        check(" -- ", &[]);
    }

    #[test]
    fn scripts_without_spaces_are_runs() {
        check(
            "Linuxのファイルを消す。",
            &["Linux", "の", "ファイル", "を", "消", "す"],
        );
        check("查看磁盘 df", &["查看磁盘", "df"]);
        check("서울에서 만나요", &["서울에서", "만나요"]);
        check("ภาษาไทย", &["ภาษาไทย"]);
    }
}
