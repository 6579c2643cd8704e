//! How values are written in a settings file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Deserializer, de};
use toolgate_kernel::agent::Secret;
use url::Url;

/// A text, or nothing when it is empty.
pub fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Some(String::deserialize(from)?).filter(|text| !text.is_empty()))
}

/// A text that must never be printed, or nothing when it is empty.
pub fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
    Ok(optional(from)?.map(Secret::new))
}

/// Texts that must never be printed, by name; an empty one is as good as none.
pub fn secrets<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Secret>, D::Error> {
    let texts = BTreeMap::<String, String>::deserialize(from)?;
    let set = texts.into_iter().filter(|(_, text)| !text.is_empty());
    Ok(set.map(|(name, text)| (name, Secret::new(text))).collect())
}

/// A path, or nothing when it is empty.
pub fn path<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    Ok(optional(from)?.map(PathBuf::from))
}

/// A span of time such as `"15s"`.
pub fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse_duration(&text).ok_or_else(|| {
        de::Error::custom(format!(
            "{text:?} is no time; expected one like \"250ms\", \"15s\", \"10m\" or \"2h\""
        ))
    })
}

/// A span of time, or nothing when it is empty.
pub fn optional_duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    if text.is_empty() {
        return Ok(None);
    }
    let span = parse_duration(&text).ok_or_else(|| {
        de::Error::custom(format!(
            "{text:?} is no time; expected one like \"12h\" or \"30d\", or nothing to keep it for ever"
        ))
    })?;
    Ok(Some(span))
}

fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let millis = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(
        number.parse::<u64>().ok()?.checked_mul(millis)?,
    ))
}

/// The address that a setting names, if it does.
pub fn address(setting: &str, text: &Option<String>) -> anyhow::Result<Option<Url>> {
    let Some(text) = text else {
        return Ok(None);
    };
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.with_context(|| {
        format!("the setting `{setting}` is {text:?}; expected one like \"http://127.0.0.1:8888\"")
    })?;
    Ok(Some(url))
}
