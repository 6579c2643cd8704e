//! Finds the known name that a misspelt one was meant to be, for "did you mean" in error messages.

/// Longest name for which a known one is suggested.
const GUESS_CHARS_MAX: usize = 64;
/// Most letters that may be wrong in a name.
const SLIPS_MAX: usize = 2;

/// Most known names that a message lists.
const KNOWN_SHOWN_MAX: usize = 40;

/// The known name that `name` is most likely a typo of. Case and `_` do not count: authors mix `camelCase` and `snake_case`.
pub fn guess<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if name.chars().count() > GUESS_CHARS_MAX {
        return None;
    }
    let name = plain(name);
    let near = known.iter().map(|known| (slips(&name, &plain(known)), *known));
    let (slips, nearest) = near.min_by_key(|(slips, _)| *slips)?;
    (slips <= SLIPS_MAX && slips * 2 < nearest.chars().count()).then_some(nearest)
}

/// What to tell the author of a name that is not `known`: the name that was probably meant, or those there are, at most
/// `KNOWN_SHOWN_MAX` of them.
pub fn hint(name: &str, known: &[&str]) -> String {
    if let Some(meant) = guess(name, known) {
        return format!("did you mean {meant:?}?");
    }
    let shown = known[..known.len().min(KNOWN_SHOWN_MAX)].join(", ");
    match known.len().saturating_sub(KNOWN_SHOWN_MAX) {
        0 => format!("known here: {shown}"),
        more => format!("known here: {shown} and {more} more"),
    }
}

fn plain(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

/// Edit distance (Levenshtein).
pub fn slips(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, known) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *known);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
