//! Secrets of an operator: configurations name them, the gateway fills them in where they are sent, and removes them
//! from everything that is read back.

use std::collections::BTreeMap;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;
use toolgate_kernel::agent::Secret;

/// How a configuration names a secret: `${secret.NAME}`.
const OPEN: &str = "${secret.";
const CLOSE: char = '}';
/// How a configuration names the token of the user whom a call is made for.
pub const USER_TOKEN: &str = "${user.token}";
/// A shorter one would be found by chance in every other text, and so could not be kept out of it.
pub const SECRET_CHARS_MIN: usize = 4;

/// Fewer characters of base64 would be found by chance in every other image.
const BASE64_CHARS_MIN: usize = 6;

/// Secrets by name. Cheap to clone, so that each project and each call can have its own.
#[derive(Debug, Clone, Default)]
pub struct Secrets(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_name: BTreeMap<String, Secret>,
    /// What [`USER_TOKEN`] stands for.
    user_token: Option<Secret>,
    /// Values that stand in a configuration as they are, and what stands for each.
    values: Vec<(String, Secret)>,
    /// Finds every spelling of every secret; none when there is nothing to find.
    finder: Option<AhoCorasick>,
    /// What stands for each spelling.
    marks: Vec<String>,
}

/// A secret that cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// Its name cannot stand in a configuration.
    #[error("{0:?} is no name of a secret; expected letters, digits and _, as in \"CRM_TOKEN\"")]
    Name(String),
    /// Too short to be recognised.
    #[error(
        "the secret {0:?} is too short to be kept out of what others read; expected {SECRET_CHARS_MIN} characters or more"
    )]
    Short(String),
}

impl Secrets {
    /// Checks the names and lengths, and prepares the search for every spelling.
    pub fn new(secrets: impl IntoIterator<Item = (String, Secret)>) -> Result<Self, BadSecret> {
        let mut by_name = BTreeMap::new();
        for (name, secret) in secrets {
            if name.is_empty()
                || !name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            {
                return Err(BadSecret::Name(name));
            }
            if secret.expose().chars().count() < SECRET_CHARS_MIN {
                return Err(BadSecret::Short(name));
            }
            by_name.insert(name, secret);
        }
        Ok(Self::prepared(by_name, None, Vec::new()))
    }

    /// The same secrets, and the token of a user for [`USER_TOKEN`].
    pub fn with_user_token(&self, token: Secret) -> Self {
        Self::prepared(self.0.by_name.clone(), Some(token), self.0.values.clone())
    }

    /// The same secrets, and values that stand in a configuration as they are. Each is hidden like a secret, with its mark
    /// in its place; one of fewer than `SECRET_CHARS_MIN` characters is not.
    pub fn with_values(&self, values: impl IntoIterator<Item = (String, Secret)>) -> Self {
        let is_found = |(_, value): &(String, Secret)| value.expose().chars().count() >= SECRET_CHARS_MIN;
        let values = self.0.values.iter().cloned().chain(values).filter(is_found);
        let (by_name, token) = (self.0.by_name.clone(), self.0.user_token.clone());
        Self::prepared(by_name, token, values.collect())
    }

    fn prepared(
        by_name: BTreeMap<String, Secret>,
        user_token: Option<Secret>,
        values: Vec<(String, Secret)>,
    ) -> Self {
        let named = by_name
            .iter()
            .map(|(name, secret)| (format!("[secret {name}]"), secret));
        let token = user_token.iter().map(|token| ("[user token]".to_owned(), token));
        let values_found = values.iter().map(|(mark, value)| (mark.clone(), value));
        let found = named.chain(token).chain(values_found).flat_map(|(mark, secret)| {
            spellings(secret.expose())
                .into_iter()
                .map(move |text| (text, mark.clone()))
        });
        let (texts, marks): (Vec<String>, Vec<String>) = found.unzip();
        // One secret may be a part of another, and `%2f` is `%2F`.
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(&texts)
            .expect("a few words fit");
        Self(Arc::new(Kept {
            finder: (!texts.is_empty()).then_some(finder),
            by_name,
            user_token,
            values,
            marks,
        }))
    }

