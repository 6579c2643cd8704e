//! Splits a text into parts, which full-text search finds, and those into passages, which readers get.

/// Approximate characters of a part: enough to tell what it is about.
const PART_CHARS: usize = 4000;
/// Approximate characters of a passage.
const CHUNK_CHARS: usize = 1200;
/// Characters that a passage repeats of the one before, so that a sentence on the border is whole in one of them.
const OVERLAP_CHARS: usize = 150;

/// The parts of a text, in order. Together they are the text.
pub(crate) fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, behind) = rest.split_at(border(rest, PART_CHARS));
        parts.push(part);
        rest = behind;
    }
    parts
}

/// The passages of a text, in order; none for a blank text.
pub(crate) fn chunks(text: &str) -> Vec<String> {
    let mut chunks = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = border(rest, CHUNK_CHARS);
        chunks.push(rest[..end].trim().to_owned());
        if end == rest.len() {
            break;
        }
        rest = rest[overlap(rest, end)..].trim_start();
    }
    chunks
}

/// Best end of a piece: after a paragraph, a line, a sentence or a word, in its second half.
fn border(text: &str, chars: usize) -> usize {
    let Some((full, _)) = text.char_indices().nth(chars) else {
        return text.len();
    };
    let half = text.char_indices().nth(chars / 2).map_or(0, |(at, _)| at);
    let window = &text[half..full];
    let best = ["\n\n", "\n", ". ", "。"]
        .iter()
        .find_map(|mark| Some(window.rfind(mark)? + mark.len()));
    let behind_word = || behind_space(window.char_indices().rev());
    best.or_else(behind_word).map_or(full, |at| half + at)
}

/// Start of the next passage: a few words before the end of this one.
fn overlap(text: &str, end: usize) -> usize {
    let back = text[..end]
        .char_indices()
        .rev()
        .nth(OVERLAP_CHARS)
        .map_or(0, |(at, _)| at);
    behind_space(text[back..end].char_indices()).map_or(end, |at| back + at)
}

/// Position after the first whitespace.
fn behind_space(mut places: impl Iterator<Item = (usize, char)>) -> Option<usize> {
    let (at, space) = places.find(|(_, c)| c.is_whitespace())?;
    Some(at + space.len_utf8())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_text_is_one_piece_and_a_long_one_ends_at_paragraphs() {
        assert_eq!(chunks("  hello \n"), ["hello"]);
        assert_eq!(chunks(" \n"), [""; 0]);
        let paragraph = "word ".repeat(180);
        let pieces = chunks(&format!("{paragraph}\n\n{paragraph}\n\n{paragraph}"));
        assert!(pieces.len() == 3 && pieces[0].len() < 1000, "{pieces:?}");
    }

    #[test]
    fn words_are_kept_apart_by_every_kind_of_space() {
        let text = "beautiful\u{2003}words\u{a0}".repeat(200);
        let whole = |piece: String| {
            let mut words = piece.split_whitespace();
            words.all(|word| ["beautiful", "words"].contains(&word))
        };
        assert!(chunks(&text).into_iter().all(whole));
    }

    proptest! {
        #[test]
        fn every_word_is_in_a_piece_and_no_piece_is_too_large(text in "([a-zü]{1,9}[ \n.]{1,3}){0,800}|\\PC{0,4000}") {
            let pieces = chunks(&text);
            prop_assert!(pieces.iter().all(|piece| piece.chars().count() <= CHUNK_CHARS));
            prop_assert_eq!(parts(&text).concat(), text.as_str());
            for word in text.split_whitespace().filter(|word| word.chars().count() < 100) {
                prop_assert!(pieces.iter().any(|piece| piece.contains(word)), "{:?} is lost", word);
            }
        }
    }
}
