//! Letters that differ between two words.

/// Shortest word that may have one typo, and two.
const ONE_TYPO_CHARS: usize = 5;
const TWO_TYPOS_CHARS: usize = 8;
/// Shortest word that may have a slip.
const SLIP_CHARS: usize = 4;
/// Longest word that may have typos. Nobody says a longer one, and comparing long ones takes long.
const TYPO_CHARS_MAX: usize = 40;

/// How many letters of a word may be wrong: none of a short one, which would be another word.
pub(crate) fn typos_max(word: &str) -> u32 {
    match word.chars().take(TYPO_CHARS_MAX + 1).count() {
        0..ONE_TYPO_CHARS => 0,
        ONE_TYPO_CHARS..TWO_TYPOS_CHARS => 1,
        TWO_TYPOS_CHARS..=TYPO_CHARS_MAX => 2,
        _ => 0,
    }
}

/// Whether a letter was doubled, a double one was not, or two neighbours were swapped. That seldom makes another word, so it
/// may happen in a shorter word than other typos. The first letter stays, and numbers are never the same: `arte` is not
/// `rate`, and `1000` is not `100`.
pub(crate) fn is_slip(trigger: &str, said: &str) -> bool {
    let letters = trigger.chars().zip(said.chars());
    let alike = letters.take_while(|(one, other)| one == other);
    let (alike, trigger_rest) = trigger.split_at(alike.map(|(letter, _)| letter.len_utf8()).sum());
    let said_rest = &said[alike.len()..];
    let Some(last) = alike.chars().next_back() else {
        return false;
    };
    let is_doubled = |long: &str, short: &str| long.strip_prefix(last) == Some(short);
    let is_like_it = is_doubled(said_rest, trigger_rest)
        || is_doubled(trigger_rest, said_rest)
        || are_swapped(trigger_rest, said_rest);
    is_like_it
        && trigger.chars().all(char::is_alphabetic)
        && trigger.chars().count() >= SLIP_CHARS
        && trigger.chars().count().max(said.chars().count()) <= TYPO_CHARS_MAX
}

/// Whether the two differ by the order of their first two letters.
fn are_swapped(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.chars(), other.chars());
    let (first, second) = (one.next(), one.next());
    second.is_some() && second == other.next() && first == other.next() && one.as_str() == other.as_str()
}