    /// `text` of a configuration with every `${secret.NAME}` replaced by what `write` makes of the secret, and
    /// [`USER_TOKEN`] likewise where there is a token. The error is the first name that is unknown. Never to be given text
    /// that comes from a model.
    pub fn fill(&self, text: &str, write: impl Fn(&str) -> String) -> Result<String, String> {
        let Some(token) = &self.0.user_token else {
            return self.fill_named(text, &write);
        };
        let parts: Result<Vec<String>, String> = text
            .split(USER_TOKEN)
            .map(|part| self.fill_named(part, &write))
            .collect();
        Ok(parts?.join(&write(token.expose())))
    }

    fn fill_named(&self, text: &str, write: impl Fn(&str) -> String) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, found)) = rest.split_once(OPEN) {
            out.push_str(before);
            let Some((name, after)) = found.split_once(CLOSE) else {
                out.push_str(OPEN);
                rest = found;
                continue;
            };
            let secret = self.0.by_name.get(name).ok_or_else(|| name.to_owned())?;
            out.push_str(&write(secret.expose()));
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    /// `text` without any secret in it, however it is spelled.
    pub fn hide(&self, text: &str) -> String {
        match &self.0.finder {
            Some(finder) => finder.replace_all(text, &self.0.marks),
            None => text.to_owned(),
        }
    }

    /// The JSON text `json` without any secret in its texts and names; none when there is none, or when it is no JSON.
    pub fn hide_in_json(&self, json: &str) -> Option<String> {
        let finder = self.0.finder.as_ref()?;
        if !finder.is_match(json) {
            return None;
        }
        let value: Value = serde_json::from_str(json).ok()?;
        let hidden = self.hide_in(value.clone());
        // What looks like a secret may be a part of an escape.
        (hidden != value).then(|| hidden.to_string())
    }

    /// `value` without any secret in its texts and names.
    pub fn hide_in(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.hide(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.hide_in(item)).collect(),
            Value::Object(members) => {
                let members = members.into_iter();
                Value::Object(
                    members
                        .map(|(name, value)| (self.hide(&name), self.hide_in(value)))
                        .collect(),
                )
            }
            // A secret of digits may come back as a number.
            Value::Number(number) => {
                let written = number.to_string();
                let hidden = self.hide(&written);
                if hidden == written {
                    number.into()
                } else {
                    hidden.into()
                }
            }
            Value::Null | Value::Bool(_) => value,
        }
    }
}

/// The ways in which servers repeat a secret: as it is, in JSON (also twice over), in an address (also twice over), in a
/// form, in a page, in a script, in base64 and in hex. One that a server rewrites in its own way is not found.
fn spellings(secret: &str) -> Vec<String> {
    let quoted = Value::from(secret).to_string();
    let quoted = &quoted[1..quoted.len() - 1];
    let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let coded = |code: fn(u16) -> String| -> String {
        let units = secret.encode_utf16().map(|unit| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => code(unit),
        });
        units.collect()
    };
    let mut spellings = vec![
        secret.to_owned(),
        quoted.to_owned(),
        quoted.replace('/', "\\/"),
        quoted.replace('\\', "\\\\").replace('/', "\\\\/"),
        coded(|unit| format!("\\u{unit:04x}")),
        coded(|unit| format!("\\x{unit:02x}")),
        coded(|unit| format!("&#x{unit:x};")),
        coded(|unit| format!("&#{unit};")),
        percent_encode(secret),
        percent_encode(&percent_encode(secret)),
        form,
        secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
    ];
    spellings.extend(base64_cores(secret.as_bytes()));
    spellings.sort();
    spellings.dedup();
    spellings
}

