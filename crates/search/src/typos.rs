//! Letters that differ between two words.

/// Shortest word that may have one typo, and two.
const ONE_TYPO_CHARS: usize = 5;
const TWO_TYPOS_CHARS: usize = 8;

/// How many letters of a word may be wrong: none of a short one, which would be another word.
pub(crate) fn typos_max(word: &str) -> u32 {
    match word.chars().count() {
        0..ONE_TYPO_CHARS => 0,
        ONE_TYPO_CHARS..TWO_TYPOS_CHARS => 1,
        _ => 2,
    }
}

/// Letters that differ: added, left out, changed, or swapped with the next one; none if more than `max`.
pub(crate) fn distance(a: &str, b: &str, max: u32) -> Option<u32> {
    if max == 0 {
        return None;
    }
    if a.len().abs_diff(b.len()) > max as usize * char::MAX_LEN_UTF8 {
        return None;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > max as usize {
        return None;
    }
    let mut before: Vec<u32> = vec![0; b.len() + 1];
    let mut last: Vec<u32> = (0..=b.len() as u32).collect();
    for i in 1..=a.len() {
        let mut row = vec![i as u32; b.len() + 1];
        for j in 1..=b.len() {
            let change = u32::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + change);
            let is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if is_swapped {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        // It only grows from here on.
        if row.iter().min().is_some_and(|least| *least > max) {
            return None;
        }
        before = std::mem::replace(&mut last, row);
    }
    let distance = last[b.len()];
    (distance <= max).then_some(distance)
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
}