/// Letters that differ: added, left out, changed, or swapped with the next one; none if more than `max`, or if a word has
/// more than 40. Takes no memory, and time in proportion to the shorter word and `max`: every trigger of a project is
/// compared with every word that was said.
pub(crate) fn distance(a: &str, b: &str, max: u32) -> Option<u32> {
    if max == 0 || a.len().abs_diff(b.len()) > max as usize * char::MAX_LEN_UTF8 {
        return None;
    }
    let (a, b) = (Letters::of(a)?, Letters::of(b)?);
    let (a, b) = (a.as_slice(), b.as_slice());
    let band = max as usize;
    if a.len().abs_diff(b.len()) > band {
        return None;
    }
    // Three rows of the table of distances between beginnings, the last one on top. A cell further than `max` from the
    // diagonal holds more than `max`, so nothing outside this band is looked at; what is not computed counts as too much.
    let mut rows = [[max + 1; TYPO_CHARS_MAX + 1]; 3];
    for (j, cell) in rows[0].iter_mut().enumerate().take(band.min(b.len()) + 1) {
        *cell = j as u32;
    }
    for i in 1..=a.len() {
        rows.rotate_right(1);
        let [row, last, before] = &mut rows;
        let (first, end) = (i.saturating_sub(band), (i + band).min(b.len()));
        row.fill(max + 1);
        if first == 0 {
            row[0] = i as u32;
        }
        for j in first.max(1)..=end {
            let change = u32::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + change);
            let is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if is_swapped {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        // It only grows from here on.
        if row[first..=end].iter().all(|cell| *cell > max) {
            return None;
        }
    }
    let distance = rows[0][b.len()];
    (distance <= max).then_some(distance)
}

/// The letters of a word.
struct Letters {
    letters: [char; TYPO_CHARS_MAX],
    count: usize,
}

impl Letters {
    /// None for a word that is too long.
    fn of(word: &str) -> Option<Self> {
        let mut letters = ['\0'; TYPO_CHARS_MAX];
        let mut count = 0;
        for letter in word.chars() {
            *letters.get_mut(count)? = letter;
            count += 1;
        }
        Some(Self { letters, count })
    }

    fn as_slice(&self) -> &[char] {
        &self.letters[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_differ_are_counted() {
        for (a, b, expected) in [
            ("foglio", "fogilo", Some(1)),
            ("foglio", "foglia", Some(1)),
            ("foglio", "figli", None),
        ] {
            assert_eq!(distance(a, b, 1), expected, "{a} {b}");
        }
        assert_eq!(distance("ab", "ba", 0), None);
    }

    /// The same by the whole table.
    fn by_the_book(a: &[char], b: &[char]) -> u32 {
        let mut table = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                table[i][j] = match (i, j) {
                    (0, n) | (n, 0) => n as u32,
                    _ => {
                        let change = u32::from(a[i - 1] != b[j - 1]);
                        (table[i - 1][j] + 1)
                            .min(table[i][j - 1] + 1)
                            .min(table[i - 1][j - 1] + change)
                    }
                };
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    table[i][j] = table[i][j].min(table[i - 2][j - 2] + 1);
                }
            }
        }
        table[a.len()][b.len()]
    }

    #[test]
    fn the_band_gives_what_the_whole_table_gives() {
        // Every word of up to six letters of an alphabet of two: all ways to differ are there.
        let mut words = vec![String::new()];
        for length in 0..6 {
            let longer: Vec<String> = words
                .iter()
                .filter(|word| word.len() == length)
                .flat_map(|word| ["a", "b"].map(|letter| format!("{word}{letter}")))
                .collect();
            words.extend(longer);
        }
        for a in &words {
            for b in &words {
                let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
                let whole = by_the_book(&left, &right);
                for max in 1..=2 {
                    let expected = (whole <= max).then_some(whole);
                    assert_eq!(distance(a, b, max), expected, "{a:?} {b:?} {max}");
                }
            }
        }
    }

    #[test]
    fn slips_are_double_letters_and_swapped_neighbours() {
        for (trigger, said) in [
            ("demo", "demmo"),
            ("demo", "dmeo"),
            ("demo", "deom"),
            ("crea", "creaa"),
            ("quiz", "quizz"),
            ("zoom", "zom"),
            ("mappa", "mapa"),
            ("fééì", "féì"),
            ("foglio", "fogilo"),
        ] {
            assert!(is_slip(trigger, said), "{trigger} {said}");
        }
        for (trigger, said) in [
            ("demo", "demo"),
            ("demo", "memo"),
            ("demo", "deno"),
            ("demo", "dem"),
            ("demo", "demos"),
            ("demo", "edmo"),
            ("demo", "ddmeo"),
            ("demo", "demmoo"),
            ("demo", "demmmo"),
            ("demo", ""),
            ("crea", "crew"),
            ("crea", "carea"),
            ("arte", "rate"),
            ("met", "meet"),
            ("1000", "100"),
            ("h264", "h246"),
        ] {
            assert!(!is_slip(trigger, said), "{trigger} {said}");
        }
    }

    #[test]
    fn a_word_that_nobody_says_has_no_typos() {
        let longest = "x".repeat(TYPO_CHARS_MAX);
        let almost = format!("{}y", &longest[1..]);
        assert_eq!(
            (typos_max(&longest), distance(&longest, &almost, 2)),
            (2, Some(1))
        );
        let longer = format!("{longest}x");
        assert_eq!((typos_max(&longer), distance(&longer, &longest, 2)), (0, None));
        assert!(is_slip(&longest, &longest[1..]) && !is_slip(&longest, &longer));
    }
}