/// What base64 of any text makes of a secret in it: for each of the three places where it may begin, and in both
/// alphabets, the characters that depend on the secret alone. `Authorization: Basic` is the usual case.
fn base64_cores(secret: &[u8]) -> Vec<String> {
    const BITS: usize = 6;
    let mut cores = Vec::new();
    for before in 0..3 {
        let text = [&[0; 2][..before], secret].concat();
        let (first, end) = ((before * 8).div_ceil(BITS), text.len() * 8 / BITS);
        if end - first < BASE64_CHARS_MIN {
            continue;
        }
        for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            cores.push(alphabet.encode(&text)[first..end].to_owned());
        }
    }
    cores
}

/// Percent-encodes everything that may mean something in an address.
pub fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secrets() -> Secrets {
        let kept = [("A", "s3cret/+"), ("B", "s3cret/+longer"), ("PIN", "778899")];
        Secrets::new(kept.map(|(name, text)| (name.into(), Secret::new(text)))).unwrap()
    }

    #[test]
    fn secrets_stand_in_for_their_names() {
        let fill = |text| secrets().fill(text, str::to_owned);
        assert_eq!(fill("Bearer ${secret.A}"), Ok("Bearer s3cret/+".into()));
        assert_eq!(fill("${secret. ${other} ${secret"), Err(" ${other".into()));
        assert_eq!(fill("${secret.A"), Ok("${secret.A".into()));
        assert_eq!(fill("${secret.NONE}"), Err("NONE".into()));
    }

    #[test]
    fn no_spelling_of_a_secret_is_left() {
        let told = secrets().hide_in(json!({
            "plain": "x s3cret/+longer y s3cret/+",
            "address": "https://a/?k=s3cret%2F%2B&l=s3cret%2f%2b",
            "json": r#"{"k": "s3cret\/+", "l": "s3cret\u002f\u002B"}"#,
            "page": "s3cret&#x2F;&#x2b; s3cret&#47;&#43; s3cret%252F%252B",
            "script": r"s3cret\x2f\x2B s3cret\\/+",
            "s3cret/+": 778899,
            "list": ["s3cret/+"],
        }));
        let expected = json!({
            "plain": "x [secret B] y [secret A]",
            "address": "https://a/?k=[secret A]&l=[secret A]",
            "json": r#"{"k": "[secret A]", "l": "[secret A]"}"#,
            "page": "[secret A] [secret A] [secret A]",
            "script": "[secret A] [secret A]",
            "[secret A]": "[secret PIN]",
            "list": ["[secret A]"],
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn a_json_text_without_secrets_stays_as_it_is() {
        let hidden = |json: &str| secrets().hide_in_json(json);
        assert_eq!(hidden(r#"{"b": 1.0, "a": "s3cret"}"#), None);
        let told = hidden(r#"{"b":["s3cret\u002f+", "x"],"s3cret\/+":1}"#).unwrap();
        assert_eq!(told, r#"{"b":["[secret A]","x"],"[secret A]":1}"#);
        assert_eq!(hidden("no JSON s3cret/+"), None);
    }

    #[test]
    fn base64_and_hex_of_a_secret_are_hidden_wherever_it_stands() {
        let secret = "s3cret/+longer";
        for text in ["", "u:", "me:", "user:", "a longer name:"] {
            for after in ["", "!", "!!", " and more"] {
                let bytes = format!("{text}{secret}{after}");
                for echoed in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
                    let hidden = secrets().hide(&format!("Basic {echoed}"));
                    assert!(hidden.contains("[secret B]"), "{hidden}");
                    // What is left at the edges is less than a character of the secret on each side.
                    let left: usize = hidden.len() - "Basic [secret B]".len();
                    let edges = echoed.len() - secret.len() * 4 / 3 + 2;
                    assert!(left <= edges, "{hidden}");
                }
                let hex: String = bytes.bytes().map(|byte| format!("{byte:02X}")).collect();
                assert!(secrets().hide(&hex).contains("[secret B]"), "{hex}");
            }
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let one = |name: &str, text: &str| Secrets::new([(name.into(), Secret::new(text))]).err();
        assert_eq!(one("a b", "long enough"), Some(BadSecret::Name("a b".into())));
        assert_eq!(one("A", "abc"), Some(BadSecret::Short("A".into())));
    }
}
