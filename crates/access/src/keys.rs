//! API keys: made once, shown once, kept as a hash.

use sha2::{Digest, Sha256};
use toolgate_engine::store::{KeyKind, KeyRecord};
use toolgate_kernel::id::{KeyId, ProjectId};
use toolgate_kernel::time::Time;
use uuid::Uuid;

/// Random bytes of a key that we make.
const KEY_BYTES: usize = 32;
/// Shortest key that somebody may choose, with its prefix.
pub const CHOSEN_CHARS_MIN: usize = 16;
/// Longest key.
pub const KEY_CHARS_MAX: usize = 256;
/// How much of a key people may see again: its prefix and four more.
const HINT_CHARS: usize = 7;

/// A fresh key and its row. The key itself is nowhere else.
pub fn mint(project: ProjectId, kind: KeyKind, name: Option<String>, now: Time) -> (String, KeyRecord) {
    let key = format!("{}{}", prefix(kind), random_text());
    let record = row(&key, project, kind, name, now);
    (key, record)
}

/// A fresh secret that signs the tokens of a project's users (HS256).
pub fn token_secret() -> String {
    random_text()
}

/// As many random bytes as HS256 has in its hash, in hex.
fn random_text() -> String {
    let mut random = [0; KEY_BYTES];
    // Straight from the system: the generator of aws-lc first gathers jitter of its own, most of what a start costs.
    getrandom::fill(&mut random).expect("the system gives random bytes");
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The row of a key that somebody chose; refused as [`check`] does.
pub fn record(key: &str, project: ProjectId, kind: KeyKind, now: Time) -> Result<KeyRecord, String> {
    check(key, kind)?;
    Ok(row(key, project, kind, None, now))
}

/// Refuses a key of a project that has the wrong prefix or is too short.
pub fn check(key: &str, kind: KeyKind) -> Result<(), String> {
    let prefix = prefix(kind);
    let shown: String = key.chars().take(prefix.len()).collect();
    if shown != prefix {
        return Err(format!("the key starts with {shown:?}; expected {prefix:?}"));
    }
    check_chosen(key)
}

/// Refuses an operator's key that is too short, or that could be mistaken for a project's.
pub fn check_operator(key: &str) -> Result<(), String> {
    for kind in [KeyKind::Secret, KeyKind::Public] {
        let prefix = prefix(kind);
        if key.starts_with(prefix) {
            return Err(format!(
                "the key starts with {prefix:?}, which is for keys of projects"
            ));
        }
    }
    check_chosen(key)
}

fn check_chosen(key: &str) -> Result<(), String> {
    if !(CHOSEN_CHARS_MIN..=KEY_CHARS_MAX).contains(&key.len()) {
        let length = key.len();
        return Err(format!(
            "the key has {length} characters; expected {CHOSEN_CHARS_MIN} to {KEY_CHARS_MAX}"
        ));
    }
    match key.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err("the key must be of visible ASCII characters without spaces".into()),
    }
}

/// What the store looks a key up by.
pub fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// What keys of a kind start with.
pub fn prefix(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Secret => "sk_",
        KeyKind::Public => "pk_",
    }
}

fn row(key: &str, project: ProjectId, kind: KeyKind, name: Option<String>, created: Time) -> KeyRecord {
    KeyRecord {
        id: KeyId::new(Uuid::now_v7()),
        project,
        kind,
        hash: hash(key),
        hint: key.chars().take(HINT_CHARS).collect(),
        name,
        created,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(0);

    #[test]
    fn a_minted_key_is_found_by_its_hash_and_shown_by_its_first_characters() {
        let project = ProjectId::new(Uuid::nil());
        let (key, record) = mint(project, KeyKind::Secret, Some("ci".into()), NOW);
        assert_eq!(key.len(), "sk_".len() + 64);
        assert_eq!(record.hash, hash(&key));
        assert_eq!(record.hint, key[..7]);
        assert_ne!(mint(project, KeyKind::Secret, None, NOW).0, key);
        assert!(mint(project, KeyKind::Public, None, NOW).0.starts_with("pk_"));
    }

    #[test]
    fn a_chosen_key_must_have_its_prefix_and_some_length() {
        let told =
            |key: &str| record(key, ProjectId::new(Uuid::nil()), KeyKind::Secret, NOW).map(|row| row.hint);
        assert_eq!(told("sk_0123456789abcdef"), Ok("sk_0123".into()));
        assert_eq!(
            told("pk_0123456789abcdef"),
            Err("the key starts with \"pk_\"; expected \"sk_\"".into())
        );
        assert_eq!(
            told("sk_short"),
            Err("the key has 8 characters; expected 16 to 256".into())
        );
        assert!(told("sk_with spaces and more").is_err());
    }
    #[test]
    fn an_operators_key_is_long_enough_and_no_key_of_a_project() {
        assert_eq!(check_operator("an-operator-of-tests"), Ok(()));
        assert!(check_operator("sk_0123456789abcdef").is_err());
        assert!(check_operator("pk_0123456789abcdef").is_err());
        assert!(check_operator("short").is_err());
    }
}
